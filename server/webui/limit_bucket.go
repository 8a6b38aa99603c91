package webui

import (
	"context"
	"html/template"
	"math"
	"slices"
	"strings"
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

// readBuckets reads how many tokens there are of all limits of a page: one statement, which has keyBuckets of each at most.
func (v *view) readBuckets(rows []*limitRow) error {
	kept, ok := v.app.e.Store().(store.Limits)
	var names []string
	for _, r := range rows {
		if !r.Holds.OfJobs() && r.Rate != "" {
			names = append(names, r.Name)
		}
	}
	if !ok || len(names) == 0 {
		return nil
	}
	list, err := cached(v, "buckets\n"+strings.Join(names, "\n"), time.Second, func(ctx context.Context) ([]store.BucketInfo, error) {
		return kept.Buckets(ctx, names, "", keyBuckets)
	})
	if err != nil {
		return err
	}
	of := map[string][]store.BucketInfo{}
	for _, b := range list {
		of[b.Limit] = append(of[b.Limit], b)
	}
	for _, r := range rows {
		if slices.Contains(names, r.Name) {
			r.setBucket(of[r.Name], v.Now)
		}
	}
	return nil
}

// setBucket says how many tokens are left in the buckets of a limit.
func (r *limitRow) setBucket(list []store.BucketInfo, now time.Time) {
	b := &bucketNow{Tokens: tokensLeft(r.Burst, r.Burst)}
	for i := range list {
		tokens, until := tokensOf(&list[i], &r.Holds, now)
		if !r.Holds.PerKey || until.After(r.Drained) {
			r.Drained = until
		}
		if r.Holds.PerKey {
			b.Keys++
		} else {
			b.Tokens = tokensLeft(tokens, r.Burst)
		}
	}
	b.More = r.Holds.PerKey && len(list) == keyBuckets
	r.Bucket = b
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
