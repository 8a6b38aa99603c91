package keeper_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// counted is a store that counts what upkeep asks of it.
type counted struct {
	store.Upkeep
	mu    sync.Mutex
	asked map[string]int
	blind bool  // its looks say that there is nothing to do
	fails error // of its looks
}

func (c *counted) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[what]++
}

// taken is what was asked since the last time.
func (c *counted) taken() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// set makes its looks blind, or fail.
func (c *counted) set(blind bool, fails error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blind, c.fails = blind, fails
}

func (c *counted) Due(ctx context.Context) (store.Due, error) {
	c.count("due")
	c.mu.Lock()
	blind, fails := c.blind, c.fails
	c.mu.Unlock()
	if fails != nil || blind {
		return store.Due{}, fails
	}
	return c.Upkeep.Due(ctx)
}

func (c *counted) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	c.count("mark lost")
	return c.Upkeep.MarkLost(ctx, l)
}

func (c *counted) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	c.count("rescue")
	return c.Upkeep.Rescue(ctx, limit)
}

func (c *counted) Expire(ctx context.Context, limit int) (store.ExpireReply, error) {
	c.count("expire")
	return c.Upkeep.Expire(ctx, limit)
}

func (c *counted) Purge(ctx context.Context, limit int) (int, error) {
	c.count("purge")
	return c.Upkeep.Purge(ctx, limit)
}

func (c *counted) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) ([]store.Unserved, error) {
	c.count("unserved")
	return c.Upkeep.Unserved(ctx, by, older)
}

// ticking runs the keeper of a house until the function returns, on a store that counts.
func (h *house) ticking(leads func() bool, do func(c *counted)) {
	h.t.Helper()
	c := &counted{Upkeep: h.store}
	k, err := keeper.New(keeper.Config{
		Store: c, Hub: h.hub, Logger: slog.New(slog.DiscardHandler), Leads: leads,
		Steady: h.steadily,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	tree, err := supervise.New(supervise.Config{Services: []supervise.Service{k.Service()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := tree.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	do(c)
	if stuck := tree.Stop(h.t.Context()); stuck != nil {
		h.t.Error(stuck)
	}
}

// live lets time pass in which the keeper's worker beats, and others.
func (h *house) live(d time.Duration, others ...job.WorkerID) {
	h.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(5*time.Second, time.Until(end))) { // virtual
		h.beat()
		for _, w := range others {
			if _, err := h.store.Beat(h.t.Context(), store.Beat{Worker: w}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	synctest.Wait()
}

func never() bool  { return false }
func always() bool { return true }

// An idle leader looks once a period for all rounds together; the others at three times the period.
func TestJ30_IdleProcessesAskForLittle(t *testing.T) {
	for name, c := range map[string]struct {
		leads func() bool
		every time.Duration // periods
	}{"leader": {always, 1}, "another": {never, 3}} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				h.ticking(c.leads, func(asked *counted) {
					h.live(4 * time.Minute) // the first round comes within a period
					asked.taken()
					const watched = 36 * time.Minute
					h.live(watched)
					got := asked.taken()
					for what, period := range map[string]time.Duration{"due": 5 * time.Second, "mark lost": 1500 * time.Millisecond, "unserved": time.Minute} {
						if want := int(watched / (c.every * period)); got[what] < want-1 || got[what] > want+1 {
							t.Errorf("%s: asked %d times, want about %d", what, got[what], want)
						}
						delete(got, what)
					}
					if len(got) > 0 {
						t.Errorf("nothing was to do, and it was asked for %v", got)
					}
				})
			})
		})
	}
}

// The leader beats, and its keeper does nothing: the others do all of it, no later than after three periods.
func TestJ30_OthersStandInForALeaderThatIsStuck(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		stuck := h.own
		h.own = h.worker()
		if answer, err := h.store.Beat(ctx, store.Beat{Worker: h.own}); err != nil || answer.Leader {
			t.Fatalf("%+v, %v; want that the first leads", answer, err)
		}
		h.ticking(never, func(asked *counted) {
			h.live(4*time.Minute, stuck)
			killed := h.worker()
			orphan := h.add(1, nil)[0]
			h.claim(killed, 1)
			ended := h.add(1, nil)[0]
			held := h.claim(h.own, 1)[0]
			if _, err := h.store.Finish(ctx, h.own, []job.End{{ID: held.ID, Run: held.Run, To: job.Done, Keep: job.Keep{Done: time.Minute}}}); err != nil {
				t.Fatal(err)
			}
			late := h.add(1, func(d *job.Draft) { d.In = time.Hour; d.Deadline = time.Now().Add(time.Minute) })[0]
			h.live(30*time.Second, stuck)
			if s := h.state(orphan); s != job.Running {
				t.Errorf("the job of a worker that may still live is %s", s)
			}
			h.live(5*time.Second, stuck) // 3 × 1.5 s
			if s := h.state(orphan); s != job.Waiting {
				t.Errorf("the job of a lost worker is %s", s)
			}
			h.live(25*time.Second, stuck)
			if s := h.state(late); s != job.Waiting {
				t.Errorf("a job before its deadline is %s", s)
			}
			h.live(15*time.Second, stuck) // 3 × 5 s
			if s := h.state(late); s != job.Dead {
				t.Errorf("a job past its deadline is %s", s)
			}
			h.live(165*time.Second, stuck) // 3 × 60 s
			if jobs, err := h.store.Get(ctx, []job.ID{ended}); err != nil || len(jobs) > 0 {
				t.Errorf("a job past its retention is still there: %v, %v", jobs, err)
			}
			if got := asked.taken(); got["rescue"] == 0 || got["expire"] != 1 {
				t.Errorf("asked for %v", got)
			}
		})
	})
}

// Who becomes the leader does its rounds every period from its next one on.
func TestJ30_WhoBecomesTheLeaderLooksMoreOften(t *testing.T) {
	inHouse(t, func(h *house) {
		first := h.own
		h.own = h.worker()
		h.beat()
		var leads atomic.Bool
		h.ticking(leads.Load, func(asked *counted) {
			h.live(time.Minute, first)
			if err := h.store.Deregister(h.t.Context(), first); err != nil {
				t.Fatal(err)
			}
			leads.Store(true)
			h.live(15 * time.Second)
			asked.taken()
			h.live(time.Minute)
			if got := asked.taken(); got["due"] < 11 || got["mark lost"] < 39 {
				t.Errorf("asked for %v in a minute", got)
			}
		})
	})
}

// A round is skipped when the look says that there is nothing to do, but not by hand.
func TestJ30_ByHandARoundDoesNotLook(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx := h.t.Context()
		late := h.add(1, func(d *job.Draft) { d.In = time.Hour; d.Deadline = time.Now().Add(time.Minute) })[0]
		h.ticking(always, func(asked *counted) {
			asked.set(true, nil)
			h.live(3 * time.Minute)
			if got := asked.taken(); got["expire"] != 0 || got["due"] == 0 {
				t.Errorf("asked for %v, want looks only", got)
			}
			k, err := keeper.New(keeper.Config{Store: asked, Logger: slog.New(slog.DiscardHandler), Leads: never,
				Steady: func() (job.WorkerID, time.Time, time.Duration) { return 0, time.Time{}, 0 }})
			if err != nil {
				t.Fatal(err)
			}
			if report, err := k.Run(ctx, "expire"); err != nil || report.Total() != 1 {
				t.Errorf("by hand: %+v, %v", report, err)
			}
			if s := h.state(late); s != job.Dead {
				t.Errorf("a job past its deadline is %s", s)
			}
			if got := asked.taken(); got["due"] != 0 {
				t.Errorf("by hand it looked: %v", got)
			}
		})
	})
}

// A look that fails is tried again after a period.
func TestP8_AFailedLookIsTriedAgain(t *testing.T) {
	inHouse(t, func(h *house) {
		late := h.add(1, func(d *job.Draft) { d.In = time.Hour; d.Deadline = time.Now().Add(time.Minute) })[0]
		h.ticking(always, func(asked *counted) {
			asked.set(false, errors.New("no"))
			h.live(3 * time.Minute)
			if s := h.state(late); s != job.Waiting {
				t.Fatalf("the job is %s, and every look failed", s)
			}
			asked.set(false, nil)
			h.live(5 * time.Second)
			if s := h.state(late); s != job.Dead {
				t.Errorf("the job is %s a period after the looks work again", s)
			}
		})
	})
}
