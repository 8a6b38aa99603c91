package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

type nameless struct{}

func (nameless) Kind() string { return "" }

type text struct {
	Lines map[string][]string
}

func (text) Kind() string { return "text" }

type badDefaults struct{}

func (badDefaults) Kind() string                   { return "bad-defaults" }
func (badDefaults) Defaults() []pawl.EnqueueOption { return []pawl.EnqueueOption{pawl.Priority(12)} }

// Each bad input is refused with its field, value and bound, and nothing is kept of it.
func TestP10_BadInputIsRefusedAtTheCaller(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		long := strings.Repeat("x", 1<<20)
		for _, c := range []struct {
			name string
			args pawl.Args
			opts []pawl.EnqueueOption
			want []string
		}{
			{"priority", Welcome{1}, opts(pawl.Priority(12)), []string{"priority", "12", "1..9"}},
			{"queue", Welcome{1}, opts(pawl.Queue("a,b")), []string{"queue", `"a,b"`, "','"}},
			{"attempts", Welcome{1}, opts(pawl.Attempts(0)), []string{"attempts", "0", "1..10000"}},
			{"deadline past", Welcome{1}, opts(pawl.Deadline(time.Now().Add(-time.Hour))), []string{"deadline", "1999", "after the store's now"}},
			{"deadline zero", Welcome{1}, opts(pawl.Deadline(time.Time{})), []string{"deadline", "must be a time"}},
			{"in beyond the deadline", Welcome{1}, opts(pawl.In(time.Hour), pawl.Deadline(time.Now().Add(time.Hour))), []string{"in", "1h0m0s", "before the deadline, 2000-01-01 01:00:00"}},
			{"endless in", Welcome{1}, opts(pawl.In(math.MaxInt64), pawl.Deadline(time.Now().Add(time.Hour))), []string{"in", "before the deadline"}},
			{"at beyond the deadline", Welcome{1}, opts(pawl.At(time.Now().Add(2*time.Hour)), pawl.Deadline(time.Now().Add(time.Hour))), []string{"at", "02:00:00", "before the deadline, 2000-01-01 01:00:00"}},
			{"payload", Email{To: long}, nil, []string{"args", "bytes", "1048576"}},
			{"invalid UTF-8", text{map[string][]string{"a": {"ok", "caf\xe9"}}}, nil, []string{"text.Lines[a][1]", "UTF-8"}},
			{"pointer", &Welcome{1}, nil, []string{"args", "*pawl_test.Welcome", "not a pointer"}},
			{"nil", nil, nil, []string{"args", "nil"}},
			{"empty kind", nameless{}, nil, []string{"kind", "nameless", "empty"}},
			{"raw kind", pawl.RawArgs("a b", nil), nil, []string{"kind", `"a b"`}},
			{"in", Welcome{1}, opts(pawl.In(-time.Second)), []string{"in", "-1s", "0 or more"}},
			{"timeout", Welcome{1}, opts(pawl.Timeout(0)), []string{"timeout", "0s", "more than 0"}},
			{"nil option", Welcome{1}, opts(nil), []string{"option", "nil"}},
			{"defaults", badDefaults{}, nil, []string{"priority", "12"}},
			{"zero id", Welcome{1}, opts(pawl.WithID(job.ID{})), []string{"id", "must be set"}},
			{"unique period", Welcome{1}, opts(pawl.Unique(pawl.HeldFor(-time.Second))), []string{"unique period", "-1s"}},
			{"tag", Welcome{1}, opts(pawl.Tags("")), []string{"tag", "1..128"}},
		} {
			_, err := e.Engine.Enqueue(t.Context(), c.args, c.opts...)
			if !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%s: got %v", c.name, err)
				continue
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %q does not say %q", c.name, err, w)
				}
			}
		}
		if n, _ := e.Count(t.Context(), pawl.Filter{}, 0); n.Jobs != 0 {
			t.Errorf("%d jobs were kept", n.Jobs)
		}
	})
}

func opts(o ...pawl.EnqueueOption) []pawl.EnqueueOption { return o }

func TestJ2_ManyAreAcceptedAllOrNone(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		_, err := e.EnqueueMany(t.Context(), pawl.NewItem(Welcome{1}), pawl.NewItem(Welcome{2}, pawl.Priority(12)), pawl.NewItem(Welcome{3}))
		if err == nil || !strings.Contains(err.Error(), "item 1") {
			t.Errorf("got %v", err)
		}
		if n, _ := e.Count(t.Context(), pawl.Filter{}, 0); n.Jobs != 0 {
			t.Errorf("%d jobs were kept", n.Jobs)
		}
	})
}

// A fault names the field as it is written in Go, so that it can be found.
func TestP10_ConfigFaultsNameTheirFieldsAllAtOnce(t *testing.T) {
	const bad = -7
	queue, cfg := pawl.QueueConfig{}, pawl.Config{
		Queues: pawl.Queues{"a,b": {Workers: 1}},
		Routes: []pawl.Route{{Kind: "mail", Queue: "mail"}, {Kind: "[", Queue: "x"}, {Kind: "x", Queue: "a b"}},
		Bounds: pawl.Bounds{Payload: bad}, Namespace: "a b", Capabilities: []string{"gpu", ""}, Middleware: []pawl.Middleware{nil},
	}
	want := []string{
		`Config.Queues "a,b": `, `Config.Routes[1].Kind "[": `, `Config.Routes[2].Queue "a b": `, "Config.Bounds.Payload -7: ",
		`Config.Namespace "a b": `, `Config.Capabilities[1] "": `, `Config.Middleware[0] "nil": `,
	}
	// Every number, also those that are added later.
	fill := func(to reflect.Value, at string) {
		for i := range to.NumField() {
			switch f := to.Field(i); f.Interface().(type) {
			case time.Duration:
				f.SetInt(bad)
				want = append(want, fmt.Sprintf("%s.%s %v: ", at, to.Type().Field(i).Name, time.Duration(bad)))
			case int, pawl.Migrate:
				f.SetInt(bad)
				want = append(want, fmt.Sprintf("%s.%s %d: ", at, to.Type().Field(i).Name, bad))
			}
		}
	}
	fill(reflect.ValueOf(&queue).Elem(), `Config.Queues["mail"]`)
	fill(reflect.ValueOf(&cfg).Elem(), "Config")
	cfg.Queues["mail"] = queue
	_, err := pawl.New(sqlite.Memory(), cfg)
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Fatal(err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), "invalid "+w) {
			t.Errorf("%q is not said", w)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(want) || t.Failed() {
		t.Errorf("%d faults, want %d:\n%v", got, len(want), err)
	}
	cfg = pawl.Config{LostAfter: time.Second}
	if _, err := pawl.New(sqlite.Memory(), cfg); err == nil || !strings.Contains(err.Error(), "Config.LostAfter 1s: ") {
		t.Errorf("got %v", err)
	}
}

func TestJ5_WorkerWithoutQueuesIsRefused(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ignore[Welcome](e)
	err = e.Run(t.Context())
	for _, w := range []string{"Config.Queues", "none", "PAWL_QUEUES"} {
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

// A worker without handlers would stand there for ever and look healthy: mostly
// its handlers were registered with another engine, or after Run.
func TestJ5_RunWithNothingToDoIsRefused(t *testing.T) {
	for name, cfg := range map[string]pawl.Config{"with queues": {Queues: pawl.Queues{"default": {Workers: 1}}}, "without": {}} {
		e, err := pawl.New(sqlite.Memory(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // it returns at once, or the test fails
		defer cancel()
		if err := e.Run(ctx); !errors.Is(err, pawl.ErrNoHandlers) || !strings.Contains(err.Error(), "nothing to do") || !strings.Contains(err.Error(), "pawl.Handle") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJ5_QueuesAndLabelComeFromTheEnvironment(t *testing.T) {
	t.Setenv("PAWL_QUEUES", "mail=4, default")
	t.Setenv("PAWL_WORKER_PREFIX", "rates")
	t.Setenv("PAWL_WORKER_VERSION", "v7")
	t.Setenv("PAWL_WORKER_ID", "pod-1")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var workers []store.WorkerInfo
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		defer stop()
		workers, err = e.Workers(ctx)
		return err
	})
	if _, err := e.Enqueue(ctx, Welcome{1}, pawl.Queue("mail")); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(workers) != 1 || workers[0].Worker.Label != "rates-worker-v7-pod-1" || strings.Join(workers[0].Worker.Queues, " ") != "default mail" {
		t.Errorf("registered as %+v", workers)
	}
	for _, bad := range []string{"mail=x", "a b", "mail=0", "mail=-1", "mail=100001", "mail=", "=4", "mail,a b"} {
		t.Setenv("PAWL_QUEUES", bad)
		e, err := pawl.New(sqlite.Memory(), pawl.Config{})
		if err == nil {
			e.Close()
		}
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "PAWL_QUEUES") {
			t.Errorf("PAWL_QUEUES=%q: %v", bad, err)
		}
	}
}

// Lists in the environment are glued together by charts and scripts.
func TestJ5_BlanksAndRepeatsInTheEnvironmentAreHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"mail,,default,":            "default mail",
		" mail , mail ,default ":    "default mail",
		",mail = 4 ,\tmail\n":       "mail",
		"mail=4,mail=8,default=1, ": "default mail",
	} {
		t.Setenv("PAWL_QUEUES", text)
		if got := servedQueues(t); got != want {
			t.Errorf("PAWL_QUEUES=%q serves %q, want %q", text, got, want)
		}
	}
	for _, empty := range []string{"", " ", ",", " , ,\n"} {
		t.Setenv("PAWL_QUEUES", empty)
		e, err := pawl.New(sqlite.Memory(), pawl.Config{})
		if err != nil {
			t.Fatalf("PAWL_QUEUES=%q: %v", empty, err)
		}
		ignore[Welcome](e)
		if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Config.Queues") {
			t.Errorf("PAWL_QUEUES=%q: %v", empty, err)
		}
		e.Close()
	}
}

// servedQueues are the queues that an engine registers for.
func servedQueues(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var queues string
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		defer stop()
		workers, err := e.Workers(ctx)
		if err == nil {
			queues = strings.Join(workers[0].Worker.Queues, " ")
		}
		return err
	})
	if _, err := e.Enqueue(ctx, Welcome{1}, pawl.Queue("mail")); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return queues
}

func TestHandlerFaultsAreReturnedByRun(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ok := func(ctx context.Context, j *pawl.Job[Welcome]) error { return nil }
	pawl.Handle(e, ok)
	pawl.Handle(e, ok)
	pawl.Handle[Ship](e, nil)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[*Charge]) error { return nil })
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[nameless]) error { return nil })
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Encode]) error { return nil }, pawl.Timeout(-1), pawl.Backoff(nil))
	pawl.HandleBatch(e, func(ctx context.Context, j []*pawl.Job[Email]) []error { return nil }, pawl.Batch[Email]{Size: 0})
	pawl.HandleRaw(e, "a,b", nil, nil)
	e.Register(nil)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[mailed]) error { return nil }, pawl.Use(nil))
	same := func(args []byte) ([]byte, error) { return args, nil }
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[text]) error { return nil }, pawl.Upgrade(0, same))
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[second]) error { return nil }, pawl.Upgrade(0, same), pawl.Upgrade(1, same), pawl.Upgrade(2, same), pawl.Upgrade(-1, same))
	pawl.HandleRaw(e, "raw", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil }, pawl.Upgrade(0, same))
	err = e.Run(t.Context())
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	for _, w := range []string{`"welcome": is registered twice`, `handler of ship "nil"`, "*pawl_test.Charge", "Kind() must not be empty", "timeout -1ns", `backoff "nil"`, "batch size 0", `kind "a,b"`, `option of a,b "nil"`, `middleware of mail.sent "nil"`, `handlers "nil"`,
		"upgrade of text 0: would never run: must be below the Version() of pawl_test.text, which is 0", "upgrade of second 2: ", "upgrade of second -1: ", "upgrade of raw 0: "} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	for _, fine := range []string{"upgrade of second 0: ", "upgrade of second 1: "} {
		if strings.Contains(err.Error(), fine) {
			t.Errorf("%q is no fault: %v", fine, err)
		}
	}
}

type second struct{ N int }

func (second) Kind() string { return "second" }
func (second) Version() int { return 2 }

// Who registers a handler while Run runs has mostly started Run too early: no job
// would reach the handler, and nothing would say why.
func TestJ5_AHandlerThatComesAfterRunIsNamed(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) { ignore[Welcome](to) }, func(t *testing.T, e *pawltest.Engine) {
		ended := make(chan error)
		first, end := context.WithCancel(t.Context())
		go func() { ended <- e.Run(first) }()
		time.Sleep(time.Second) // stimulus: virtual, Run has begun
		ignore[Ship](e.Engine)
		known := e.Enqueue(Welcome{1})
		time.Sleep(time.Second) // stimulus: virtual, it goes on
		e.RequireState(known.ID, job.Done)
		end()
		if err := <-ended; !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "handler of ship") || !strings.Contains(err.Error(), "before Run") {
			t.Errorf("Run: %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- e.Run(ctx) }()
		r := e.Enqueue(Ship{})
		time.Sleep(time.Second) // stimulus: virtual, it works
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the next Run: %v", err)
		}
		e.RequireState(r.ID, job.Done)
	})
}

func TestRunTwiceIsRefused(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	second := make(chan error, 1)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		defer stop()
		second <- e.Run(ctx)
		return nil
	})
	if _, err := e.Enqueue(ctx, Welcome{1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, pawl.ErrRunning) {
		t.Errorf("second Run: %v", err)
	}
}

func TestCallsAfterCloseAreRefused(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{}) // that it has no queue is not what is wrong with Run
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, enqueue := e.Enqueue(ctx, Welcome{1})
	_, cancel := e.Cancel(ctx, job.NewID())
	_, get := e.Get(ctx, job.NewID())
	tx := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error { return nil })
	for name, err := range map[string]error{"enqueue": enqueue, "cancel": cancel, "get": get, "tx": tx, "run": e.Run(ctx), "health": e.Health(ctx)} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenByAddress(t *testing.T) {
	e, err := pawl.Open(t.Context(), "sqlite::memory:", pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Enqueue(t.Context(), Welcome{1}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "work.db", "redis://secret@host"} {
		_, err := pawl.Open(t.Context(), bad, pawl.Config{})
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "sqlite") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestJ12_OneRuleForBeatAndLostAfter takes what passed New and failed Run: New and Run judge by the same rule.
func TestJ12_OneRuleForBeatAndLostAfter(t *testing.T) {
	for _, c := range []struct {
		beat, lostAfter time.Duration
		fine            bool
	}{
		{10 * time.Second, 26 * time.Second, false}, // two beats and 6 s, less than three beats
		{10 * time.Second, 30 * time.Second, true},
		{time.Second, 6 * time.Second, false},
		{time.Second, 7 * time.Second, true},
	} {
		e, err := pawl.New(sqlite.Memory(), pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}}, Beat: c.beat, LostAfter: c.lostAfter,
		})
		if !c.fine {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "Config.LostAfter "+c.lostAfter.String()) {
				t.Errorf("beat %v, lost after %v: %v; want an error that names Config.LostAfter", c.beat, c.lostAfter, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("beat %v, lost after %v: %v", c.beat, c.lostAfter, err)
			continue
		}
		pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { return nil })
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := e.Run(ctx); err != nil {
			t.Errorf("beat %v, lost after %v: New took it, and Run says %v", c.beat, c.lostAfter, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
