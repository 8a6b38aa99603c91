package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// exhaust takes every connection of a pool, as calls would that do not end.
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
			exhaust(t, s.pg.Work)
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
			exhaust(t, s.pg.Reserved)
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
