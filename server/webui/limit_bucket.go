package webui

import (
	"context"
	"html/template"
	"math"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// bucketNow is how many tokens there are.
type bucketNow struct {
	Tokens template.HTML
	Keys   int  // buckets by key that are not full
	More   bool // and more of them
}

// readBucket reads how many tokens there are: one seek, for up to limitsPerPage limits of a page.
func (v *view) readBucket(r *limitRow) error {
	kept, ok := v.app.e.Store().(store.Limits)
	if !ok {
		return nil
	}
	n := 1
	if r.Holds.PerKey {
		n = keyBuckets
	}
	list, err := cached(v, "buckets\n"+r.Name, time.Second, func(ctx context.Context) ([]store.BucketInfo, error) {
		return kept.Buckets(ctx, r.Name, "", n)
	})
	if err != nil {
		return err
	}
	b := &bucketNow{Tokens: tokensLeft(r.Burst, r.Burst)}
	for i := range list {
		tokens, until := tokensOf(&list[i], &r.Holds, v.Now)
		if !r.Holds.PerKey || until.After(r.Drained) {
			r.Drained = until
		}
		if r.Holds.PerKey {
			b.Keys++
		} else {
			b.Tokens = tokensLeft(tokens, r.Burst)
		}
	}
	b.More = r.Holds.PerKey && len(list) == n
	r.Bucket = b
	return nil
}

// tokensLeft is a bar of them: full is good here.
func tokensLeft(n, burst int) template.HTML {
	return says(template.HTML(`<span class="share">`), bar(float64(n)/float64(max(burst, 1))*100), template.HTML(`<span class="v">`),
		count(n), " of ", count(burst), template.HTML(`</span></span>`))
}

// tokensOf lets the time pass that has passed since the bucket was changed, and tells until when it is drained.
func tokensOf(b *store.BucketInfo, s *job.LimitSettings, now time.Time) (tokens int, until time.Time) {
	is := b.Bucket
	reply := is.Take(now.UnixMicro(), &job.TakeRequest{Rate: s.Rate(), Since: -1, Revision: math.MaxInt64})
	if left := is.Until - is.Tick; left > 0 {
		until = now.Add(time.Duration(left) * time.Microsecond)
	}
	return int(max(reply.Ready/job.TokenParts, 0)), until
}
