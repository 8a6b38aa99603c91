package keeper_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/internal/boot"
	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/supervise"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var offer = job.Offer{Kinds: map[string]int{"k": 0}}

// house is a store in memory with a keeper whose own beats a test decides.
type house struct {
	t      *testing.T
	store  store.Store
	hub    *wake.Hub
	own    job.WorkerID
	mu     sync.Mutex
	known  time.Time // its last beat
	steady time.Duration
	*keeper.Keeper
}

func inHouse(t *testing.T, test func(h *house), change ...func(*keeper.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Memory().Open(t.Context(), store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		h := &house{t: t, store: st, hub: wake.NewHub(), steady: time.Hour}
		h.own = h.worker()
		h.beat()
		c := keeper.Config{
			Store: st, Hub: h.hub, Logger: slog.New(slog.DiscardHandler),
			Steady: h.steadily,
		}
		for _, f := range change {
			f(&c)
		}
		if h.Keeper, err = keeper.New(c); err != nil {
			t.Fatal(err)
		}
		test(h)
		report, err := st.Check(t.Context(), store.Check{})
		if err != nil || len(report.Faults) > 0 {
			t.Errorf("check: %v, %v", report.Faults, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (h *house) worker() job.WorkerID {
	h.t.Helper()
	w, err := h.store.Register(h.t.Context(), store.Worker{Label: "w", Queues: []string{"q"}, Offer: offer, LostAfter: 30 * time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// beat renews the lease of the keeper's own worker.
func (h *house) beat() {
	h.t.Helper()
	answer, err := h.store.Beat(h.t.Context(), store.Beat{Worker: h.own})
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = answer.Now
}

// steadily is what the keeper is told of its own beats.
func (h *house) steadily() (job.WorkerID, time.Time, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.own, h.known, h.steady
}

func (h *house) add(n int, change func(*job.Draft)) []job.ID {
	h.t.Helper()
	var drafts []job.Draft
	var ids []job.ID
	for range n {
		d := job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5}
		if change != nil {
			change(&d)
		}
		drafts, ids = append(drafts, d), append(ids, d.ID)
	}
	if _, err := h.store.Enqueue(h.t.Context(), drafts); err != nil {
		h.t.Fatal(err)
	}
	return ids
}

func (h *house) claim(w job.WorkerID, n int) []store.LeasedJob {
	h.t.Helper()
	c, err := h.store.Claim(h.t.Context(), store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: n, Start: n}}})
	if err != nil {
		h.t.Fatal(err)
	}
	return c.Jobs
}

func (h *house) state(id job.ID) job.State {
	h.t.Helper()
	jobs, err := h.store.Get(h.t.Context(), []job.ID{id})
	if err != nil || len(jobs) != 1 {
		h.t.Fatal(jobs, err)
	}
	return jobs[0].State
}

func TestJ12_LostWorkersJobsComeBack(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		sub := h.hub.Subscribe("q")
		lost := h.worker()
		ids := h.add(3, nil)
		h.claim(lost, 3)
		time.Sleep(29 * time.Second)
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 0 || r.Total() != 0 {
			t.Errorf("before its time: %+v, %v", r, err)
		}
		h.beat()
		time.Sleep(2 * time.Second)
		r, err := h.RescueOnce(ctx, 500)
		if err != nil || r.Lost != 1 || r.Waiting != 3 {
			t.Errorf("after its time: %+v, %v", r, err)
		}
		for _, id := range ids {
			if s := h.state(id); s != job.Waiting {
				t.Errorf("job is %s", s)
			}
		}
		select {
		case <-sub.C():
		default:
			t.Error("nobody was told that jobs wait again")
		}
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 0 || r.Total() != 0 {
			t.Errorf("a second keeper found something left: %+v, %v", r, err)
		}
	})
}

func TestJ32_WhoWasNotSteadyDeclaresNobodyLost(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		other := h.worker()
		id := h.add(1, nil)[0]
		h.claim(other, 1)
		time.Sleep(2 * time.Minute) // the store was down for all of them
		h.beat()                    // the first to come back
		h.steady = 29 * time.Second
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 0 || r.Total() != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		own := h.own
		h.steady, h.own = time.Hour, 0 // not registered
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if s := h.state(id); s != job.Running {
			t.Errorf("job is %s: an outage lost the fleet", s)
		}
		h.own = own
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 1 || r.Waiting != 1 {
			t.Errorf("steady: %+v, %v", r, err)
		}
	})
}

// TestJ12_SteadyForTheTargetsTime has a worker that may be silent for longer than the keeper's own.
func TestJ12_SteadyForTheTargetsTime(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		patient, err := h.store.Register(ctx, store.Worker{Label: "patient", Queues: []string{"q"}, Offer: offer, LostAfter: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		id := h.add(1, nil)[0]
		h.claim(patient, 1)
		time.Sleep(6 * time.Minute) // the store was down for all of them
		h.beat()
		h.steady = time.Minute // longer than the keeper's own time, shorter than the other's
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 0 || r.Total() != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if s := h.state(id); s != job.Running {
			t.Errorf("job is %s: who was steady for a minute declared one lost that may be silent for five", s)
		}
		h.steady = 5 * time.Minute
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 1 || r.Waiting != 1 {
			t.Errorf("steady for as long: %+v, %v", r, err)
		}
	})
}

// TestJ12_TheDeadOfThisMachineAreLostAtOnce has a keeper that has only just started.
func TestJ12_TheDeadOfThisMachineAreLostAtOnce(t *testing.T) {
	here := boot.Identity{Machine: "kernel pids host", Process: 1, Start: "1 time"}
	dead := boot.Identity{Machine: here.Machine, Process: 2, Start: "2 time"}
	var asked []boot.Identity
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		on := func(id boot.Identity) job.WorkerID {
			w, err := h.store.Register(ctx, store.Worker{
				Label: "w", Machine: id.Machine, Process: id.Process, Start: id.Start, Queues: []string{"q"}, Offer: offer, LostAfter: 30 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		killed := on(dead)
		alive := on(boot.Identity{Machine: here.Machine, Process: 3, Start: "3 time"})
		elsewhere := on(boot.Identity{Machine: "another", Process: 2, Start: "2 time"})
		sub := h.hub.Subscribe("q")
		ids := h.add(3, nil)
		for _, w := range []job.WorkerID{killed, alive, elsewhere} {
			h.claim(w, 1)
		}
		h.steady = 0
		r, err := h.RescueOnce(ctx, 500)
		if err != nil || r.Lost != 1 || r.Dead != 1 || r.Waiting != 1 {
			t.Errorf("%+v, %v; want the dead one lost and its job rescued in one round", r, err)
		}
		for i, want := range []job.State{job.Waiting, job.Running, job.Running} {
			if s := h.state(ids[i]); s != want {
				t.Errorf("job %d is %s, want %s", i, s, want)
			}
		}
		select {
		case <-sub.C():
		default:
			t.Error("nobody was told that a job waits again")
		}
		for _, id := range asked {
			if id.Machine != here.Machine {
				t.Errorf("asked about %+v, which is of another machine", id)
			}
		}
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Lost != 0 || r.Total() != 0 {
			t.Errorf("again: %+v, %v", r, err)
		}
	}, func(c *keeper.Config) {
		c.Self = here
		c.Dead = func(id boot.Identity) bool { asked = append(asked, id); return id == dead }
	})
}

func TestJ12_KeeperThatIsLostItselfStillRescues(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		gone := h.worker()
		h.add(1, nil)
		h.claim(gone, 1)
		if err := h.store.Deregister(ctx, gone); err != nil {
			t.Fatal(err)
		}
		if err := h.store.Deregister(ctx, h.own); err != nil {
			t.Fatal(err)
		}
		if r, err := h.RescueOnce(ctx, 500); err != nil || r.Waiting != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// done adds jobs that are done, and kept for a minute.
func (h *house) done(n int) {
	h.t.Helper()
	h.add(n, nil)
	var ends []job.End
	for _, j := range h.claim(h.own, n) {
		ends = append(ends, job.End{ID: j.ID, Run: j.Run, To: job.Done, Keep: job.Keep{Done: time.Minute}})
	}
	if _, err := h.store.Finish(h.t.Context(), h.own, ends); err != nil {
		h.t.Fatal(err)
	}
}

func TestF14_DeadlinesOfWaitingJobsEndThem(t *testing.T) {
	inHouse(t, func(h *house) {
		late := h.add(1, func(d *job.Draft) { d.In = time.Hour; d.Deadline = time.Now().Add(time.Minute) })[0]
		fine := h.add(1, nil)[0]
		time.Sleep(2 * time.Minute) // virtual: past the deadline
		if e, err := h.ExpireOnce(h.t.Context(), 10); err != nil || e.Total() != 1 {
			t.Errorf("expired %d, %v", e.Total(), err)
		}
		if s := h.state(late); s != job.Dead {
			t.Errorf("late job is %s", s)
		}
		if s := h.state(fine); s != job.Waiting {
			t.Errorf("other job is %s", s)
		}
	})
}

func TestJ15_PurgeIsBoundedAndGoesOnWhileFull(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		h.done(25)
		time.Sleep(2 * time.Minute) // virtual: past the retention
		if n, err := h.PurgeOnce(ctx, 10); err != nil || n != 10 {
			t.Errorf("one round removed %d, %v; want 10", n, err)
		}
		tree, err := supervise.New(supervise.Config{Services: []supervise.Service{h.Service()}})
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Start(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second) // the first tick starts within the interval; full rounds follow at once
		synctest.Wait()
		if n, err := h.store.Count(ctx, store.Filter{}, 0); err != nil || n.Jobs != 0 {
			t.Errorf("%d jobs left, %v", n.Jobs, err)
		}
		if stuck := tree.Stop(ctx); stuck != nil {
			t.Error(stuck)
		}
	}, func(c *keeper.Config) { c.Limit = 10 })
}

func TestF14_RoundsInTwoProcessesAtOnceAreHarmless(t *testing.T) {
	inHouse(t, func(h *house) {
		lost := h.worker()
		ids := h.add(50, nil)
		h.claim(lost, 50)
		time.Sleep(31 * time.Second)
		h.beat()
		total := make(chan int)
		for range 4 {
			go func() {
				n := 0
				for range 10 {
					r, err := h.RescueOnce(context.WithoutCancel(h.t.Context()), 500)
					if err != nil {
						t.Error(err)
					}
					n += r.Waiting
				}
				total <- n
			}()
		}
		sum := 0
		for range 4 {
			sum += <-total
		}
		if sum != len(ids) {
			t.Errorf("%d rescues for %d jobs", sum, len(ids))
		}
	}, func(c *keeper.Config) { c.Limit = 7 })
}

// broken is a store whose upkeep fails.
type broken struct{ store.Upkeep }

func (broken) MarkLost(context.Context, store.MarkLostRequest) (store.MarkLostReply, error) {
	return store.MarkLostReply{}, store.ErrUnavailable
}

func TestP8_FailureToLoseDoesNotStopTheRescue(t *testing.T) {
	var st store.Upkeep
	inHouse(t, func(h *house) {
		st = h.store
		gone := h.worker()
		h.add(1, nil)
		h.claim(gone, 1)
		if err := h.store.Deregister(h.t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		k, err := keeper.New(keeper.Config{
			Store: broken{st}, Logger: slog.New(slog.DiscardHandler),
			Steady: func() (job.WorkerID, time.Time, time.Duration) { return h.own, h.known, time.Hour },
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := k.RescueOnce(h.t.Context(), 500)
		if !errors.Is(err, store.ErrUnavailable) || r.Waiting != 1 {
			t.Errorf("%+v, %v; want the rescue and the error", r, err)
		}
	})
}

func TestKeeper_ConfigFaultsAreAllReported(t *testing.T) {
	_, err := keeper.New(keeper.Config{Limit: -1, Rescue: time.Millisecond, Purge: -1})
	if !errors.Is(err, job.ErrInvalid) {
		t.Fatal(err)
	}
	for _, part := range []string{"store", "steady", "limit -1", "rescue interval 1ms", "purge interval -1ns"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q: %v", part, err)
		}
	}
}

// Each round runs by hand and says truly what it did; a second one finds nothing.
func TestJ30_RoundsRunByHandAndReport(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		h.add(1, func(d *job.Draft) { d.In = time.Hour; d.Deadline = time.Now().Add(time.Minute) })
		h.done(3)
		time.Sleep(2 * time.Minute) // virtual: past the deadline and the retention
		for _, c := range []struct {
			round string
			did   []store.UpkeepDid
		}{
			{"rescue", nil},
			{"expire", []store.UpkeepDid{{What: "jobs dead", N: 1}}},
			{"purge", []store.UpkeepDid{{What: "rows removed", N: 3}}},
		} {
			for _, want := range [][]store.UpkeepDid{c.did, nil} {
				report, err := h.Run(ctx, c.round)
				if err != nil || report.Round != c.round || !slices.Equal(report.Did, want) || report.More {
					t.Errorf("%s: %+v, %v, want %v", c.round, report, err, want)
				}
			}
		}
		if _, err := h.Run(ctx, "tidy"); err == nil || !strings.Contains(err.Error(), "[rescue expire intents operations purge rollup unserved gates members trim delayed]") {
			t.Errorf("a round that is none: %v", err)
		}
	})
}

// What processes measured is rolled up in its time, and a round says how much.
func TestJ20_MetricsAreRolledUpInTheirTime(t *testing.T) {
	inHouse(t, func(h *house) {
		var v metric.Jobs
		v.Add(metric.Done)
		row := store.MetricRow{Class: metric.OfJobs, Start: time.Now().Truncate(time.Minute), Name: "q", Kind: "k", Data: v.Append(nil)}
		for range 3 {
			f := store.MetricFlush{Source: job.NewID(), Number: 1, Rows: []store.MetricRow{row}}
			if err := h.store.(store.Metrics).AddMetrics(h.t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int{0, 3, 0} {
			report, err := h.Run(h.t.Context(), "rollup")
			if err != nil || report.Total() != want || report.More {
				t.Errorf("%+v, %v, want %d rolled up", report, err, want)
			}
			time.Sleep(12 * time.Minute) // virtual: past the minute and ten more
		}
	})
}

// All rounds of many keepers at once change nothing twice.
func TestJ30_RoundsOfManyAtOnceChangeNothingTwice(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := context.WithoutCancel(h.t.Context())
		h.add(40, func(d *job.Draft) { d.In = time.Hour; d.Deadline = time.Now().Add(time.Minute) })
		h.done(40)
		time.Sleep(2 * time.Minute) // virtual: past the deadline and the retention
		done := make(chan map[string]int)
		for range 4 {
			go func() {
				did := map[string]int{}
				for range 10 {
					for _, r := range h.Rounds() {
						report, err := r.Do(ctx, 10)
						if err != nil {
							t.Error(err)
						}
						did[r.Name] += report.Total()
					}
				}
				done <- did
			}()
		}
		all := map[string]int{}
		for range 4 {
			for name, n := range <-done {
				all[name] += n
			}
		}
		if all["expire"] != 40 || all["purge"] != 40 || all["rescue"] != 0 {
			t.Errorf("all together did %v, want 40 of each once", all)
		}
	})
}
