package pawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite"
)

// far is a remote worker of an engine in memory, in virtual time.
type far struct {
	t *testing.T
	e *pawl.Engine
	r pawl.Remote
	w pawl.WorkerID
}

func remotely(t *testing.T, c pawl.Config, test func(*testing.T, *far)) {
	synctest.Test(t, func(t *testing.T) {
		c.Logger = quiet
		e, err := pawl.New(sqlite.Memory(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		f := &far{t: t, e: e, r: e.Remote()}
		f.register()
		test(t, f)
	})
}

func (f *far) register() {
	f.t.Helper()
	w, err := f.r.Register(f.t.Context(), pawl.RemoteWorker{
		Label: "py-1", Version: "7", Queues: []string{"default"}, Kinds: []string{"welcome", "other"}, Slots: 10,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.w = w
}

// runs lets an engine without handlers for these jobs do upkeep beside.
func (f *far) runs() (stop func()) {
	pawl.HandleRaw(f.e, "nothing", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
}

func (f *far) enqueue(opts ...pawl.EnqueueOption) pawl.ID {
	f.t.Helper()
	r, err := f.e.Enqueue(f.t.Context(), pawl.RawArgs("welcome", []byte(`{"user_id":1}`)), append(opts, pawl.Queue("default"))...)
	if err != nil {
		f.t.Fatal(err)
	}
	return r.ID
}

func (f *far) claim(limit int, held ...pawl.RunRef) []pawl.JobRecord {
	f.t.Helper()
	got, err := f.r.Claim(f.t.Context(), pawl.RemoteClaim{Worker: f.w, Limit: limit, Held: held})
	if err != nil {
		f.t.Fatal(err)
	}
	return got.Jobs
}

func (f *far) finish(j pawl.JobRecord, o pawl.RemoteOutcome, edit ...func(*pawl.RemoteEnd)) job.Verdict {
	f.t.Helper()
	end := pawl.RemoteEnd{RunRef: pawl.RunRef{ID: j.ID, Run: j.Run}, Outcome: o}
	for _, e := range edit {
		e(&end)
	}
	v, err := f.r.Finish(f.t.Context(), f.w, []pawl.RemoteEnd{end})
	if err != nil {
		f.t.Fatal(err)
	}
	return v[0]
}

func (f *far) get(id pawl.ID) pawl.JobRecord {
	f.t.Helper()
	j, err := f.e.Get(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return j
}

func TestU3_ARemoteWorkerRunsJobs(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		id := f.enqueue()
		list := f.claim(5)
		if len(list) != 1 || list[0].ID != id || string(list[0].Args) != `{"user_id":1}` {
			t.Fatalf("%+v", list)
		}
		_, err := f.r.Note(t.Context(), f.w, []pawl.RemoteNote{{
			RunRef: pawl.RunRef{ID: id, Run: 1}, Progress: &job.Progress{Done: 1, Total: 2}, Logs: []pawl.LogLine{{Text: "half"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if j := f.get(id); j.Progress.Done != 1 || j.Worker != f.w || j.State != pawl.StateRunning {
			t.Errorf("%+v", j)
		}
		if v := f.finish(list[0], pawl.RemoteDone, func(e *pawl.RemoteEnd) { e.Result = []byte(`5`) }); v != job.Applied {
			t.Error(v)
		}
		if n, err := pawl.Result[int](t.Context(), f.e, id); err != nil || n != 5 {
			t.Errorf("%d, %v", n, err)
		}
		logs, err := f.e.Logs(t.Context(), id, 0, 10)
		if err != nil || len(logs) != 1 || logs[0].Text != "half" {
			t.Errorf("%+v, %v", logs, err)
		}
		if v := f.finish(list[0], pawl.RemoteDone, func(e *pawl.RemoteEnd) { e.Again = true }); v != job.Already {
			t.Errorf("sent again: %v", v)
		}
		if v := f.finish(list[0], pawl.RemoteFailed); v != job.Stale {
			t.Errorf("another end: %v", v)
		}
	})
}

// The server decides by the settings of the queue; the worker only says what happened.
func TestU3_OutcomesAreDecidedByTheSettings(t *testing.T) {
	remotely(t, pawl.Config{Queues: pawl.Queues{"default": {Workers: 1, Backoff: pawl.Constant(time.Minute)}}}, func(t *testing.T, f *far) {
		id := f.enqueue(pawl.Attempts(2))
		if v := f.finish(f.claim(1)[0], pawl.RemoteFailed, func(e *pawl.RemoteEnd) { e.Message = "no luck" }); v != job.Applied {
			t.Fatal(v)
		}
		j := f.get(id)
		if until := time.Until(j.Due); j.State != pawl.StateWaiting || j.Used != 1 || until != time.Minute {
			t.Errorf("%v in %v, %d used", j.State, until, j.Used)
		}
		failures := j.Failures.List()
		if len(failures) != 1 || failures[0].Message != "no luck" || failures[0].Label != "py-1" || failures[0].Version != "7" || failures[0].Worker != f.w {
			t.Errorf("%+v", failures)
		}
		time.Sleep(time.Minute) // virtual: until it is due
		f.finish(f.claim(1)[0], pawl.RemoteSnoozed, func(e *pawl.RemoteEnd) { d := time.Hour; e.Delay = &d })
		if j := f.get(id); j.Snoozes != 1 || j.Used != 1 || time.Until(j.Due) != time.Hour {
			t.Errorf("%+v", j)
		}
		time.Sleep(time.Hour) // virtual: until it is due
		f.finish(f.claim(1)[0], pawl.RemoteReleased)
		f.finish(f.claim(1)[0], pawl.RemoteFailed)
		if j := f.get(id); j.State != pawl.StateDead || j.Used != 2 {
			t.Errorf("%+v", j)
		}
		id = f.enqueue()
		f.finish(f.claim(1)[0], pawl.RemoteThrottled)
		if j := f.get(id); j.State != pawl.StateWaiting || j.Used != 0 || j.Throttles() != 1 {
			t.Errorf("%+v", j)
		}
		if got := f.claim(1); len(got) != 0 {
			t.Error("a queue that cools down was claimed from")
		}
	})
}

// What a worker does not say that it holds, because an answer was lost, goes back free
// of charge.
func TestU3_ALostAnswerCostsNothing(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		id := f.enqueue()
		f.claim(1) // and its answer is lost
		again := f.claim(1)
		if len(again) != 1 || again[0].ID != id || again[0].Run != 2 || again[0].Lost != 0 || again[0].Used != 0 {
			t.Fatalf("%+v", again)
		}
		if got := f.claim(1, pawl.RunRef{ID: id, Run: 2}); len(got) != 0 {
			t.Errorf("what it holds was claimed again: %+v", got)
		}
		got, err := f.r.Claim(t.Context(), pawl.RemoteClaim{Worker: f.w, Limit: 1, Held: []pawl.RunRef{{ID: id, Run: 1}}})
		if err != nil || len(got.Stale) != 1 || got.Stale[0].Run != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A worker that is silent past its lease is lost, its run with it, once; what it says
// later changes nothing. It goes on as another worker.
func TestU3_ASilentWorkerIsFenced(t *testing.T) {
	remotely(t, pawl.Config{Queues: pawl.Queues{"elsewhere": {Workers: 1}}}, func(t *testing.T, f *far) {
		stop := f.runs()
		defer stop()
		id := f.enqueue()
		held := f.claim(1)
		time.Sleep(10 * time.Minute) // virtual: past its lease
		synctest.Wait()
		if j := f.get(id); j.State != pawl.StateWaiting || j.Lost != 1 || j.Used != 0 {
			t.Errorf("%v, %d lost", j.State, j.Lost)
		}
		if _, err := f.r.Beat(t.Context(), f.w); !errors.Is(err, pawl.ErrWorkerLost) {
			t.Errorf("beat: %v", err)
		}
		_, err := f.r.Finish(t.Context(), f.w, []pawl.RemoteEnd{{RunRef: pawl.RunRef{ID: id, Run: held[0].Run}, Outcome: pawl.RemoteDone}})
		if !errors.Is(err, pawl.ErrWorkerLost) {
			t.Errorf("finish: %v", err)
		}
		if _, err := f.r.Claim(t.Context(), pawl.RemoteClaim{Worker: f.w, Limit: 1}); !errors.Is(err, pawl.ErrWorkerLost) {
			t.Errorf("claim: %v", err)
		}
		f.register()
		for range 20 { // a suspect may have to wait for its turn
			if list := f.claim(5); len(list) == 1 && list[0].Run > held[0].Run {
				f.finish(list[0], pawl.RemoteDone)
				break
			}
			time.Sleep(time.Minute) // virtual: between two claims
			if _, err := f.r.Beat(t.Context(), f.w); err != nil {
				f.register()
			}
		}
		if j := f.get(id); j.State != pawl.StateDone || j.Lost != 1 {
			t.Errorf("%v, %d lost", j.State, j.Lost)
		}
	})
}

// A suspect comes alone, and only to a worker that holds nothing.
func TestU3_ASuspectComesAlone(t *testing.T) {
	remotely(t, pawl.Config{Queues: pawl.Queues{"elsewhere": {Workers: 1}}}, func(t *testing.T, f *far) {
		stop := f.runs()
		defer stop()
		suspect := f.enqueue(pawl.Priority(1))
		for range job.SuspectLost { // workers end with it
			if list := f.claim(1); len(list) != 1 {
				t.Fatalf("%+v", list)
			}
			time.Sleep(10 * time.Minute) // virtual: past the lease
			synctest.Wait()
			f.register()
		}
		var others []pawl.ID
		for range 3 {
			others = append(others, f.enqueue())
		}
		list := f.claim(5, pawl.RunRef{ID: others[0], Run: 7}) // it says that it works on something
		if len(list) != 3 || f.get(suspect).Deferred != 1 {
			t.Fatalf("%d jobs beside one that runs, want the three that are no suspects", len(list))
		}
		for _, j := range list {
			f.finish(j, pawl.RemoteReleased)
		}
		time.Sleep(10 * time.Second) // virtual: for so long the suspect waits
		if list := f.claim(5); len(list) != 1 || list[0].ID != suspect {
			t.Errorf("%d jobs, want the suspect alone", len(list))
		}
	})
}

// A claim that waits hears of a job at once.
func TestU3_AClaimWaitsForAJob(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		got := make(chan int, 1)
		begin := time.Now()
		go func() {
			r, err := f.r.Claim(t.Context(), pawl.RemoteClaim{Worker: f.w, Limit: 1, Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			got <- len(r.Jobs)
		}()
		time.Sleep(20300 * time.Millisecond) // virtual: between two looks
		f.enqueue()
		if n := <-got; n != 1 || time.Since(begin) != 20300*time.Millisecond {
			t.Errorf("%d jobs after %v", n, time.Since(begin))
		}
		r, err := f.r.Claim(t.Context(), pawl.RemoteClaim{Worker: f.w, Limit: 1, Wait: 0, Held: nil})
		if err != nil || len(r.Jobs) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestU3_PausesAndCancelsHoldForRemoteWorkers(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		ctx := t.Context()
		id := f.enqueue()
		for name, step := range map[string][2]func(context.Context) error{
			"kind":   {f.e.Kind("welcome").Pause, f.e.Kind("welcome").Resume},
			"queue":  {f.e.Queue("default").Pause, f.e.Queue("default").Resume},
			"freeze": {f.e.Freeze, f.e.Unfreeze},
		} {
			if err := step[0](ctx); err != nil {
				t.Fatal(err)
			}
			if list := f.claim(1); len(list) != 0 {
				t.Errorf("%s: claimed all the same", name)
			}
			if err := step[1](ctx); err != nil {
				t.Fatal(err)
			}
		}
		f.claim(1) // sees the settings of before, at most once
		list := f.claim(1)
		if len(list) != 1 {
			t.Fatal("nothing was claimed after all pauses ended")
		}
		if _, err := f.e.Cancel(ctx, id); err != nil {
			t.Fatal(err)
		}
		b, err := f.r.Beat(ctx, f.w)
		if err != nil || len(b.Cancels) != 1 || b.Cancels[0].ID != id {
			t.Errorf("%+v, %v", b, err)
		}
		f.finish(list[0], pawl.RemoteCancelled)
		if j := f.get(id); j.State != pawl.StateCancelled {
			t.Errorf("%v", j.State)
		}
		if err := f.r.Leave(ctx, f.w); err != nil {
			t.Error(err)
		}
	})
}

func TestU3_BadInputOfRemoteWorkersIsNamed(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		ctx := t.Context()
		for _, w := range []struct {
			w    pawl.RemoteWorker
			want string
		}{
			{pawl.RemoteWorker{Kinds: []string{"k"}}, "queues"}, {pawl.RemoteWorker{Queues: []string{"q"}}, "kinds"},
			{pawl.RemoteWorker{Queues: []string{"*"}, Kinds: []string{"k"}}, "queue"},
			{pawl.RemoteWorker{Queues: []string{"q"}, Kinds: []string{"k"}, Slots: 5000}, "slots"},
			{pawl.RemoteWorker{Queues: []string{"q"}, Kinds: []string{"k"}, LostAfter: time.Second}, "lost after"},
		} {
			if _, err := f.r.Register(ctx, w.w); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), w.want) {
				t.Errorf("%+v: %v", w.w, err)
			}
		}
		if _, err := f.r.Claim(ctx, pawl.RemoteClaim{Worker: f.w}); !errors.Is(err, pawl.ErrInvalid) {
			t.Error(err)
		}
		id := f.enqueue()
		held := f.claim(1)
		for _, end := range []pawl.RemoteEnd{{Outcome: "perhaps"}, {Outcome: pawl.RemoteSnoozed}} {
			end.RunRef = pawl.RunRef{ID: id, Run: held[0].Run}
			if _, err := f.r.Finish(ctx, f.w, []pawl.RemoteEnd{end}); !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%+v: %v", end, err)
			}
		}
		if j := f.get(id); j.State != pawl.StateRunning {
			t.Errorf("%v", j.State)
		}
	})
}

// The number of a process with an engine of its own is no door to its jobs: a claim would give back what it runs.
func TestU3_AProcessIsNoRemoteWorker(t *testing.T) {
	remotely(t, pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, func(t *testing.T, f *far) {
		ctx := t.Context()
		begun, end := make(chan struct{}), make(chan struct{})
		pawl.HandleRaw(f.e, "welcome", func(context.Context, *pawl.Job[pawl.Raw]) error {
			close(begun)
			<-end
			return nil
		})
		defer f.runs()()
		id := f.enqueue()
		<-begun
		own := f.get(id).Worker
		ref := pawl.RunRef{ID: id, Run: f.get(id).Run}
		_, claimed := f.r.Claim(ctx, pawl.RemoteClaim{Worker: own, Limit: 1})
		_, beaten := f.r.Beat(ctx, own)
		_, noted := f.r.Note(ctx, own, []pawl.RemoteNote{{RunRef: ref}})
		_, finished := f.r.Finish(ctx, own, []pawl.RemoteEnd{{RunRef: ref, Outcome: pawl.RemoteDone}})
		for name, err := range map[string]error{
			"claim": claimed, "beat": beaten, "note": noted, "finish": finished, "leave": f.r.Leave(ctx, own),
		} {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "worker") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if j := f.get(id); j.State != pawl.StateRunning || j.Worker != own || j.Run != ref.Run {
			t.Errorf("%v of worker %d, run %d", j.State, j.Worker, j.Run)
		}
		close(end)
		if j, err := f.e.Wait(ctx, id); err != nil || j.State != pawl.StateDone || j.Run != ref.Run {
			t.Errorf("%v, run %d: %v", j.State, j.Run, err)
		}
	})
}

// What a worker elsewhere says is bounded and text, as what a handler here says.
func TestU3_WhatARemoteRunSaysIsBounded(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		ctx := t.Context()
		long := strings.Repeat("x", 1<<20) + "\x00"
		says := func() (*pawl.Progress, []pawl.LogLine) {
			return &pawl.Progress{Done: 1, Total: 2, Note: long}, []pawl.LogLine{{Text: long}, {Text: "a\x00\xffb"}}
		}
		check := func(id pawl.ID) {
			t.Helper()
			if n := len(f.get(id).Progress.Note); n > 5<<10 {
				t.Errorf("a note of %d bytes is kept", n)
			}
			lines, err := f.e.Logs(ctx, id, 0, 10)
			if err != nil || len(lines) != 2 || len(lines[0].Text) > 65<<10 || lines[1].Text != "a\x00\uFFFDb" {
				t.Errorf("%d lines: %v", len(lines), err)
			}
		}
		first, second := f.enqueue(), f.enqueue()
		held := f.claim(2)
		progress, logs := says()
		ref := pawl.RunRef{ID: held[0].ID, Run: held[0].Run}
		if _, err := f.r.Note(ctx, f.w, []pawl.RemoteNote{{RunRef: ref, Progress: progress, Logs: logs}}); err != nil {
			t.Fatal(err)
		}
		check(first)
		progress, logs = says()
		ref = pawl.RunRef{ID: held[1].ID, Run: held[1].Run}
		if _, err := f.r.Finish(ctx, f.w, []pawl.RemoteEnd{{RunRef: ref, Outcome: pawl.RemoteDone, Progress: progress, Logs: logs}}); err != nil {
			t.Fatal(err)
		}
		check(second)
	})
}

func TestU3_FollowUpsComeWithTheEndOfARemoteRun(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		f.enqueue()
		j := f.claim(1)[0]
		item := func(user string, opts ...pawl.EnqueueOption) pawl.Item {
			return pawl.NewItem(pawl.RawArgs("welcome", []byte(`{"user_id":`+user+`}`)), opts...)
		}
		then := func(e *pawl.RemoteEnd) { e.Then = []pawl.Item{item("2"), item("3", pawl.Priority(1))} }
		refused := func(what string, edit func(*pawl.RemoteEnd)) {
			t.Helper()
			end := pawl.RemoteEnd{RunRef: pawl.RunRef{ID: j.ID, Run: j.Run}, Outcome: pawl.RemoteDone}
			edit(&end)
			if _, err := f.r.Finish(t.Context(), f.w, []pawl.RemoteEnd{end}); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("done", func(e *pawl.RemoteEnd) { then(e); e.Outcome = pawl.RemoteFailed })
		refused("1000", func(e *pawl.RemoteEnd) { e.Then = slices.Repeat([]pawl.Item{item("2")}, 1001) })
		refused("priority", func(e *pawl.RemoteEnd) { e.Then = []pawl.Item{item("2"), item("3", pawl.Priority(77))} })
		if n := f.waiting(); n != 0 {
			t.Fatalf("%d wait after what was refused", n)
		}
		stale := j
		stale.Run++
		if v := f.finish(stale, pawl.RemoteDone, then); v != job.Stale || f.waiting() != 0 {
			t.Errorf("%v, %d wait after an end that was not the worker's own", v, f.waiting())
		}
		if v := f.finish(j, pawl.RemoteDone, then); v != job.Applied || f.waiting() != 2 {
			t.Fatalf("%v, %d wait", v, f.waiting())
		}
		if v := f.finish(j, pawl.RemoteDone, then, func(e *pawl.RemoteEnd) { e.Again = true }); v != job.Already || f.waiting() != 2 {
			t.Errorf("again: %v, %d wait", v, f.waiting())
		}
		got := f.claim(5)
		if len(got) != 2 || string(got[0].Args) != `{"user_id":3}` || string(got[1].Args) != `{"user_id":2}` {
			t.Errorf("%+v", got)
		}
	})
}

// waiting is how many jobs wait.
func (f *far) waiting() int {
	f.t.Helper()
	n, err := f.e.Count(f.t.Context(), pawl.Filter{States: []pawl.State{pawl.StateWaiting}}, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return n.Jobs
}

// To a remote worker a batch is what one claim gives it: it does not wait for more, and each run ends by itself.
func TestU3_ARemoteWorkerTakesJobsOfABatchedKind(t *testing.T) {
	remotely(t, pawl.Config{Queues: pawl.Queues{"elsewhere": {Workers: 1}}}, func(t *testing.T, f *far) {
		pawl.HandleBatch(f.e, func(context.Context, []*pawl.Job[Welcome]) []error { return nil }, pawl.Batch[Welcome]{Size: 5})
		for range 3 {
			f.enqueue()
		}
		got := f.claim(5)
		if len(got) != 3 {
			t.Fatalf("%d jobs", len(got))
		}
		ends := []pawl.RemoteEnd{
			{RunRef: pawl.RunRef{ID: got[0].ID, Run: got[0].Run}, Outcome: pawl.RemoteDone},
			{RunRef: pawl.RunRef{ID: got[1].ID, Run: got[1].Run}, Outcome: pawl.RemoteFailed, Message: "no"},
			{RunRef: pawl.RunRef{ID: got[2].ID, Run: got[2].Run}, Outcome: pawl.RemoteReleased},
		}
		if v, err := f.r.Finish(t.Context(), f.w, ends); err != nil || slices.ContainsFunc(v, func(v job.Verdict) bool { return v != job.Applied }) {
			t.Fatalf("%v, %v", v, err)
		}
		for i, want := range []struct {
			state pawl.State
			used  int
		}{{pawl.StateDone, 0}, {pawl.StateWaiting, 1}, {pawl.StateWaiting, 0}} {
			if j, err := f.e.Get(t.Context(), got[i].ID); err != nil || j.State != want.state || j.Used != want.used {
				t.Errorf("%d: %v, %d used, %v", i, j.State, j.Used, err)
			}
		}
	})
}
