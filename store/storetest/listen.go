package storetest

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// listen: hearing too much is harmless, so the cases only ask that what matters
// is heard. They repeat the change until it is, because a listener says nothing
// about when it has begun to hear; the test's own deadline is the bound.
func listen() []testCase {
	heard := func(d *database, change func(s store.Store), fits func(store.Hint) bool) {
		d.Helper()
		ctx, stop := context.WithCancel(d.ctx)
		hints := make(chan store.Hint)
		ended := make(chan error, 1)
		listener, ok := d.Store.(store.Listener)
		if !ok {
			d.Fatalf("%T declares listen and is no store.Listener", d.Store)
		}
		go func() {
			ended <- listener.Listen(ctx, func(h store.Hint) {
				select {
				case hints <- h:
				case <-ctx.Done():
				}
			})
		}()
		elsewhere := d.open(store.Settings{})
		for found := false; !found; {
			change(elsewhere)
			select {
			case h := <-hints:
				found = fits(h)
			case err := <-ended:
				d.Fatalf("listen ended by itself: %v", err)
			default:
			}
		}
		stop()
		<-ended
	}
	return []testCase{
		{name: "P5_EnqueueElsewhereIsHeard", needs: Features{Listen: true, Shared: true}, run: func(d *database) {
			heard(d, func(s store.Store) {
				must[[]job.Receipt](d, "enqueue")(s.Enqueue(d.ctx, drafts(1)))
			}, func(h store.Hint) bool { return about(h, store.SubjectQueue, queue) })
		}},
		{name: "J10_CancelElsewhereIsHeard", needs: Features{Listen: true, Shared: true}, run: func(d *database) {
			id := d.one()
			d.hire().take()
			heard(d, func(s store.Store) {
				must[[]store.Change](d, "cancel")(s.Cancel(d.ctx, []job.ID{id}, store.Operator{}))
			}, func(h store.Hint) bool { return about(h, store.SubjectJob, id.String()) })
		}},
		{name: "J18_AWorkerThatComesOrLeavesElsewhereIsHeard", needs: Features{Listen: true, Shared: true}, run: func(d *database) {
			total := store.Total{Queue: queue, Total: 1, Workers: 1}
			d.agree(d.share(total), d.share(total)) // a store need not listen for what none of its workers wants to know
			members := func(h store.Hint) bool { return about(h, store.SubjectMembers, "") }
			var came []job.WorkerID
			come := func(s store.Store) {
				id := must[job.WorkerID](d, "register")(s.Register(d.ctx, store.Worker{
					Label: "newcomer", Queues: []string{queue}, Totals: []store.Total{total}, LostAfter: lostAfter,
				}))
				came = append(came, id)
				// A version that all have stored for long: it shares at once.
				must[store.BeatReply](d, "beat")(s.Beat(d.ctx, store.Beat{Worker: id, Splits: true, Version: 1}))
			}
			heard(d, come, members)
			for range 100 {
				come(d.Store)
			}
			heard(d, func(s store.Store) {
				if len(came) == 0 {
					come(s)
					return
				}
				if err := s.Deregister(d.ctx, came[0]); err != nil {
					d.Fatal(err)
				}
				came = came[1:]
			}, members)
		}},
	}
}

// about reports whether a hint tells of something: by its name, of any, or of everything.
func about(h store.Hint, what store.Subject, name string) bool {
	return h == (store.Hint{}) || h.Subject == what && (h.Name == "" || h.Name == name)
}
