package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Handler works on deliveries. It is given one, or where Config.Lot allows it up to that many
// that were ready together, in ordered mode none two of one key. It returns nil when all
// are done, or one error for each, in order; any other number fails them all. When it panics
// over several, each is handed to it again by itself, at once: only the one that it panics
// over has failed.
//
// ctx ends when the member was lost (cause stream.ErrFeedLost) or a stop is past its bound
// (job.ErrStopping), not when a stop begins.
type Handler interface {
	Handle(ctx context.Context, lot []*Message) []error
}

// HandlerFunc is a handler of one delivery at a time.
type HandlerFunc func(ctx context.Context, m *Message) error

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, lot []*Message) []error {
	errs := make([]error, len(lot))
	for i, m := range lot {
		errs[i] = f(ctx, m)
	}
	return errs
}

// LotFunc is a handler of many.
type LotFunc func(ctx context.Context, lot []*Message) []error

// Handle implements Handler.
func (f LotFunc) Handle(ctx context.Context, lot []*Message) []error { return f(ctx, lot) }

// result is what a handler made of one delivery.
type result struct {
	err   error
	stack []byte // of a panic
}

var errExited = errors.New("the handler ended its goroutine (runtime.Goexit)")

// call runs a handler over a lot, in this goroutine, and gives one result for each.
func call(ctx context.Context, h Handler, lot []*Message) []result {
	results, panicked := callOnce(ctx, h, lot)
	if !panicked || len(lot) == 1 {
		return results
	}
	for i := range lot {
		if !lot[i].ruled() {
			one, _ := callOnce(ctx, h, lot[i:i+1])
			results[i] = one[0]
		}
	}
	return results
}

// callOnce calls a handler in a goroutine of its own where it may end that one.
func callOnce(ctx context.Context, h Handler, lot []*Message) (results []result, panicked bool) {
	results = make([]result, len(lot))
	all := func(r result) {
		for i := range results {
			results[i] = r
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		returned := false
		defer func() {
			if returned {
				return
			}
			panicked = true
			if value := recover(); value != nil {
				all(result{fmt.Errorf("panic: %v", value), debug.Stack()})
			} else {
				all(result{errExited, debug.Stack()})
			}
		}()
		errs := h.Handle(ctx, lot)
		returned = true
		switch len(errs) {
		case 0:
		case len(lot):
			for i, err := range errs {
				results[i].err = err
			}
		default:
			all(result{err: fmt.Errorf("the handler returned %d errors for %d events", len(errs), len(lot))})
		}
	}()
	<-ended
	return results, panicked
}
