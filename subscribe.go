package pawl

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// SubscribeOption says how a group takes its events.
type SubscribeOption interface{ subscribe(*subscribing) }

// subscribing is a subscription on its way to being complete.
type subscribing struct {
	config consumer.Config
	errs   []error
}

func (s *subscribing) fault(err error) { s.errs = append(s.errs, err) }

type subscribeOption func(*subscribing)

func (o subscribeOption) subscribe(s *subscribing) { o(s) }

// Ordered handles events of one topic and key one after another, in their order, over all
// members of the group. One that fails keeps those of its key behind it waiting.
func Ordered() SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.config.Membership.Mode = stream.Ordered })
}

// FanOut gives each member of the group every event. Give members names (Member): the place
// of one that died is kept under its name for a week.
func FanOut() SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.config.Membership.Mode = stream.FanOut })
}

// Member names this member of the group, among those that live. One is made without it.
func Member(name string) SubscribeOption {
	return subscribeOption(func(s *subscribing) {
		s.config.Membership.Member = name
		if err := job.CheckText("member", name, 1, stream.MaxText); err != nil {
			s.fault(err)
		}
	})
}

// InFlight is how many events handlers of this member work on at once, exactly; 16 by default.
func InFlight(n int) SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.number("in flight", n, &s.config.InFlight) })
}

// Fetch is how many events are fetched at once, at most; 64 by default.
func Fetch(n int) SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.number("fetch", n, &s.config.Fetch) })
}

// MaxBehind is how many events of one key may wait behind one that fails, in ordered mode,
// before their stripe is not read any more; 64 by default.
func MaxBehind(n int) SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.number("behind", n, &s.config.Behind) })
}

func (s *subscribing) number(field string, n int, into *int) {
	if n < 1 {
		s.fault(job.Invalid(field, n, "must be at least 1"))
	}
	*into = n
}

// AckManually leaves it to the handler to say what becomes of an event: what it returns
// decides nothing. Without a word the event comes again after a second, uncounted.
func AckManually() SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.config.Ack = consumer.Manual })
}

// AckOnReceive acknowledges events before they are handled: each is handled at most once, and
// what becomes of it changes nothing.
func AckOnReceive() SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.config.Ack = consumer.OnReceive })
}

// Trouble is something that went wrong in a subscription, and that it lives with.
type Trouble = consumer.Trouble

// TroubleScope is where a trouble came from: read, decode, handler, ack, reclaim or panic.
type TroubleScope = consumer.Scope

// OnTrouble is told what goes wrong in a subscription. It must not block.
func OnTrouble(f func(Trouble)) SubscribeOption {
	return subscribeOption(func(s *subscribing) { s.config.Observe = f })
}

// Subscribe makes this process a member of a group of consumers, while Run runs: the members
// share the events of the topics that match a pattern ("orders.placed", "orders.*", "orders.>"
// or ">"), each event goes to one of them. nil acknowledges an event; an error has it come
// again, later each time, and after its deliveries it is a dead letter (DeadLetter), or parked
// with the group. Two groups each see everything.
//
// The group gets events of the type T only (EventType); a Message of Raw gets all of them. A
// group keeps what it was made with: topics, type and mode.
//
// The function must be safe for concurrent use. Faults are reported by Run.
func Subscribe[T any](
	e *Engine, group, topics string, handle func(ctx context.Context, m *Message[T]) error, opts ...SubscribeOption,
) *Subscription {
	s := newSubscription[T](e, group, topics, opts)
	if handle == nil {
		s.fault(job.Invalid("handler of "+group, "nil", "must be a function"))
	}
	s.config.Handler = consumer.HandlerFunc(func(ctx context.Context, d *consumer.Message) error {
		m, ok := messageOf[T](e, d)
		if !ok {
			return nil
		}
		return handle(ctx, m)
	})
	return e.subscriptions.add(e, s)
}

// SubscribeBatch is Subscribe for a handler of many events at once: as many as are there, up
// to Batch.Size, and where Batch.Key is given those that share it. It returns nil when all are
// done, or one error for each, in order. When it panics over several, each comes again by
// itself at once: only the one that it panics over has failed.
func SubscribeBatch[T any](
	e *Engine, group, topics string, handle func(ctx context.Context, ms []*Message[T]) []error, b Batch[T], opts ...SubscribeOption,
) *Subscription {
	s := newSubscription[T](e, group, topics, opts)
	switch {
	case handle == nil:
		s.fault(job.Invalid("handler of "+group, "nil", "must be a function"))
	case b.Size < 1 || b.Size > maxBatchSize:
		s.fault(job.Invalid("batch size", b.Size, fmt.Sprintf("must be 1..%d", maxBatchSize)))
	case b.Wait != 0:
		s.fault(job.Invalid("batch wait", b.Wait, "must be 0 for events: a call takes what is there"))
	case b.Observer != nil:
		s.fault(job.Invalid("batch observer", "one", "cannot be had for events"))
	}
	s.config.Lot = max(b.Size, 1)
	if s.config.InFlight == 0 {
		s.config.InFlight = max(consumer.DefaultInFlight, s.config.Lot)
	}
	if s.config.Fetch == 0 {
		s.config.Fetch = max(consumer.DefaultFetch, s.config.InFlight)
	}
	s.config.Handler = consumer.LotFunc(func(ctx context.Context, lot []*consumer.Message) []error {
		return handleLot(ctx, e, lot, b.Key, handle)
	})
	return e.subscriptions.add(e, s)
}

// handleLot hands messages over that can be decoded, those of one key in each call.
func handleLot[T any](
	ctx context.Context, e *Engine, lot []*consumer.Message, key func(T) string, handle func(context.Context, []*Message[T]) []error,
) []error {
	errs := make([]error, len(lot))
	places := map[string][]int{}
	messages := make([]*Message[T], len(lot))
	var keys []string
	for i, d := range lot {
		m, ok := messageOf[T](e, d)
		if !ok {
			continue
		}
		messages[i] = m
		k := ""
		if key != nil {
			k = key(m.Data)
		}
		if places[k] == nil {
			keys = append(keys, k)
		}
		places[k] = append(places[k], i)
	}
	if len(keys) == 1 && len(places[keys[0]]) == len(lot) {
		return handle(ctx, messages) // who panics over them is found by the caller
	}
	for _, k := range keys {
		some := make([]*Message[T], len(places[k]))
		for j, i := range places[k] {
			some[j] = messages[i]
		}
		for j, err := range handleSome(ctx, some, handle) {
			errs[places[k][j]] = err
		}
	}
	return errs
}

// handleSome is one call. When it panics over several, each is handed over by itself.
func handleSome[T any](ctx context.Context, some []*Message[T], handle func(context.Context, []*Message[T]) []error) (errs []error) {
	call := func(list []*Message[T]) (errs []error, panicked *PanicError) {
		defer func() {
			if value := recover(); value != nil {
				panicked = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		return handle(ctx, list), nil
	}
	errs, panicked := call(some)
	switch {
	case panicked != nil && len(some) == 1:
		return []error{panicked}
	case panicked != nil:
		for _, m := range some {
			errs = append(errs, handleSome(ctx, []*Message[T]{m}, handle)...)
		}
		return errs
	case len(errs) == 0:
		return make([]error, len(some))
	case len(errs) != len(some):
		err := fmt.Errorf("pawl: a batch handler must return no errors or one for each event: it returned %d, and had %d", len(errs), len(some))
		errs = make([]error, len(some))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// newSubscription reads the options.
func newSubscription[T any](e *Engine, group, topics string, opts []SubscribeOption) *subscribing {
	s := &subscribing{}
	m := &s.config.Membership
	m.Group = group
	f := stream.Filter{Topic: topics, Type: eventTypeFor[T]()}
	var err error
	if m.Match, err = f.Matcher(); err != nil {
		s.fault(err)
	}
	for _, o := range opts {
		if o == nil {
			s.fault(job.Invalid("option", "nil", "must be one"))
			continue
		}
		o.subscribe(s)
	}
	return s
}

// eventTypeFor is the type of events that a subscriber of T gets; "" for all.
func eventTypeFor[T any]() string {
	var zero T
	if any(zero) == nil { // an interface: nothing is known of it
		return ""
	}
	return eventTypeOf(zero)
}

// subscribeBackoff makes a backoff of events of one of jobs.
func subscribeBackoff(f BackoffFunc) consumer.BackoffFunc {
	return func(d consumer.Failed) time.Duration { return f(FailedAttempt{Attempt: d.Failures, Err: d.Err}) }
}
