// Package claims hands ready jobs to workers: it looks through the queues in
// order, leases what a worker can run, lets through gates what limits allow
// (gates.go), repeats an answer that was lost, and finds what no worker takes.
package claims
