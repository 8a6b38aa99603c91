// Package limits keeps the buckets of rates. It owns the table bucket.
//
// What a bucket gives is decided by job.Bucket. Taking a block must be one statement,
// so take.go says the same in SQL; a test holds both against each other, on rows and
// requests at random.
package limits
