package pawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// Registrar takes handlers: an Engine, or Handlers on their own.
type Registrar interface{ register(*registration) }

// Handlers are handlers without an engine: for modules and tests. The zero
// value is ready; hand it to Engine.Register.
type Handlers struct {
	mu   sync.Mutex
	list []*registration
}

func (h *Handlers) register(r *registration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, r)
}

// since are the faults of those that were registered after the first seen ones.
func (h *Handlers) since(seen int) (late []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.list[seen:] {
		late = append(late, lateHandler(r))
	}
	return late
}

// Register adds the handlers that a set has now. Faults are reported by Run.
func (e *Engine) Register(h *Handlers) {
	if h == nil {
		e.register(&registration{faults: []error{job.Invalid("handlers", "nil", "must be a set of handlers")}})
		return
	}
	h.mu.Lock()
	list := append([]*registration(nil), h.list...)
	h.mu.Unlock()
	for _, r := range list {
		e.register(r)
	}
}

// register adds a handler. Run has its handlers when it begins: one that comes
// later is not called, which is logged at once and returned when Run ends. What
// runs goes on.
func (e *Engine) register(r *registration) {
	e.handlers.register(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop != nil {
		err := lateHandler(r)
		e.late = append(e.late, err)
		e.cfg.Logger.Error("a handler is not called before the next Run", "kind", r.kindText(), "error", err)
	}
}

func lateHandler(r *registration) error {
	return job.Invalid("handler of "+r.kindText(), "registered while Run runs", "must be registered before Run")
}

// registration is one handler with its options.
type registration struct {
	kinds      []string
	version    int
	timeout    time.Duration
	backoff    BackoffFunc
	middleware []Middleware
	upgrades   map[int]func([]byte) ([]byte, error)
	// bind makes the work for an engine, whose codec decodes.
	bind   func(e *Engine) Work
	faults []error
}

func (r *registration) fault(err error) { r.faults = append(r.faults, err) }

// Handle registers the handler of a kind: a function of one job. It returns nil
// when the job is done, an error to be tried again, or Snooze, RetryIn or
// Dead.
// The function must be safe for concurrent use. Register before Run: a handler
// that comes later counts from the next Run on; the running one logs it, and
// returns an error that names it when it ends.
func Handle[A Args](to Registrar, work func(ctx context.Context, j *Job[A]) error, opts ...HandleOption) {
	r := registrationOf[A](opts)
	if work == nil {
		r.fault(job.Invalid("handler of "+r.kindText(), "nil", "must be a function"))
	}
	r.bind = func(e *Engine) Work {
		return func(ctx context.Context, i *Info) error {
			args, err := decode[A](e, r, i.task)
			if err != nil {
				return err
			}
			return work(ctx, &Job[A]{Info: *i, Args: args})
		}
	}
	to.register(r)
}

// HandleResult registers a handler whose result is kept with the job; see Result.
func HandleResult[A Args, R any](to Registrar, work func(ctx context.Context, j *Job[A]) (R, error), opts ...HandleOption) {
	if work == nil {
		Handle[A](to, nil, opts...)
		return
	}
	Handle(to, func(ctx context.Context, j *Job[A]) error {
		result, err := work(ctx, j)
		if err != nil {
			return err
		}
		return j.setResult(result)
	}, opts...)
}

// HandleRaw registers the handler of a kind without a Go type: it gets the
// payload as it is. It takes arguments of version 0 only, as RawArgs are.
func HandleRaw(to Registrar, kind string, work func(ctx context.Context, j *Job[Raw]) error, opts ...HandleOption) {
	r := &registration{kinds: []string{kind}}
	r.apply(opts)
	for _, from := range slices.Sorted(maps.Keys(r.upgrades)) {
		r.fault(job.Invalid("upgrade of "+kind, from, "would never run: HandleRaw takes arguments as they are"))
	}
	if err := job.CheckName("kind", kind); err != nil {
		r.fault(err)
	}
	if work == nil {
		r.fault(job.Invalid("handler of "+kind, "nil", "must be a function"))
	}
	r.bind = func(*Engine) Work {
		return func(ctx context.Context, i *Info) error {
			return work(ctx, &Job[Raw]{Info: *i, Args: i.task.Job.Args})
		}
	}
	to.register(r)
}

// HandleRawResult is HandleRaw with a result, which is kept as it is; nil keeps none.
func HandleRawResult(to Registrar, kind string, work func(ctx context.Context, j *Job[Raw]) (Raw, error), opts ...HandleOption) {
	if work == nil {
		HandleRaw(to, kind, nil, opts...)
		return
	}
	HandleRaw(to, kind, func(ctx context.Context, j *Job[Raw]) error {
		result, err := work(ctx, j)
		if err != nil || result == nil {
			return err
		}
		return j.keepResult(result)
	}, opts...)
}

// registrationOf reads everything that the type of the arguments says.
func registrationOf[A Args](opts []HandleOption) *registration {
	r := &registration{}
	t := reflect.TypeFor[A]()
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		r.fault(job.Invalid("handler arguments", t.String(), "must be a value type, not a pointer or an interface"))
		return r
	}
	if err := checkMethods(t); err != nil {
		r.fault(err)
	}
	var zero A
	kind, err := kindOf(zero)
	if err != nil {
		r.fault(err)
		return r
	}
	r.kinds = []string{kind}
	if a, ok := any(zero).(ArgsWithAliases); ok {
		r.kinds = append(r.kinds, a.KindAliases()...)
	}
	for _, k := range r.kinds {
		if err := job.CheckName("kind", k); err != nil {
			r.fault(err)
		}
	}
	if r.version = versionOf(zero); r.version < 0 || r.version > job.MaxVersion {
		r.fault(job.Invalid("version of "+kind, r.version, fmt.Sprintf("must be 0..%d", job.MaxVersion)))
	}
	r.apply(opts)
	for _, from := range slices.Sorted(maps.Keys(r.upgrades)) {
		if from < 0 || from >= r.version {
			r.fault(job.Invalid("upgrade of "+kind, from, fmt.Sprintf("would never run: must be below the Version() of %v, which is %d, and 0 or more", t, r.version)))
		}
	}
	return r
}

func (r *registration) apply(opts []HandleOption) {
	for _, o := range opts {
		if o == nil {
			r.fault(job.Invalid("option of "+r.kindText(), "nil", "must not be nil"))
			continue
		}
		o.handle(r)
	}
}

func (r *registration) kindText() string {
	if len(r.kinds) == 0 {
		return "?"
	}
	return r.kinds[0]
}

// decode reads the arguments, step by step from their version to this build's.
// What cannot be read is parked with the reason and costs no attempt.
func decode[A Args](e *Engine, r *registration, t *runner.Task) (args A, err error) {
	j := &t.Job
	data := j.Args
	for v := j.Version; v < r.version; v++ {
		if up, ok := r.upgrades[v]; ok {
			if data, err = up(data); err != nil {
				return args, undecodedError{j.Kind, j.Version, fmt.Errorf("upgrade from %d: %w", v, err)}
			}
		}
	}
	if err := e.cfg.Codec.Unmarshal(data, &args); err != nil {
		return args, undecodedError{j.Kind, j.Version, err}
	}
	return args, nil
}

// kinds are the handlers as the runner takes them; all faults at once.
// The number is how many registrations it has seen.
func (e *Engine) kinds() ([]runner.Kind, int, error) {
	e.handlers.mu.Lock()
	defer e.handlers.mu.Unlock()
	var (
		errs  []error
		kinds []runner.Kind
		taken = map[string]bool{}
	)
	for _, r := range e.handlers.list {
		errs = append(errs, r.faults...)
		if len(r.faults) > 0 {
			continue
		}
		work := wrap(catching(r.bind(e)), append(append([]Middleware(nil), e.cfg.Middleware...), r.middleware...))
		for _, k := range r.kinds {
			if taken[k] {
				errs = append(errs, job.Invalid("handler", k, "is registered twice"))
				continue
			}
			taken[k] = true
			kinds = append(kinds, runner.Kind{
				Name: k, Version: r.version, Timeout: r.timeout, Backoff: r.backoff,
				Handler: &handler{engine: e, work: work},
			})
		}
	}
	return kinds, len(e.handlers.list), errors.Join(errs...)
}

// handler is the runner's view of a registered function.
type handler struct {
	engine *Engine
	work   Work
}

// catching turns a panic of the handler into an error, inside of all middleware,
// so that they see it. The run remembers it in case they do not pass it on.
func catching(work Work) Work {
	return func(ctx context.Context, i *Info) (err error) {
		defer func() {
			if value := recover(); value != nil {
				p := &PanicError{Value: value, Stack: debug.Stack()}
				if i.says != nil { // else a middleware has handed on an Info of its own
					i.says.panicked.Store(p)
				}
				err = p
			}
		}()
		if i.says != nil {
			i.says.enter(ctx)
		}
		return work(ctx, i)
	}
}

// Work runs one job and reads its outcome.
func (h *handler) Work(ctx context.Context, t *runner.Task) (o job.Outcome) {
	i := newInfo(t, h.engine)
	ctx = context.WithValue(ctx, infoKey{}, i)
	i.says.ctx = ctx
	defer func() {
		if s := i.says.suspended.Load(); s != nil { // a middleware's panic does not count either
			if p := recover(); p != nil {
				h.swallowed(ctx, i, fmt.Sprintf("panic: %v", p))
			}
			o = s.outcome()
		}
	}()
	if h.engine.cfg.Hooks.Error != nil {
		defer func() {
			if p := recover(); p != nil {
				h.report(ctx, i, &PanicError{Value: p, Stack: debug.Stack()}, i.Attempt >= i.MaxAttempts)
				panic(p) // of a middleware: the runner's to handle; the stack below is still its own
			}
		}()
	}
	err := h.work(ctx, i)
	panicked := i.says.panicked.Load()
	if panicked != nil && err == nil {
		err = panicked // a middleware has dropped it; the job is not done
	}
	if s := i.says.suspended.Load(); s != nil {
		if !errors.Is(err, s) {
			h.swallowed(ctx, i, fmt.Sprint(err))
		}
		i.says.end()
		return s.outcome()
	}
	o = job.Outcome{Kind: job.Succeeded}
	if err != nil {
		o = outcome(err)
	}
	if panicked != nil {
		o.Panicked, o.Stack = true, string(panicked.Stack)
	}
	then := i.says.end()
	if o.Kind == job.Succeeded {
		o.Result, o.Then = i.says.result, then
		return o
	}
	if o.Kind == job.Failed && panicked == nil && calledBack(ctx) {
		return o // the echo of a cancellation: the runner does not count it as a failure either
	}
	tooOften := o.Kind == job.Throttled && i.Throttles >= job.MaxThrottles // which counts as a failure
	if o.Kind == job.Failed || o.Kind == job.GaveUp || tooOften || storeFault(err) {
		h.report(ctx, i, err, t.Final(ctx, o))
	}
	return o
}

// calledBack reports whether a handler was told to end: its job was cancelled, its
// lease lost, or the worker stops.
func calledBack(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrCancelled) || errors.Is(cause, ErrStopping) || errors.Is(cause, ErrLeaseLost)
}

// report calls the error hook and survives it: the run's outcome is the
// handler's, not the hook's.
func (h *handler) report(ctx context.Context, i *Info, err error, final bool) {
	hook := h.engine.cfg.Hooks.Error
	if hook == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.engine.cfg.Logger.Error("error hook panicked", "job", i.ID, "kind", i.Kind, "panic", p)
		}
	}()
	hook(ctx, i, err, final)
}
