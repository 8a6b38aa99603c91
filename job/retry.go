package job

import (
	"math"
	"math/rand/v2"
	"time"
)

// Defaults of the wait between attempts. With DefaultAttempts a job that always
// fails is tried for about three days: over a weekend, until somebody looks.
const (
	BackoffBase = time.Second
	BackoffMax  = 6 * time.Hour
)

// FailedAttempt is a failure that another attempt follows, as a backoff function
// sees it.
type FailedAttempt struct {
	Attempt int   // that failed, from 1
	Err     error // what the handler returned, or its panic
	Job     *Job  // as it was claimed; to read only
}

// BackoffFunc gives the wait before the next attempt.
type BackoffFunc func(f FailedAttempt) time.Duration

// Exponential doubles the wait with each burned attempt from base up to max,
// and spreads it over its upper half, so that jobs which failed together do
// not come back together.
func Exponential(base, max time.Duration) BackoffFunc {
	return growing(base, max, 2)
}

// growing is Exponential with another factor than two.
func growing(base, max time.Duration, factor float64) BackoffFunc {
	return func(f FailedAttempt) time.Duration {
		d := ceiling(base, max, factor, f.Attempt)
		if d <= 1 {
			return d
		}
		return d/2 + rand.N(d-d/2) + 1
	}
}

// Constant waits the same time after each failure.
func Constant(d time.Duration) BackoffFunc {
	return func(FailedAttempt) time.Duration { return d }
}

// NoBackoff retries at once.
func NoBackoff(FailedAttempt) time.Duration { return 0 }

// ceiling is base × factor^(attempt-1), at most max and without overflow.
func ceiling(base, max time.Duration, factor float64, attempt int) time.Duration {
	if attempt < 1 {
		attempt = 1
	}
	f := float64(base) * math.Pow(factor, float64(attempt-1))
	if f > float64(max) {
		return max
	}
	return time.Duration(f)
}
