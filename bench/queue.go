package main

import (
	"context"
	"strings"
)

// queue is what the works ask of a system: the smallest thing that all of them can do.
type queue interface {
	// Enqueue makes one job durable.
	Enqueue(ctx context.Context, p payload) error
	// Fill makes many jobs durable, by the fastest way the system documents.
	Fill(ctx context.Context, ps []payload) error
	// Work runs jobs until the returned function is called, which waits for what runs.
	Work(ctx context.Context, workers int, handle func(payload)) (stop func() error, err error)
	// Left counts the jobs whose final state is not committed.
	Left(ctx context.Context) (int, error)
	Close() error
}

// opener opens a system in the place of a run, and installs its schema if that is not there yet.
type opener func(ctx context.Context, at place) (queue, error)

// payload is the job of every work: about 100 bytes of JSON, decoded before the handler runs in every system.
type payload struct {
	Seq  int64  `json:"seq"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// jobKind names the job in systems that want a name.
const jobKind = "bench"

// Kind makes the payload a job for Pawl and for River.
func (payload) Kind() string { return jobKind }

var filler = strings.Repeat("x", 40)

func newPayload(seq int64) payload {
	return payload{Seq: seq, To: "somebody@example.org", Text: filler}
}

func payloads(n int) []payload {
	ps := make([]payload, n)
	for i := range ps {
		ps[i] = newPayload(int64(i))
	}
	return ps
}
