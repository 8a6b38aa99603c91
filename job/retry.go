package job

import (
	"math"
	"math/rand/v2"
	"time"
)

// Defaults of the wait between attempts.
const (
	BackoffBase = time.Second
	BackoffMax  = 30 * time.Minute
)

// Exponential doubles the wait with each burned attempt from base up to max,
// and spreads it over its upper half, so that jobs which failed together do
// not come back together.
func Exponential(base, max time.Duration) func(used int) time.Duration {
	return func(used int) time.Duration {
		d := ceiling(base, max, used)
		if d <= 1 {
			return d
		}
		return d/2 + rand.N(d-d/2) + 1
	}
}

// Constant waits the same time after each failure.
func Constant(d time.Duration) func(used int) time.Duration {
	return func(int) time.Duration { return d }
}

// NoBackoff retries at once.
func NoBackoff(int) time.Duration { return 0 }

// ceiling is base × 2^(used-1), at most max and without overflow.
func ceiling(base, max time.Duration, used int) time.Duration {
	if used < 1 {
		used = 1
	}
	f := float64(base) * math.Pow(2, float64(used-1))
	if f > float64(max) {
		return max
	}
	return time.Duration(f)
}
