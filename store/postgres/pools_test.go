package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// exhaust takes every connection of the caller's pool, as transactions would that do not end.
func exhaust(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
}

// exhaustRole takes so many connections as a role, as its calls would that do not end.
func exhaustRole(t *testing.T, role *pg.Pool, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // where it may not have them
	defer cancel()
	for range n {
		conn, err := role.Acquire(ctx)
		if err != nil {
			t.Fatalf("a role does not have %d connections: %v", n, err)
		}
		t.Cleanup(conn.Release)
	}
}

// sizes are the ways of dividing connections.
var sizes = map[string]func(*Options){
	"default": func(*Options) {},
	"two":     func(o *Options) { o.Connections = 2 },
}

// Users' work, of any kind and amount, leaves a worker's lease and the ends of its
// runs alone: they have connections of their own.
func TestP8_HeartbeatFinishAndUpkeepNeedNoOtherConnection(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			s := openInternal(t, size)
			c := hire(t, s)
			c.enqueue(someDraft(), someDraft(unique("u")), someDraft())
			jobs := c.claim(2)
			exhaustRole(t, s.pg.Work, s.pg.Work.Size())
			if name == "default" { // else they have one for all of them
				exhaustRole(t, s.pg.Claim, 1)
				exhaustRole(t, s.pg.Reading, 1)
			}
			exhaust(t, s.pg.Users)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of a call that hangs
			defer cancel()
			run := store.RunRef{ID: jobs[0].ID, Run: jobs[0].Run}
			for name, call := range map[string]func() error{
				"beat": func() error { _, err := s.Beat(ctx, store.Beat{Worker: c.worker}); return err },
				"note": func() error {
					_, err := s.Note(ctx, c.worker, []store.Note{{RunRef: run, Progress: &job.Progress{Done: 1}}})
					return err
				},
				"hold": func() error {
					_, err := s.ReportRuns(ctx, c.worker, []store.RunRef{run, {ID: jobs[1].ID, Run: jobs[1].Run}})
					return err
				},
				"lose": func() error {
					_, err := s.MarkLost(ctx, store.MarkLostRequest{By: c.worker, Beat: time.Now(), Steady: time.Hour})
					return err
				},
				"rescue": func() error { _, err := s.Rescue(ctx, 10); return err },
				"expire": func() error { _, err := s.Expire(ctx, 10); return err },
				"purge":  func() error { _, err := s.Purge(ctx, 10); return err },
				"redate": func() error {
					_, err := s.MakeDueAgain(ctx, store.ClockStep{Queues: []string{"q"}, Was: time.Now()}, 10)
					return err
				},
				"register": func() error {
					w, err := s.Register(ctx, store.Worker{Label: "w", Queues: []string{"q"}, Offer: knowsK, LostAfter: time.Hour})
					if err == nil {
						err = s.Deregister(ctx, w)
					}
					return err
				},
			} {
				if err := call(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			verdicts, err := s.Finish(ctx, c.worker, []job.End{done(&jobs[0]), failed(&jobs[1])})
			if err != nil || verdicts[0] != job.Applied || verdicts[1] != job.Applied {
				t.Errorf("finish: %v, %v", verdicts, err)
			}
		})
	}
}

// Who only reads, or enqueues with a deadline (which asks for the store's time),
// never takes a connection that a heartbeat needs.
func TestP8_ReadingLeavesReservedConnectionsAlone(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			s := openInternal(t, size)
			c := hire(t, s)
			d := someDraft(unique("u"))
			c.enqueue(d, someDraft())
			exhaustRole(t, s.pg.Reserved, s.pg.Reserved.Size())
			if name == "default" {
				exhaustRole(t, s.pg.Finish, 2)
				exhaustRole(t, s.pg.Upkeep, 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of a call that hangs
			defer cancel()
			for name, call := range map[string]func() error{
				"now":       func() error { _, err := s.Now(ctx); return err },
				"get":       func() error { _, err := s.Get(ctx, []job.ID{d.ID}); return err },
				"list":      func() error { _, err := s.List(ctx, store.Filter{}, store.Page{Limit: 10}); return err },
				"count":     func() error { _, err := s.Count(ctx, store.Filter{}, 0); return err },
				"situation": func() error { _, err := s.Situations(ctx, []job.ID{d.ID}); return err },
				"logs":      func() error { _, err := s.Logs(ctx, d.ID, 0, 10); return err },
				"registry":  func() error { _, err := s.Registry(ctx); return err },
				"audit":     func() error { _, err := s.Audit(ctx, store.AuditFilter{}, store.AuditPage{Limit: 10}); return err },
				"check":     func() error { _, err := s.Check(ctx, store.Check{}); return err },
				"enqueue":   func() error { _, err := s.Enqueue(ctx, []job.Draft{someDraft()}); return err },
				"unique":    func() error { _, err := s.Enqueue(ctx, []job.Draft{someDraft(unique("u"))}); return err },
				"cancel":    func() error { _, err := s.Cancel(ctx, []job.ID{job.NewID()}, store.Operator{}); return err },
				"pause":     func() error { return s.SetPaused(ctx, store.OfQueue("other"), false, store.Operator{}) },
			} {
				if err := call(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// Whoever has all that one role may have holds up that role alone.
func TestP8_ARoleExhaustsOnlyItself(t *testing.T) {
	names := []string{"heartbeat", "finish", "upkeep", "claim", "work", "reading"}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			s := openInternal(t)
			c := hire(t, s)
			c.enqueue(many(10)...)
			jobs := c.claim(1)
			roles := []*pg.Pool{s.pg.Reserved, s.pg.Finish, s.pg.Upkeep, s.pg.Claim, s.pg.Work, s.pg.Reading}
			exhaustRole(t, roles[i], roles[i].Size())
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of a call that hangs
			defer cancel()
			for k, call := range []func() error{
				func() error { _, err := s.Beat(ctx, store.Beat{Worker: c.worker}); return err },
				func() error { _, err := s.Finish(ctx, c.worker, []job.End{done(&jobs[0])}); return err },
				func() error { _, err := s.Purge(ctx, 10); return err },
				func() error {
					claimed, err := s.Claim(ctx, store.Claim{Worker: c.worker, Seq: 2, Offer: knowsK, Queues: []store.QueueClaim{{Queue: "q", Limit: 3, Start: 3}}})
					if err == nil && len(claimed.Jobs) != 3 {
						t.Errorf("claimed %d jobs, want 3", len(claimed.Jobs))
					}
					return err
				},
				func() error { _, err := s.Enqueue(ctx, many(2)); return err },
				func() error { _, err := s.Count(ctx, store.Filter{}, 0); return err },
			} {
				if k == i {
					continue
				}
				if err := call(); err != nil {
					t.Errorf("%s: %v", names[k], err)
				}
			}
		})
	}
}

// So many read at once and no more. The next waits, and is told; so is who reads for too long, which is not begun again.
// Meanwhile jobs are enqueued, claimed and ended.
func TestJ35_ReadsAreBoundedAndTakeNobodysConnection(t *testing.T) {
	s := openInternal(t, func(o *Options) { o.ReadLimit = 200 * time.Millisecond })
	c := hire(t, s)
	ctx := t.Context()
	began := 0
	slow := func() []*pg.Statement {
		began++
		return []*pg.Statement{{Text: "SELECT pg_sleep(60)"}}
	}
	if err := s.pg.Browse(ctx, slow); !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "ReadLimit") || began != 1 {
		t.Errorf("a read that takes a minute: %v, begun %d times; want ErrBusy, once", err, began)
	}
	reads := []func() error{
		func() error { _, err := s.List(ctx, store.Filter{}, store.Page{Limit: 10}); return err },
		func() error { _, err := s.Count(ctx, store.Filter{}, 0); return err },
		func() error { _, err := s.Counts(ctx); return err },
		func() error { _, err := s.Queues(ctx, []string{"q"}); return err },
		func() error { _, err := s.Audit(ctx, store.AuditFilter{}, store.AuditPage{Limit: 10}); return err },
	}
	s.pg.ReadLimit = time.Minute
	for i, read := range reads {
		if err := read(); err != nil {
			t.Errorf("read %d: %v", i, err)
		}
	}
	s.pg.ReadLimit = 200 * time.Millisecond
	exhaustRole(t, s.pg.Reading, s.pg.Reading.Size())
	for i, read := range reads[:2] {
		if err := read(); !errors.Is(err, store.ErrBusy) {
			t.Errorf("read %d beside %d others: %v, want ErrBusy", i, s.pg.Reading.Size(), err)
		}
	}
	c.enqueue(many(10)...)
	if n := c.drain(3); n != 10 {
		t.Errorf("beside them %d of 10 jobs ran", n)
	}
}

// All that an idle process does goes over the same few connections, whatever roles there are: one that goes from call to
// call, one that notifies meanwhile, one of what goes on after an answer. The least of three processes: in one whose commit
// stands still for a moment, what removes hints can meet all of these.
func TestP10_AnIdleProcessHasFewConnections(t *testing.T) {
	least := idleConnections(t)
	for range 2 {
		least = min(least, idleConnections(t))
	}
	if least > 3 {
		t.Errorf("%d connections are open, want 3 at most", least)
	}
}

// idleConnections are those that a process has open after a little of everything.
func idleConnections(t *testing.T) int32 {
	t.Helper()
	s := openInternal(t)
	c := hire(t, s)
	ctx := t.Context()
	for range 5 {
		c.enqueue(someDraft())
		c.drain(10)
		_, beat := s.Beat(ctx, store.Beat{Worker: c.worker})
		_, due := s.Due(ctx)
		_, purge := s.Purge(ctx, 10)
		_, list := s.List(ctx, store.Filter{}, store.Page{Limit: 10})
		if err := errors.Join(beat, due, purge, list); err != nil {
			t.Fatal(err)
		}
	}
	return s.pg.Work.Stat().TotalConns()
}
