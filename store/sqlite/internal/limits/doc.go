// Package limits keeps the buckets of rates. It owns the table pawl_bucket. What a
// bucket gives is decided by job.Bucket; the one writer is the lock of its row.
package limits
