// Package claims hands ready jobs to workers: it looks through the queues in
// order, leases what a worker can run, and repeats an answer that was lost.
package claims
