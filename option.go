package pawl

import (
	"maps"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// EnqueueOption says how a job is to be run. Precedence: the call, then the
// type's Defaults, then the queue's settings, then the engine's, all as the
// process has them that enqueues.
type EnqueueOption interface{ enqueue(*draftBuilder) }

// HandleOption says how a handler is to be run.
type HandleOption interface{ handle(*registration) }

// PublishOption says more about an event.
type PublishOption interface{ publish(*eventBuilder) }

// EnqueuePublishOption serves jobs and events.
type EnqueuePublishOption interface {
	EnqueueOption
	PublishOption
}

// EnqueueHandleOption serves both.
type EnqueueHandleOption interface {
	EnqueueOption
	HandleOption
}

// draftBuilder is a job.Draft on its way to being complete.
type draftBuilder struct {
	job.Draft
	attempts bool         // were given
	unique   []UniqueRule // nil: not unique
	kept     time.Duration
	errs     []error
}

type enqueueOption func(*draftBuilder)

func (o enqueueOption) enqueue(d *draftBuilder) { o(d) }

type handleOption func(*registration)

func (o handleOption) handle(r *registration) { o(r) }

// Queue names the queue. Without it routes choose, then "default".
func Queue(name string) EnqueueOption { return enqueueOption(func(d *draftBuilder) { d.Queue = name }) }

// Priority orders jobs of a queue: 1 first, 9 last, 5 by default.
func Priority(p int) EnqueueOption { return enqueueOption(func(d *draftBuilder) { d.Priority = p }) }

// At makes the job due at a time of the store's clock. The past means now. An event is
// accepted at once, and appended at that time: no reader sees it before.
func At(t time.Time) EnqueuePublishOption { return dueOption{at: t} }

// In makes the job or event due after a time, counted by the store's clock.
func In(wait time.Duration) EnqueuePublishOption { return dueOption{in: wait} }

type dueOption struct {
	at time.Time
	in time.Duration
}

func (o dueOption) enqueue(d *draftBuilder) { d.At, d.In = o.at, o.in }
func (o dueOption) publish(b *eventBuilder) { b.At, b.In = o.at, o.in }

// Attempts is how often the job may fail, counting the last time; 25 by default,
// which with the default backoff takes about three days.
func Attempts(n int) EnqueueOption {
	return enqueueOption(func(d *draftBuilder) { d.Draft.Attempts, d.attempts = n, true })
}

// Deadline ends the job as dead when it is not done by then: its context is
// cancelled with cause ErrDeadline while it runs, and no attempt starts after. A
// job that At or In makes due only then would never run, and is refused.
func Deadline(t time.Time) EnqueueOption {
	return enqueueOption(func(d *draftBuilder) {
		if t.IsZero() {
			d.errs = append(d.errs, job.Invalid("deadline", t, "must be a time"))
		}
		d.Draft.Deadline = t
	})
}

// Timeout bounds one attempt: its context is cancelled with cause ErrTimeout.
// On a job it goes before the handler's.
func Timeout(limit time.Duration) EnqueueHandleOption { return timeoutOption(limit) }

type timeoutOption time.Duration

func (t timeoutOption) enqueue(d *draftBuilder) {
	if t <= 0 {
		d.errs = append(d.errs, job.Invalid("timeout", time.Duration(t), "must be more than 0"))
		return
	}
	d.Draft.Timeout = time.Duration(t)
}

func (t timeoutOption) handle(r *registration) {
	if t <= 0 {
		r.fault(job.Invalid("timeout", time.Duration(t), "must be more than 0"))
	}
	r.timeout = time.Duration(t)
}

// WithID gives the job an id of the caller's choice, so that a send whose
// outcome is unknown can be repeated: the job is accepted once.
func WithID(id ID) EnqueueOption {
	return enqueueOption(func(d *draftBuilder) { d.ID, d.Resend = id, true })
}

// Key says whose a job is: the customer, the order. Jobs are found by it, and a Limit
// with PerKey bounds, orders and shares out the jobs of each key. Of an event it says
// what the event is about: order holds among events of one topic and key.
func Key(key string) EnqueuePublishOption { return keyOption(key) }

type keyOption string

func (k keyOption) enqueue(d *draftBuilder) { d.Draft.Key = string(k) }
func (k keyOption) publish(b *eventBuilder) { b.Key = string(k) }

// Tags are words to find jobs by.
func Tags(tags ...string) EnqueueOption {
	return enqueueOption(func(d *draftBuilder) { d.Draft.Tags = append(d.Draft.Tags, tags...) })
}

// Needs names capabilities that a worker must have to run the job.
func Needs(capabilities ...string) EnqueueOption {
	return enqueueOption(func(d *draftBuilder) { d.Capabilities = append(d.Capabilities, capabilities...) })
}

// Headers travel with the job or event and reach its handler: trace context and the like.
func Headers(h map[string]string) EnqueuePublishOption { return headersOption(h) }

type headersOption map[string]string

func (h headersOption) enqueue(d *draftBuilder) {
	b, err := job.EncodeHeaders(h)
	if err != nil {
		d.errs = append(d.errs, err)
		return
	}
	d.HeaderBytes = b
}

func (h headersOption) publish(b *eventBuilder) { b.Publication.Headers = maps.Clone(h) }

// UniqueRule is a part of what makes a job unique.
type UniqueRule interface {
	unique(*draftBuilder, []string) []string
}

type uniqueRule func(*draftBuilder, []string) []string

func (u uniqueRule) unique(d *draftBuilder, parts []string) []string { return u(d, parts) }

// Unique accepts the job only when no live job of its kind is the same by these
// rules; otherwise the receipt names that job and says Duplicate. Without rules
// jobs are the same when their arguments are.
func Unique(rules ...UniqueRule) EnqueueOption {
	return enqueueOption(func(d *draftBuilder) {
		if slices.Contains(rules, nil) {
			d.errs = append(d.errs, job.Invalid("unique rule", "nil", "must not be nil"))
			return
		}
		if len(rules) == 0 {
			rules = []UniqueRule{ByArgs()}
		}
		d.unique = rules
	})
}

// ByKey compares a key of the caller's. An empty one is refused: it is mostly one
// that was forgotten, and would make all jobs of the kind one.
func ByKey(key string) UniqueRule {
	return uniqueRule(func(d *draftBuilder, parts []string) []string {
		if key == "" {
			d.errs = append(d.errs, job.Invalid("unique key", key, "must not be empty"))
		}
		return append(parts, "key", key)
	})
}

// ByArgs compares the encoded arguments.
func ByArgs() UniqueRule {
	return uniqueRule(func(d *draftBuilder, parts []string) []string { return append(parts, "args", string(d.Args)) })
}

// ByQueue tells jobs of different queues apart.
func ByQueue() UniqueRule {
	return uniqueRule(func(d *draftBuilder, parts []string) []string { return append(parts, "queue", d.Draft.Queue) })
}

// HeldFor keeps the job unique for a time after its end as well.
func HeldFor(period time.Duration) UniqueRule {
	return uniqueRule(func(d *draftBuilder, parts []string) []string {
		d.kept = period
		return parts
	})
}

// hashUnique applies the rules once everything else of the draft is known. A
// rule that only says HeldFor compares arguments.
func (d *draftBuilder) hashUnique() {
	parts := []string{"kind", d.Kind}
	for _, r := range d.unique {
		parts = r.unique(d, parts)
	}
	if len(parts) == 2 {
		parts = ByArgs().unique(d, parts)
	}
	d.Draft.Unique = job.Unique{Hash: job.UniqueHash(parts...), Period: d.kept}
}

// BackoffFunc gives the wait before the next attempt. It sees which attempt has
// failed, the error, and the job; a handler that knows the time itself returns
// RetryIn.
type BackoffFunc = job.BackoffFunc

// FailedAttempt is what a BackoffFunc sees.
type FailedAttempt = job.FailedAttempt

// HandleSubscribeOption serves handlers of jobs and of events.
type HandleSubscribeOption interface {
	HandleOption
	SubscribeOption
}

// Backoff sets a handler's wait between attempts of a job, or deliveries of an event. Events
// wait a second at first and five minutes at most without it.
func Backoff(f BackoffFunc) HandleSubscribeOption { return backoffOption{f} }

type backoffOption struct{ wait BackoffFunc }

func (o backoffOption) handle(r *registration) {
	if o.wait == nil {
		r.fault(job.Invalid("backoff", "nil", "must be a function"))
	}
	r.backoff = o.wait
}

func (o backoffOption) subscribe(s *subscribing) {
	if o.wait == nil {
		s.fault(job.Invalid("backoff", "nil", "must be a function"))
		return
	}
	s.config.Backoff = subscribeBackoff(o.wait)
}

// Exponential doubles the wait from base to max, spread over its upper half.
func Exponential(base, max time.Duration) BackoffFunc { return job.Exponential(base, max) }

// Constant waits the same time after each failure.
func Constant(wait time.Duration) BackoffFunc { return job.Constant(wait) }

// Use wraps a handler in middleware, the first one outermost.
func Use(m ...Middleware) HandleOption {
	return handleOption(func(r *registration) {
		for _, layer := range m {
			if layer == nil {
				r.fault(job.Invalid("middleware of "+r.kindText(), "nil", "must be a function"))
			}
		}
		r.middleware = append(r.middleware, m...)
	})
}

// Upgrade turns arguments of one version into those of the next, as bytes.
// Versions without an upgrade are decoded as they are. from is below the
// Version() of the handler's arguments: another upgrade would never run, and is
// a fault.
func Upgrade(from int, f func(args []byte) ([]byte, error)) HandleOption {
	return handleOption(func(r *registration) {
		if f == nil {
			r.fault(job.Invalid("upgrade", "nil", "must be a function"))
			return
		}
		if r.upgrades == nil {
			r.upgrades = map[int]func([]byte) ([]byte, error){}
		}
		if _, twice := r.upgrades[from]; twice {
			r.fault(job.Invalid("upgrade", from, "is given twice"))
		}
		r.upgrades[from] = f
	})
}
