package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A user's transaction that holds the unique key of one schedule delays that one only:
// its fire gives up at once, and changes nothing.
func TestP8_AHeldKeyDelaysOneSchedule(t *testing.T) {
	s := openInternal(t)
	ctx := t.Context()
	due := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	settings, err := s.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name string) store.Firing {
		return store.Firing{Name: name, New: true, Cron: "0 * * * *", Anchor: due, Next: due}
	}
	fire := func(name string) store.Firing {
		d := someDraft()
		d.ID, d.Unique.Hash = job.ScheduledID(name, due), job.ScheduleUnique(name)
		f := begin(name)
		f.New, f.Was, f.Next, f.Last, f.Jobs = false, due, due.Add(time.Hour), due, []job.Draft{d}
		return f
	}
	if _, err := s.Fire(ctx, settings.Revision, []store.Firing{begin("held"), begin("free")}); err != nil {
		t.Fatal(err)
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	holder := someDraft()
	holder.Unique.Hash = job.ScheduleUnique("held")
	if _, err := tx.Enqueue(ctx, []job.Draft{holder}); err != nil {
		t.Fatal(err)
	}
	if fired, err := s.Fire(ctx, settings.Revision, []store.Firing{fire("held"), fire("free")}); err == nil || errors.Is(err, job.ErrOutcomeUnknown) {
		t.Errorf("fired %+v, %v while the key is held", fired, err)
	}
	if fired, err := s.Fire(ctx, settings.Revision, []store.Firing{fire("free")}); err != nil || !fired[0].Moved {
		t.Errorf("the free one: %+v, %v", fired, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if fired, err := s.Fire(ctx, settings.Revision, []store.Firing{fire("held")}); err != nil || !fired[0].Moved {
		t.Errorf("after the rollback: %+v, %v", fired, err)
	}
}
