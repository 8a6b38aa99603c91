package runner_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// handle makes a handler of a function.
type handle func(ctx context.Context, t *runner.Task) job.Outcome

func (h handle) Work(ctx context.Context, t *runner.Task) job.Outcome { return h(ctx, t) }

var (
	succeed = job.Outcome{Kind: job.Succeeded}
	fail    = job.Outcome{Kind: job.Failed, Message: "no luck"}
)

// lab is one store in memory and some processes that work on it, in virtual time.
type lab struct {
	t     *testing.T
	store store.Store
	log   *logbook
}

// inLab runs a test in a bubble and checks the store when it ends (P6).
func inLab(t *testing.T, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &logbook{}
		st, err := sqlite.Memory().Open(t.Context(), store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		l := &lab{t: t, store: st, log: log}
		test(l)
		report, err := st.Check(t.Context(), store.Check{})
		if err != nil {
			t.Error("check:", err)
		}
		for _, fault := range report.Faults {
			t.Error("check:", fault)
		}
		if err := st.Close(); err != nil {
			t.Error("close:", err)
		}
		if t.Failed() {
			t.Log("log:\n" + log.String())
		}
	})
}

// process is one runner with its keeper, as an engine would run them.
type process struct {
	*runner.Runner
	l      *lab
	faults *faults
	hub    *wake.Hub
	cancel context.CancelFunc
	ended  chan error
}

// run starts a process that serves queue "q" with some slots, unless configured otherwise.
func (l *lab) run(slots int, h handle, configure ...func(*runner.Config)) *process {
	l.t.Helper()
	p := &process{l: l, hub: wake.NewHub(), ended: make(chan error, 1)}
	p.faults = &faults{Store: l.store}
	c := runner.Config{
		Store: p.faults, Hub: p.hub, Logger: slog.New(slog.NewTextHandler(l.log, nil)), Label: "lab-worker",
		Queues: []runner.QueueConfig{{Name: "q", Workers: slots, Backoff: job.NoBackoff}},
		Kinds:  []runner.Kind{{Name: "k", Handler: h}},
	}
	for _, f := range configure {
		f(&c)
	}
	r, err := runner.New(c)
	if err != nil {
		l.t.Fatal(err)
	}
	p.Runner = r
	k, err := keeper.New(keeper.Config{Store: p.faults, Hub: p.hub, Logger: c.Logger, Steady: r.Member().Steady})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- r.Run(ctx, k.Service()) }()
	synctest.Wait()
	return p
}

// stop ends a process and requires that it was clean.
func (p *process) stop() {
	p.l.t.Helper()
	p.cancel()
	if err := <-p.ended; err != nil {
		p.l.t.Error("run:", err)
	}
}

// add accepts jobs and tells the processes.
func (l *lab) add(n int, change func(*job.Draft), tell ...*process) []job.ID {
	l.t.Helper()
	drafts := make([]job.Draft, n)
	ids := make([]job.ID, n)
	for i := range drafts {
		ids[i] = job.NewID()
		drafts[i] = job.Draft{ID: ids[i], Kind: "k", Queue: "q", Priority: 5, Attempts: 5}
		if change != nil {
			change(&drafts[i])
		}
	}
	if _, err := l.store.Enqueue(l.t.Context(), drafts); err != nil {
		l.t.Fatal(err)
	}
	for _, p := range tell {
		p.hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: drafts[0].Queue})
	}
	return ids
}

// get reads one job.
func (l *lab) get(id job.ID) job.Job {
	l.t.Helper()
	jobs, err := l.store.Get(l.t.Context(), []job.ID{id})
	if err != nil || len(jobs) != 1 {
		l.t.Fatalf("get %s: %d jobs, %v", id, len(jobs), err)
	}
	return jobs[0]
}

// expect compares where a job stands.
func (l *lab) expect(id job.ID, state job.State, used, lost int) job.Job {
	l.t.Helper()
	j := l.get(id)
	if j.State != state || j.Used != used || j.Lost != lost {
		l.t.Errorf("job is %s with %d attempts used and %d lost, want %s, %d, %d (reason %q, failures %v)",
			j.State, j.Used, j.Lost, state, used, lost, j.Reason, j.Failures)
	}
	return j
}

// after lets virtual time pass and everything settle.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// faults is the real store with an unreliable way to it.
type faults struct {
	store.Store
	mu sync.Mutex
	// before may fail or delay a call that is then not made.
	before func(method string) error
	// after may lose the answer of a call that was made.
	after func(method string) error
	// ends may refuse a finish by its rows.
	ends func([]job.End) error
	// held tells whether an open transaction holds a job.
	held func(job.ID) bool
	// begins is held for notes that a handler begins.
	begins func(job.ID) bool
	// notes may refuse a note by its rows.
	notes func([]store.Note) error
	// speed is how many bytes of arguments a second come through in an answer.
	speed int
}

func (f *faults) set(change func(*faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func on[T any](f *faults, method string, call func() (T, error)) (T, error) {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	var none T
	if before != nil {
		if err := before(method); err != nil {
			return none, err
		}
	}
	answer, err := call()
	if err == nil && after != nil {
		if lost := after(method); lost != nil {
			return none, lost
		}
	}
	return answer, err
}

func (f *faults) Register(ctx context.Context, w store.Worker) (job.WorkerID, error) {
	return on(f, "Register", func() (job.WorkerID, error) { return f.Store.Register(ctx, w) })
}

func (f *faults) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	return on(f, "Beat", func() (store.BeatReply, error) { return f.Store.Beat(ctx, b) })
}

func (f *faults) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	return on(f, "Claim", func() (store.ClaimReply, error) {
		claimed, err := f.Store.Claim(ctx, c)
		f.mu.Lock()
		speed := f.speed
		f.mu.Unlock()
		if speed > 0 {
			bytes := 0
			for _, j := range claimed.Jobs {
				bytes += len(j.Args)
			}
			select {
			case <-time.After(time.Duration(bytes) * time.Second / time.Duration(speed)): // virtual
			case <-ctx.Done():
				return store.ClaimReply{}, ctx.Err()
			}
		}
		return claimed, err
	})
}

func (f *faults) CoolDown(ctx context.Context, queue string, t job.Throttle) (store.CoolDownReply, error) {
	return on(f, "CoolDown", func() (store.CoolDownReply, error) { return f.Store.(store.CoolDowns).CoolDown(ctx, queue, t) })
}

func (f *faults) ResetCoolDown(ctx context.Context, queue string, op store.Operator) error {
	return f.Store.(store.CoolDowns).ResetCoolDown(ctx, queue, op)
}

func (f *faults) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	verdicts, err := on(f, "Finish", func() ([]job.Verdict, error) {
		f.mu.Lock()
		refuse, held := f.ends, f.held
		f.mu.Unlock()
		if refuse != nil {
			if err := refuse(ends); err != nil {
				return nil, err
			}
		}
		if held == nil {
			return f.Store.Finish(ctx, w, ends)
		}
		var free []job.End
		for _, e := range ends {
			if !held(e.ID) {
				free = append(free, e)
			}
		}
		some, err := f.Store.Finish(ctx, w, free)
		if err != nil {
			return nil, err
		}
		verdicts := make([]job.Verdict, len(ends))
		for i, e := range ends {
			if verdicts[i] = job.Locked; !held(e.ID) {
				verdicts[i], some = some[0], some[1:]
			}
		}
		return verdicts, nil
	})
	if errors.Is(err, errForgotten) {
		verdicts, err = make([]job.Verdict, len(ends)), nil
		for i := range verdicts {
			verdicts[i] = job.Applied
		}
	}
	return verdicts, err
}

func (f *faults) Note(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	return on(f, "Note", func() ([]job.Verdict, error) {
		f.mu.Lock()
		refuse, held := f.notes, f.begins
		f.mu.Unlock()
		if refuse != nil {
			if err := refuse(notes); err != nil {
				return nil, err
			}
		}
		if held == nil {
			return f.Store.Note(ctx, w, notes)
		}
		var free []store.Note
		for _, n := range notes {
			if !n.Begun || !held(n.ID) {
				free = append(free, n)
			}
		}
		some, err := f.Store.Note(ctx, w, free)
		if err != nil {
			return nil, err
		}
		verdicts := make([]job.Verdict, len(notes))
		for i, n := range notes {
			if verdicts[i] = job.Locked; !n.Begun || !held(n.ID) {
				verdicts[i], some = some[0], some[1:]
			}
		}
		return verdicts, nil
	})
}

func (f *faults) Cancels(ctx context.Context, w job.WorkerID) ([]store.RunRef, error) {
	return on(f, "Cancels", func() ([]store.RunRef, error) { return f.Store.Cancels(ctx, w) })
}

func (f *faults) ReportRuns(ctx context.Context, w job.WorkerID, held []store.RunRef) (store.ReportReply, error) {
	return on(f, "ReportRuns", func() (store.ReportReply, error) { return f.Store.ReportRuns(ctx, w, held) })
}

func (f *faults) Deregister(ctx context.Context, w job.WorkerID) error {
	_, err := on(f, "Deregister", func() (struct{}, error) { return struct{}{}, f.Store.Deregister(ctx, w) })
	return err
}

func (f *faults) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	return on(f, "MarkLost", func() (store.MarkLostReply, error) { return f.Store.MarkLost(ctx, l) })
}

func (f *faults) MarkDead(ctx context.Context, dead []job.WorkerID) (int, error) {
	return on(f, "MarkDead", func() (int, error) { return f.Store.MarkDead(ctx, dead) })
}

func (f *faults) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	return on(f, "Rescue", func() (store.RescueReply, error) { return f.Store.Rescue(ctx, limit) })
}

// logbook keeps what was logged.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
