package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// What a process accepts while it has a free slot starts in the same commit; what is
// paused by anybody, and known or not known yet to this process, does not.
func TestJ34_EnqueueBeginsWhatThereIsASlotFor(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 2}}}, ignoring)
		other := at.settle(pawl.Config{})
		pass(time.Second)
		w.add(1)
		pass(0)
		if s := w.Stats(); s.HandedOver != 1 || s.Claimed != 0 || s.Finished[pawl.OutcomeSucceeded] != 1 {
			t.Errorf("%d handed over, %d claimed, %d done; want 1, 0 and 1", s.HandedOver, s.Claimed, s.Finished[pawl.OutcomeSucceeded])
		}
		other.must(other.Queue("default").Pause(t.Context()))
		ids := w.add(1) // in the same moment: this process has not heard of it
		pass(time.Second)
		w.add(1)
		pass(time.Minute)
		if s := w.Stats(); s.HandedOver != 1 || s.Began != 1 {
			t.Errorf("%d handed over and %d began while the queue is paused, want the one before", s.HandedOver, s.Began)
		}
		why, err := w.Why(t.Context(), ids[0])
		if err != nil || why.Code != pawl.WhyPaused {
			t.Errorf("why: %v, %v", why, err)
		}
		other.must(other.Queue("default").Resume(t.Context()))
		pass(time.Second)
		if s := w.Stats(); s.Claimed != 2 || s.Began != 3 {
			t.Errorf("%d claimed and %d began after it, want 2 and 3", s.Claimed, s.Began)
		}
		w.add(1)
		pass(0)
		if s := w.Stats(); s.HandedOver != 2 {
			t.Errorf("%d handed over, want that it goes on after the pause", s.HandedOver)
		}
	})
}

// A store that panics in the goroutine of a caller who survives it keeps no slot (P8).
func TestJ34_APanicInTheStoreKeepsNoSlot(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, ignoring)
		pass(time.Second)
		w.way.panics.Store(true)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			_, _ = w.Enqueue(t.Context(), Welcome{})
		}()
		w.way.panics.Store(false)
		pass(time.Minute)
		w.add(1)
		pass(time.Second)
		if s := w.Stats(); s.HandedOver != 1 || s.Finished[pawl.OutcomeSucceeded] != 1 {
			t.Errorf("%d handed over, %d done; want the job after it", s.HandedOver, s.Finished[pawl.OutcomeSucceeded])
		}
	})
}

// A limit that was declared a moment ago holds, although this process does not know it yet.
func TestJ34_ALimitThatIsNotKnownYetHolds(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		running := make(chan struct{}, 10)
		free := make(chan struct{})
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 5}}}, func(to *pawl.Engine) {
			pawl.Handle(to, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
				running <- struct{}{}
				select {
				case <-free:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
		pass(time.Second)
		w.add(1)
		pass(0)
		at.work(pawl.Config{Limits: []pawl.Limit{{Name: "one", Kind: "welcome", Concurrent: 1}}, Queues: pawl.Queues{"elsewhere": {Workers: 1}}}, ignoring)
		ids := w.add(2)
		pass(time.Minute)
		before := len(running)
		ids = append(ids, w.add(1)...)
		pass(time.Minute)
		if n := len(running); n != before {
			t.Errorf("%d began after the limit was known, %d before", n, before)
		}
		waiting := 0
		for _, id := range ids {
			if j, err := w.Get(t.Context(), id); err == nil && j.State == job.Waiting {
				waiting++
			}
		}
		if waiting == 0 {
			t.Error("nothing waits: the limit does not hold")
		}
		close(free)
		pass(time.Minute)
	})
}

// What falls due of a schedule begins in the commit that moves the schedule on, where the leader has a slot for it.
func TestJ34_AScheduleBeginsWhatThereIsASlotFor(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		pass(1300 * time.Millisecond) // nothing that the process does every so many seconds falls on a full minute
		w := at.work(pawl.Config{
			Queues:    pawl.Queues{"default": {Workers: 2}},
			Schedules: []pawl.Schedule{{Name: "often", Cron: "* * * * *", Job: Welcome{}}, {Name: "alone", Cron: "* * * * *", Job: Welcome{}, SkipIfActive: true}},
		}, ignoring)
		pass(10*time.Minute + time.Second)
		fires := len(w.fires("often"))
		if s := w.Stats(); fires < 10 || s.HandedOver != uint64(fires) || s.Claimed != uint64(len(w.fires("alone"))) || s.Began != s.HandedOver+s.Claimed {
			t.Errorf("%d handed over, %d claimed, %d began; want the %d of one schedule, and those of the other claimed, which are unique",
				s.HandedOver, s.Claimed, s.Began, fires)
		}
		why, err := w.Check(t.Context(), pawl.CheckOptions{})
		if err != nil || why.Found > 0 {
			t.Errorf("check: %v, %v", why, err)
		}
	})
}
