package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func closing() []testCase {
	return []testCase{
		{name: "P1_AcceptedSurvivesCloseAndOpen", needs: Features{Shared: true, Durable: true}, run: func(d *database) {
			waiting, held, done := d.one(priority(9)), d.one(priority(2)), d.one(priority(1), once("x", time.Hour))
			w := d.hire()
			w.end(w.take(), job.Done)
			running := w.take()
			before := []job.Job{d.get(waiting), d.get(held), d.get(done)}
			if err := d.Store.Close(); err != nil {
				d.Fatalf("close: %v", err)
			}
			d.Store = d.open(store.Settings{})
			equal(d, "jobs", []job.Job{d.get(waiting), d.get(held), d.get(done)}, before)
			d.duplicate("unique within its period", done, draft(once("x", 0)))
			// The process is the same worker still: its lease is in the database.
			w.store = d.Store
			w.beat()
			w.end(running, job.Done)
		}},
		{name: "CloseIsIdempotent", needs: Features{Shared: true}, run: func(d *database) {
			s := d.open(store.Settings{})
			for range 3 {
				if err := s.Close(); err != nil {
					d.Errorf("close: %v", err)
				}
			}
		}},
		{name: "CallsAfterCloseAreErrClosed", needs: Features{Shared: true}, run: func(d *database) {
			s := d.open(store.Settings{})
			if err := s.Close(); err != nil {
				d.Fatalf("close: %v", err)
			}
			id := []job.ID{job.NewID()}
			for name, call := range map[string]func() error{
				"enqueue":  func() error { _, err := s.Enqueue(d.ctx, drafts(1)); return err },
				"claim":    func() error { _, err := s.Claim(d.ctx, store.Claim{Worker: 1, Seq: 1}); return err },
				"finish":   func() error { _, err := s.Finish(d.ctx, 1, []job.End{{ID: id[0], Run: 1, To: job.Done}}); return err },
				"cancel":   func() error { _, err := s.Cancel(d.ctx, id, store.Operator{}); return err },
				"register": func() error { _, err := s.Register(d.ctx, store.Worker{}); return err },
				"beat":     func() error { _, err := s.Beat(d.ctx, store.Beat{Worker: 1}); return err },
				"rescue":   func() error { _, err := s.Rescue(d.ctx, 1); return err },
				"get":      func() error { _, err := s.Get(d.ctx, id); return err },
				"list":     func() error { _, err := s.List(d.ctx, store.Filter{}, store.Page{Limit: 1}); return err },
				"check":    func() error { _, err := s.Check(d.ctx, store.Check{}); return err },
				"begin":    func() error { _, err := s.Begin(d.ctx); return err },
			} {
				means(d, name, call(), store.ErrClosed)
			}
		}},
		{name: "CloseWaitsForCallsUnderWay", needs: Features{Shared: true}, run: func(d *database) {
			s := d.open(store.Settings{})
			var told [8][]job.ID
			together(9, func(i int) {
				if i == 8 {
					if err := s.Close(); err != nil {
						d.Errorf("close: %v", err)
					}
					return
				}
				for {
					list := drafts(1)
					if _, err := s.Enqueue(d.ctx, list); err != nil {
						means(d, "enqueue while it closes", err, store.ErrClosed)
						return
					}
					told[i] = append(told[i], list[0].ID)
				}
			})
			n := 0
			for _, list := range told {
				n += len(list)
			}
			equal(d, "accepted and there", d.count(), n)
		}},
	}
}
