package pawltest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

var errNoMail = errors.New("no mail server")

func TestU10_WorkReturnsTheOutcomeOfOneRun(t *testing.T) {
	for name, c := range map[string]struct {
		work  func(ctx context.Context, j *pawl.Job[welcome]) error
		opts  []pawltest.Option
		state job.State
		err   error  // that the error is
		text  string // of the error
	}{
		"done":     {work: func(context.Context, *pawl.Job[welcome]) error { return nil }, state: job.Done},
		"fails":    {work: func(context.Context, *pawl.Job[welcome]) error { return errNoMail }, state: job.Waiting, err: errNoMail},
		"gives up": {work: func(context.Context, *pawl.Job[welcome]) error { return pawl.Dead(errNoMail) }, state: job.Dead, err: errNoMail},
		"is out of attempts": {
			work: func(context.Context, *pawl.Job[welcome]) error { return errNoMail },
			opts: []pawltest.Option{pawltest.Enqueuing(pawl.Attempts(1))}, state: job.Dead, err: errNoMail,
		},
		"panics":                 {work: func(context.Context, *pawl.Job[welcome]) error { panic("oops") }, state: job.Waiting, text: "panic: oops"},
		"panics with an error":   {work: func(context.Context, *pawl.Job[welcome]) error { panic(errNoMail) }, state: job.Waiting, text: "panic: no mail server"},
		"ends its own goroutine": {work: func(context.Context, *pawl.Job[welcome]) error { runtime.Goexit(); return nil }, state: job.Waiting, text: "ended its goroutine"},
		"times out": {
			work: func(ctx context.Context, _ *pawl.Job[welcome]) error { <-ctx.Done(); return context.Cause(ctx) },
			opts: []pawltest.Option{pawltest.Handling(pawl.Timeout(time.Millisecond))}, state: job.Waiting, err: pawl.ErrTimeout,
		},
		"is put off": {work: func(context.Context, *pawl.Job[welcome]) error { return pawl.Snooze(time.Hour) }, state: job.Waiting, text: "snooze"},
		"goes through middleware": {
			work: func(context.Context, *pawl.Job[welcome]) error { return nil },
			opts: []pawltest.Option{pawltest.Handling(pawl.Use(func(pawl.Work) pawl.Work {
				return func(context.Context, *pawl.Info) error { return errNoMail }
			}))},
			state: job.Waiting, err: errNoMail,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			j, err := pawltest.Work(t, func(ctx context.Context, j *pawl.Job[welcome]) error {
				calls++
				if j.Args.User != 42 || j.Kind != "welcome" || j.Run != 1 {
					t.Errorf("it got %+v", j)
				}
				return c.work(ctx, j)
			}, welcome{42}, c.opts...)
			if j.State != c.state || j.Run != 1 {
				t.Errorf("the job is %s after run %d, want %s after 1", j.State, j.Run, c.state)
			}
			switch {
			case c.err == nil && c.text == "" && err != nil, c.err != nil && !errors.Is(err, c.err):
				t.Errorf("it returned %v, want %v", err, c.err)
			case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)):
				t.Errorf("it returned %v, want %q", err, c.text)
			}
			if calls > 1 {
				t.Errorf("the handler was called %d times", calls)
			}
		})
	}
}

// The arguments go through the codec, so that a field it drops is missed here and not in production.
func TestU10_WorkEncodesTheArguments(t *testing.T) {
	_, err := pawltest.Work(t, func(_ context.Context, j *pawl.Job[forgetful]) error {
		if j.Args.Kept != 0 {
			t.Error("a field arrived that is not exported")
		}
		return nil
	}, forgetful{Kept: 7})
	if err != nil {
		t.Fatal(err)
	}
}

type forgetful struct {
	Kept int `json:"-"`
}

func (forgetful) Kind() string { return "forgetful" }

// Work serves the queue that the type of the arguments names.
func TestU10_WorkServesTheQueueOfTheArguments(t *testing.T) {
	j, err := pawltest.Work(t, func(_ context.Context, j *pawl.Job[mail]) error { return nil }, mail{})
	if err != nil || j.Queue != "mail" || j.State != job.Done {
		t.Errorf("%s in queue %s: %v", j.State, j.Queue, err)
	}
}

type mail struct{}

func (mail) Kind() string                   { return "mail" }
func (mail) Defaults() []pawl.EnqueueOption { return []pawl.EnqueueOption{pawl.Queue("mail")} }

// Handlers of every shape, on every store, and in virtual time.
func TestU10_EngineWorksOnOneJob(t *testing.T) {
	register := func(e *pawl.Engine) {
		pawl.HandleResult(e, func(_ context.Context, j *pawl.Job[ship]) (int, error) { return 6 * j.Args.Order, nil })
		pawl.HandleRaw(e, "raw", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
			return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error { return tx.Finish(j) })
		})
		pawl.Handle(e, func(context.Context, *pawl.Job[welcome]) error { return errors.New("too late") })
	}
	test := func(t *testing.T, e *pawltest.Engine) {
		j, err := e.Work(ship{7})
		if err != nil || j.State != job.Done || string(j.Result) != "42" {
			t.Errorf("%s with result %s: %v", j.State, j.Result, err)
		}
		if j, err := e.Work(pawl.RawArgs("raw", []byte("bytes"))); err != nil || j.State != job.Done {
			t.Errorf("finished in its transaction: %s, %v", j.State, err)
		}
		e.RequireEnqueued(pawl.RawArgs("raw", []byte("bytes")))
		e.RequireNotEnqueued(pawl.RawArgs("raw", []byte("others")))
		if j, err := e.Work(welcome{1}); err == nil || err.Error() != "too late" || j.Used != 1 {
			t.Errorf("%d attempts used: %v", j.Used, err)
		}
		if kinds := slices.Collect(kindsOf(e.Enqueued("ship"))); !slices.Equal(kinds, []string{"ship"}) {
			t.Errorf("enqueued %v", kinds)
		}
	}
	t.Run("virtual", func(t *testing.T) { pawltest.Run(t, register, test) })
	onEachStore(t, func(t *testing.T, opener store.Opener) { pawltest.Real(t, opener, register, test) })
}

func kindsOf(jobs []job.Job) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, j := range jobs {
			if !yield(j.Kind) {
				return
			}
		}
	}
}

func TestU10_WorkOnAJobThatIsNotKept(t *testing.T) {
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
		pawl.Handle(e, func(context.Context, *pawl.Job[welcome]) error { return nil })
	}, func(t *testing.T, e *pawltest.Engine) {
		if j, err := e.Work(welcome{1}); err != nil || j.State != job.Done {
			t.Errorf("%s: %v", j.State, err)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Queues = pawl.Queues{"default": {Workers: 1, KeepDone: pawl.KeepNone}}
	}))
}
