package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// rates is every case about buckets of tokens.
func rates() []testCase {
	return []testCase{
		{name: "J17_ABlockIsTakenAndSettled", run: takeAndSettle},
		{name: "J17_WhoIsRefusedFirstWaitsForNobody", run: refusedFirst},
		{name: "J17_TheRuleDecides", run: ruleDecides},
		{name: "J17_ConcurrentTakersShareOneBucket", needs: Features{Shared: true}, run: takersShare},
		{name: "J17_EachKeyHasItsBucket", run: bucketPerKey},
		{name: "J17_ADrainIsFollowedAndAudited", run: drainBucket},
		{name: "J17_FullBucketsLeaveNothingBehind", run: bucketsGo},
		{name: "J17_BucketsAreTheNamespacesOwn", needs: Features{Shared: true}, run: bucketsApart},
		{name: "J17_WhatNoBucketGivesIsRefused", run: takeRefused},
	}
}

// tokens is the store as one that keeps buckets.
func (d *database) tokens(s store.Store) store.Limits {
	d.Helper()
	l, ok := s.(store.Limits)
	if !ok {
		d.Fatalf("%T is no store.Limits", s)
	}
	return l
}

var github = store.BucketName{Limit: "github"}

// asking is a request of somebody who has never asked before.
func asking(perSecond float64, burst, need, want int) job.TakeRequest {
	return job.TakeRequest{Rate: job.Rate{PerSecond: perSecond, Burst: burst}, Need: need, Want: want, Since: -1}
}

func (d *database) take(of store.BucketName, q job.TakeRequest) job.TakeReply {
	d.Helper()
	return must[job.TakeReply](d, "take")(d.tokens(d.Store).Take(d.ctx, of, q))
}

// bucket reads one bucket.
func (d *database) bucket(of store.BucketName) (store.BucketInfo, bool) {
	d.Helper()
	list := must[[]store.BucketInfo](d, "buckets")(d.tokens(d.Store).Buckets(d.ctx, []string{of.Limit}, "", 100))
	for _, b := range list {
		if b.BucketName == of {
			return b, true
		}
	}
	return store.BucketInfo{}, false
}

// A rate of one in ten minutes, so that the time a test takes brings nothing.
const slow = 1.0 / 600

func takeAndSettle(d *database) {
	first := d.take(github, asking(slow, 10, 4, 4))
	equal(d, "size", first.Size, 4)
	second := d.take(github, asking(slow, 10, 6, 6))
	equal(d, "size", second.Size, 6)
	refused := d.take(github, asking(slow, 10, 1, 1))
	if refused.Size != 0 || refused.Wait < 9*time.Minute || refused.Wait > 10*time.Minute {
		d.Errorf("an empty bucket gives %d, and says to wait %v; want 10 minutes", refused.Size, refused.Wait)
	}
	// The first used 1 and gives back 3, and takes 2 of them in the same call.
	q := asking(slow, 10, 2, 2)
	q.Settle = job.Block{Taken: first.Taken, Size: first.Size, Unused: 3}
	equal(d, "size", d.take(github, q).Size, 2)
	equal(d, "size", d.take(github, asking(slow, 10, 1, 1)).Size, 1)
	equal(d, "size", d.take(github, asking(slow, 10, 1, 1)).Size, 0)
	// More than the bucket can hold never comes.
	never := d.take(github, asking(slow, 10, 11, 11))
	equal(d, "size and wait", []any{never.Size, never.Wait}, []any{0, time.Duration(0)})
}

// Who is refused while nobody else was waits for the tokens that are missing, and not for a turn of somebody; those that are
// there are still given.
func refusedFirst(d *database) {
	equal(d, "size", d.take(github, asking(slow, 3, 1, 1)).Size, 1)
	refused := d.take(github, asking(slow, 3, 3, 3))
	if refused.Size != 0 || refused.Wait < 9*time.Minute || refused.Wait > 10*time.Minute {
		d.Errorf("3 of 2 tokens: %d, and to wait %v; want 10 minutes", refused.Size, refused.Wait)
	}
	equal(d, "size", d.take(github, asking(slow, 3, 2, 2)).Size, 2)
}

// Whatever is asked at whatever time: the row and the answer are those of job.Bucket.
func ruleDecides(d *database) {
	seed := rand.Uint64()
	d.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 17))
	var blocks []job.Block
	revision, last := int64(1), int64(0)
	for i := range 150 {
		q := asking(r.Float64()*200+0.001, 1+r.IntN(60), 0, 0)
		switch r.IntN(8) {
		case 0:
			revision++
			q.Revision = revision
		case 1:
			q.Revision = max(revision-1, 1)
		default:
			if b, ok := d.bucket(github); ok {
				q.Rate = job.Rate{PerSecond: float64(b.Rate) / job.TokenParts, Burst: int(b.Burst)}
			}
			q.Revision = revision
		}
		if r.IntN(5) > 0 {
			q.Need = 1 + r.IntN(4)
			q.Want = q.Need + r.IntN(40)
		}
		if last != 0 && r.IntN(2) == 0 {
			q.Since, q.Last = time.Duration(r.Int64N(int64(3*time.Second))), last
		}
		if len(blocks) > 0 && r.IntN(2) == 0 {
			n := r.IntN(len(blocks))
			q.Settle = blocks[n]
			q.Settle.Unused = r.IntN(q.Settle.Size + 1)
			blocks = append(blocks[:n], blocks[n+1:]...)
		}
		switch r.IntN(15) {
		case 0:
			q.Drain = time.Duration(1 + r.Int64N(int64(2*time.Second)))
		case 1:
			q.Drain = job.Undrain
		}
		switch r.IntN(6) {
		case 0:
			d.advance(time.Duration(r.Int64N(int64(3 * time.Second))))
		case 1:
			d.advance(-time.Duration(r.Int64N(int64(2 * time.Second))))
		case 2:
			d.advance(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
		}
		before, there := d.bucket(github)
		got := d.take(github, q)
		after, _ := d.bucket(github)
		if !there {
			before.Bucket = q.NewBucket(after.At)
		}
		want := before.Bucket.Take(after.At, &q)
		equal(d, fmt.Sprintf("answer %d to %+v", i, q), got, want)
		equal(d, fmt.Sprintf("bucket %d after %+v", i, q), after.Bucket, before.Bucket)
		if d.Failed() {
			return
		}
		last = got.At
		if got.Size > 0 {
			blocks = append(blocks, got.Block)
		}
	}
}

// Eight takers over two stores get what there was and what came, and no token twice.
func takersShare(d *database) {
	const rate, burst = 50, 40
	other := d.open(store.Settings{})
	from := d.now()
	var mu sync.Mutex
	taken := 0
	var group sync.WaitGroup
	for i := range 8 {
		l := d.tokens([]store.Store{d.Store, other}[i%2])
		group.Go(func() {
			for range 15 {
				got, err := l.Take(d.ctx, github, asking(rate, burst, 1, 1+i))
				if err != nil {
					d.Errorf("take: %v", err)
					return
				}
				mu.Lock()
				taken += got.Size
				mu.Unlock()
			}
		})
	}
	group.Wait()
	// What comes within half a second, half of the burst at most, may be in blocks already.
	most := burst + int(rate*d.now().Sub(from).Seconds()+min(rate/2, burst/2)) + 1
	if taken > most || taken < burst {
		d.Errorf("%d tokens were taken, want %d to %d", taken, burst, most)
	}
}

func bucketPerKey(d *database) {
	a, b := store.BucketName{Limit: "tenants", Key: "a"}, store.BucketName{Limit: "tenants", Key: "b"}
	equal(d, "size", d.take(a, asking(slow, 3, 3, 3)).Size, 3)
	equal(d, "size", d.take(a, asking(slow, 3, 1, 1)).Size, 0)
	equal(d, "size", d.take(b, asking(slow, 3, 3, 3)).Size, 3)
	list := must[[]store.BucketInfo](d, "buckets")(d.tokens(d.Store).Buckets(d.ctx, []string{"tenants"}, "a", 10))
	if len(list) != 1 || list[0].Key != "b" || list[0].Held != 3 {
		d.Errorf("the buckets after a are %+v, want b with a block of 3", list)
	}
	d.take(github, asking(slow, 3, 3, 3))
	list = must[[]store.BucketInfo](d, "buckets")(d.tokens(d.Store).Buckets(d.ctx, []string{"tenants", "none", "github", "tenants"}, "", 1))
	if len(list) != 2 || list[0].BucketName != github || list[1].BucketName != a {
		d.Errorf("the first bucket of each limit: %+v, want that of %v and %v", list, github, a)
	}
}

func drainBucket(d *database) {
	l := d.tokens(d.Store)
	had := d.take(github, asking(slow, 10, 4, 4))
	q := asking(slow, 10, 0, 0)
	q.Drain = time.Hour
	if err := l.Drain(d.ctx, github, q, &store.Operator{Name: "ann", Note: "they said 429"}); err != nil {
		d.Fatal(err)
	}
	refused := d.take(github, asking(slow, 10, 1, 1))
	if refused.Size != 0 || refused.Wait < time.Hour {
		d.Errorf("a drained bucket gives %d and says to wait %v, want an hour or more", refused.Size, refused.Wait)
	}
	// A block from before the drain brings nothing back.
	q = asking(slow, 10, 0, 0)
	q.Settle = job.Block{Taken: had.Taken, Size: had.Size, Unused: 4}
	d.take(github, q)
	q = asking(slow, 10, 0, 0)
	q.Drain = job.Undrain
	if err := l.Drain(d.ctx, github, q, nil); err != nil {
		d.Fatal(err)
	}
	if b, _ := d.bucket(github); b.Level >= job.TokenParts {
		d.Errorf("%d parts are there right after the drain", b.Level)
	}
	d.advance(10*time.Minute + time.Second) // one token
	equal(d, "size", d.take(github, asking(slow, 10, 1, 1)).Size, 1)
	// One that nobody has taken of can be drained, too.
	q.Drain = time.Minute
	if err := l.Drain(d.ctx, store.BucketName{Limit: "fresh"}, q, nil); err != nil {
		d.Fatal(err)
	}
	equal(d, "size", d.take(store.BucketName{Limit: "fresh"}, asking(slow, 10, 1, 1)).Size, 0)
	entries := must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, store.AuditFilter{}, store.AuditPage{Limit: 10})).Entries
	if len(entries) != 1 || entries[0].By != "ann" || entries[0].Action != "drain limit" || entries[0].Target != "github" {
		d.Errorf("the audit log has %+v, want ann's drain of github", entries)
	}
}

func bucketsGo(d *database) {
	for i := range 5 {
		d.take(store.BucketName{Limit: "tenants", Key: fmt.Sprint(i)}, asking(100, 10, 5, 5))
	}
	d.take(github, asking(slow/1000, 10, 10, 10)) // not full for weeks
	if due := must[store.Due](d, "due")(d.Store.Due(d.ctx)); due.Purge {
		d.Error("a purge is due at once")
	}
	d.advance(3 * time.Hour)
	if due := must[store.Due](d, "due")(d.Store.Due(d.ctx)); !due.Purge {
		d.Error("no purge is due, with full buckets left")
	}
	equal(d, "removed", must[int](d, "purge")(d.Store.Purge(d.ctx, 100)), 5)
	if list := must[[]store.BucketInfo](d, "buckets")(d.tokens(d.Store).Buckets(d.ctx, []string{"tenants"}, "", 10)); len(list) > 0 {
		d.Errorf("%d buckets are left that are full", len(list))
	}
	if _, ok := d.bucket(github); !ok {
		d.Error("a bucket is gone that is not full")
	}
	// Who has taken of one a moment ago knows that it is not full.
	q := asking(100, 10, 10, 10)
	q.Since = 20 * time.Millisecond
	equal(d, "size", d.take(store.BucketName{Limit: "tenants", Key: "0"}, q).Size, 0)
}

func bucketsApart(d *database) {
	other := d.tokens(d.open(store.Settings{Namespace: "other"}))
	equal(d, "size", d.take(github, asking(slow, 3, 3, 3)).Size, 3)
	equal(d, "size", must[job.TakeReply](d, "take")(other.Take(d.ctx, github, asking(slow, 3, 3, 3))).Size, 3)
	if list := must[[]store.BucketInfo](d, "buckets")(other.Buckets(d.ctx, []string{"github"}, "", 10)); len(list) != 1 {
		d.Errorf("the other namespace has %d buckets, want its own", len(list))
	}
}

func takeRefused(d *database) {
	for what, q := range map[string]job.TakeRequest{
		"no rate":        asking(0, 10, 1, 1),
		"no burst":       asking(1, 0, 1, 1),
		"less wanted":    asking(1, 10, 2, 1),
		"unused":         {Rate: job.Rate{PerSecond: 1, Burst: 1}, Settle: job.Block{Size: 1, Unused: 2}},
		"drain too long": {Rate: job.Rate{PerSecond: 1, Burst: 1}, Drain: store.MaxDrain + 1},
	} {
		_, err := d.tokens(d.Store).Take(d.ctx, github, q)
		if !errors.Is(err, job.ErrInvalid) {
			d.Errorf("%s: %v", what, err)
		}
	}
}
