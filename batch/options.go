package batch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Options are the rules of a batcher. Zero means the default in brackets.
type Options struct {
	// Name tells this batcher from others in logs and metrics: it stands in front of the errors the batcher makes, in
	// every Report, and an Observer with the power of [Namer] is told once. Up to 128 bytes of printable text. [none]
	Name string

	Policy Policy // when waiting items are ready to become a batch [Immediate()]

	// MaxWait is how long an item may wait before its batch is ready whatever the policy says [1 s; the duration of
	// Duration(d)]. It does not lift the limits on concurrency: a ready batch starts when there is a place.
	MaxWait time.Duration

	MaxBatch    int // items in one batch [100]
	Concurrency int // batches of one key that acquire or process at the same time [10]
	MaxWaiting  int // full batches' worth of items of one key that may wait to start [2 × Concurrency; 1 with RejectWhenFull]

	TotalConcurrency int // batches of all keys that acquire or process at the same time [1000]
	TotalItems       int // items of all keys that are accepted and not yet answered [100,000]
	TotalBytes       int // what these items may weigh together, by Work.Weigh [64 MiB; only with Weigh]

	// AcquireTimeout bounds the context of one Work.Acquire [30 s; only with Acquire].
	AcquireTimeout time.Duration

	// Bisect reports whether err, which failed a whole batch, may be the fault of one item. If so the batch is processed
	// again in two halves, and so on, until the items that fail are alone with their errors: up to 2n-1 calls for n
	// items. Only use it when a failed call leaves nothing behind and its inputs as they were. [never; AnyError is the
	// simplest choice]
	Bisect func(err error) bool

	Observer Observer // is told what happens; see also Tracer [none]
}

// AnyError is an Options.Bisect that splits a batch whatever its error was.
func AnyError(error) bool { return true }

const (
	mostCount = 1 << 20 // bound of the limits per key, so that their products fit an int64
	mostTotal = 1 << 30 // bound of the limits over all keys, so that their sums fit an int
	mostName  = 128     // bytes of a name
)

// withDefaults fills what was left at zero. It changes no value that was set, so that check sees them as given.
func (o Options) withDefaults(weighs bool) Options {
	o.MaxBatch = cmp.Or(o.MaxBatch, 100)
	o.Concurrency = cmp.Or(o.Concurrency, 10)
	if o.Policy.reject {
		o.MaxWaiting = cmp.Or(o.MaxWaiting, 1)
	}
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 2*o.Concurrency)
	o.TotalConcurrency = cmp.Or(o.TotalConcurrency, 1000)
	o.TotalItems = cmp.Or(o.TotalItems, 100_000)
	if weighs {
		o.TotalBytes = cmp.Or(o.TotalBytes, 64<<20)
	}
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, 30*time.Second)
	if o.Policy.kind == duration {
		o.MaxWait = cmp.Or(o.MaxWait, max(0, o.Policy.wait))
	}
	o.MaxWait = cmp.Or(o.MaxWait, time.Second)
	return o
}

// check reports every fault at once. It runs on options whose defaults are filled in.
func (o Options) check(weighs bool) error {
	faults := []error{
		checkName(o.Name),
		o.checkPace(),
		within("MaxBatch", o.MaxBatch, mostCount),
		within("Concurrency", o.Concurrency, mostCount),
		within("TotalConcurrency", o.TotalConcurrency, mostTotal),
		within("TotalItems", o.TotalItems, mostTotal),
		positive("MaxWait", o.MaxWait),
		positive("AcquireTimeout", o.AcquireTimeout),
	}
	if o.MaxBatch > 0 { // otherwise a hint above it is a second complaint about one fault, and so below
		faults = append(faults, o.Policy.check(o.MaxBatch))
	}
	if o.Concurrency > 0 && !o.Policy.reject {
		faults = append(faults, within("MaxWaiting", o.MaxWaiting, 2*mostCount))
	}
	switch {
	case weighs:
		faults = append(faults, within("TotalBytes", o.TotalBytes, math.MaxInt))
	case o.TotalBytes != 0:
		faults = append(faults, fmt.Errorf("%w: Options.TotalBytes is %d but there is no Work.Weigh to tell what an item weighs", ErrInvalid, o.TotalBytes))
	}
	return errors.Join(faults...)
}

// checkPace refuses what would let a policy that rejects break its pace.
func (o Options) checkPace() error {
	if !o.Policy.reject || o.Policy.kind != duration {
		return nil
	}
	var faults []error
	if o.MaxWaiting != 1 {
		faults = append(faults, fmt.Errorf("%w: Options.MaxWaiting is %d; it must be 1 with %v", ErrInvalid, o.MaxWaiting, o.Policy))
	}
	if o.MaxWait > 0 && o.MaxWait < o.Policy.wait {
		faults = append(faults, fmt.Errorf("%w: Options.MaxWait is %v; it must be at least %v with %v", ErrInvalid, o.MaxWait, o.Policy.wait, o.Policy))
	}
	return errors.Join(faults...)
}

func checkName(name string) error {
	if len(name) > mostName {
		return fmt.Errorf("%w: Options.Name is %d bytes long; it must be at most %d", ErrInvalid, len(name), mostName)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: Options.Name is %q; it must be printable text", ErrInvalid, name)
	}
	return nil
}

// full is from how many waiting items on a batch is ready for being full; more than can ever wait when it never is.
func (o Options) full() int {
	if o.Policy.reject {
		return math.MaxInt
	}
	return o.MaxBatch
}

func within(field string, value, most int) error {
	if value < 1 || value > most {
		return fmt.Errorf("%w: Options.%s is %d; it must be from 1 to %d", ErrInvalid, field, value, most)
	}
	return nil
}

func positive(field string, value time.Duration) error {
	if value <= 0 {
		return fmt.Errorf("%w: Options.%s is %v; it must be above 0", ErrInvalid, field, value)
	}
	return nil
}

// keyFull refuses an item of a key that has all the items waiting that it may have.
func (o Options) keyFull() error {
	if o.Policy.reject { // its one batch is full, and MaxBatch is what would have to be larger
		return &QueueFullError{Name: o.Name, Limit: "MaxBatch", Max: o.MaxBatch, Held: o.MaxBatch, Asked: 1}
	}
	return &QueueFullError{Name: o.Name, Limit: "MaxWaiting", Max: o.MaxWaiting, Held: o.MaxWaiting, Asked: 1}
}

// wait is how long a batch may stay short of ready; 0 when the policy never lets one wait.
func (o Options) wait() time.Duration {
	switch {
	case o.Policy.kind == immediate, o.Policy.kind == balanced && o.Policy.hint == 1:
		return 0
	case o.Policy.kind == duration:
		return min(o.Policy.wait, o.MaxWait)
	default:
		return o.MaxWait
	}
}
