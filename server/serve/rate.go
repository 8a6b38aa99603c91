package serve

import (
	"sync"
	"time"
)

// maxBuckets bounds who is counted apart. Past it newcomers share one bucket.
const maxBuckets = 10_000

// rates bounds the requests a second of each caller.
type rates struct {
	perSecond float64
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
	others  bucket
	swept   time.Time
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newRates(perSecond int, now func() time.Time) *rates {
	return &rates{perSecond: float64(perSecond), now: now, buckets: map[string]*bucket{}}
}

// take reports whether a caller may make one more request.
func (r *rates) take(caller string) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[caller]
	if b == nil {
		if len(r.buckets) >= maxBuckets && now.Sub(r.swept) >= time.Second { // not with each: it walks all
			r.forget(now)
		}
		if b = &r.others; len(r.buckets) < maxBuckets {
			b = &bucket{}
			r.buckets[caller] = b
		}
	}
	most := 2 * r.perSecond
	if b.at.IsZero() {
		b.tokens = most
	} else {
		b.tokens = min(most, b.tokens+max(0, now.Sub(b.at).Seconds())*r.perSecond)
	}
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// forget drops buckets that are full again: they are as new ones.
func (r *rates) forget(now time.Time) {
	r.swept = now
	for caller, b := range r.buckets {
		if now.Sub(b.at) >= 2*time.Second {
			delete(r.buckets, caller)
		}
	}
}
