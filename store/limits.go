package store

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Limits is a store that keeps the buckets of rates. What a bucket gives is decided by
// job.Bucket, under the lock of its row and by the store's clock.
type Limits interface {
	// Take takes a block of tokens, or says when to ask again, and settles the caller's
	// last block on the way: one statement. When the answer is lost, what was taken is
	// lost until its time is over, and so is what was to be given back: the caller may
	// not say it again.
	Take(ctx context.Context, of BucketName, q job.TakeRequest) (job.TakeReply, error)
	// Drain empties a bucket for a time (q.Drain), or ends a drain. With an operator,
	// its audit entry commits with it.
	Drain(ctx context.Context, of BucketName, q job.TakeRequest, op *Operator) error
	// Buckets lists buckets of limits, by limit and key: up to n of each limit, those
	// after a key. Those that are not kept are full. It is one statement.
	Buckets(ctx context.Context, limits []string, after string, n int) ([]BucketInfo, error)
}

// BucketName names a bucket: a limit, and the key where it is per key.
type BucketName struct{ Limit, Key string }

// BucketInfo is how a bucket stood when it was last changed.
type BucketInfo struct {
	BucketName
	job.Bucket
	Changed time.Time
}

// Bounds of buckets.
const (
	MaxBuckets = 1000           // of one limit in one list
	MaxDrain   = 24 * time.Hour // of one drain
)

// CheckTake refuses what no bucket can give.
func CheckTake(of BucketName, q *job.TakeRequest) error {
	errs := []error{job.CheckName("limit", of.Limit)}
	if of.Key != "" {
		errs = append(errs, job.CheckText("key", of.Key, 0, job.MaxKey))
	}
	if !(q.PerSecond >= job.MinPerSecond && q.PerSecond <= job.MaxPerSecond) {
		errs = append(errs, job.Invalid("rate", q.PerSecond, "must be the PerSecond of a limit"))
	}
	if q.Burst < 1 || q.Burst > job.MaxBurst {
		errs = append(errs, job.Invalid("burst", q.Burst, "must be the Burst of a limit"))
	}
	if q.Need < 0 || q.Want < q.Need || q.Want > job.MaxBurst {
		errs = append(errs, job.Invalid("tokens", q.Need, "must be 0 or more, and as many or more wanted"))
	}
	if s := q.Settle; s.Size < 0 || s.Unused < 0 || s.Unused > s.Size || s.Size > job.MaxBurst {
		errs = append(errs, job.Invalid("unused tokens", s.Unused, "must be 0 to those of the block"))
	}
	if q.Drain > MaxDrain {
		errs = append(errs, job.Invalid("drain", q.Drain, "must be at most "+MaxDrain.String()))
	}
	return errors.Join(errs...)
}

// String is the limit, with the key where it has one.
func (n BucketName) String() string {
	if n.Key == "" {
		return n.Limit
	}
	return n.Limit + " of key " + n.Key
}

// DrainAction is what an audit entry calls a drain, or its end, and its target.
func DrainAction(of BucketName, d time.Duration) (action, target string) {
	if d == job.Undrain {
		return "undrain limit", of.String()
	}
	return "drain limit", of.String()
}
