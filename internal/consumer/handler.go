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
	if len(lot) == 1 {
		if err := f(ctx, lot[0]); err != nil {
			return []error{err}
		}
		return nil
	}
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

// flight is one lot on its way through the handler. A goroutine uses one for lot after lot; what
// handlers may keep, their messages, is made anew.
type flight struct {
	lot      []*task
	messages []*Message
	results  []result
	fresh    []Message // for what comes
	begun    bool      // the lot was handed over
	apart    bool      // the handler panicked over several: each is handed over by itself
	next     int       // of those
}

// madeAtOnce is how many messages are made at once. Who keeps one keeps these.
const madeAtOnce = 16

// board takes the next lot in; nil: there is none.
func (f *flight) board(c *Consumer, lot []*task) {
	clear(f.messages)
	clear(f.results)
	f.lot, f.messages, f.results = lot, f.messages[:0], f.results[:0]
	f.begun, f.apart, f.next = false, false, 0
	if len(f.fresh) < len(lot) {
		f.fresh = make([]Message, max(len(lot), madeAtOnce))
	}
	for i, it := range lot {
		d, m := it.delivery, &f.fresh[i]
		m.Event, m.Feed, m.Ref, m.Failures, m.Losses = d.Event, it.life.feed, d.Ref, it.failures, d.Losses
		m.id, m.consumer, m.life = d.Event.ID, c, it.life
		f.messages, f.results = append(f.messages, m), append(f.results, result{})
	}
	f.fresh = f.fresh[len(lot):]
}

// call runs the handler over the lot, so that there is a result for each. Where the handler
// ends its goroutine it does not return: another goes on by calling it again.
func (f *flight) call(ctx context.Context, h Handler) {
	if !f.begun {
		f.begun = true
		f.hand(ctx, h, 0, len(f.lot))
	}
	for f.apart && f.next < len(f.lot) {
		i := f.next
		f.next++
		if !f.messages[i].ruled() {
			f.hand(ctx, h, i, i+1)
		}
	}
}

// hand calls the handler once.
func (f *flight) hand(ctx context.Context, h Handler, from, to int) {
	all := func(r result) {
		for i := from; i < to; i++ {
			f.results[i] = r
		}
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		f.apart = f.apart || to-from > 1
		if value := recover(); value != nil {
			all(result{fmt.Errorf("panic: %v", value), debug.Stack()})
		} else {
			all(result{errExited, debug.Stack()})
		}
	}()
	errs := h.Handle(ctx, f.messages[from:to])
	returned = true
	switch len(errs) {
	case 0:
		all(result{})
	case to - from:
		for i, err := range errs {
			f.results[from+i] = result{err: err}
		}
	default:
		all(result{err: fmt.Errorf("the handler returned %d errors for %d events", len(errs), to-from)})
	}
}
