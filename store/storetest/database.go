package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// clocked is a store whose clock a test can shift.
type clocked interface{ SetClockOffset(time.Duration) }

// database is the ground of one case: an empty database with one store open on it.
type database struct {
	*testing.T
	store.Store
	ctx    context.Context
	opener store.Opener
	opened []store.Store
	offset time.Duration
	// abandoned says that the case leaves runs with lost workers behind, on purpose.
	abandoned bool
	// spoilt are the jobs with parts that cannot be read: a check names them.
	spoilt map[job.ID]bool
}

func newDatabase(t *testing.T, fresh Fresh, s store.Settings) *database {
	d := &database{T: t, ctx: t.Context(), opener: fresh(t)}
	t.Cleanup(func() {
		for _, s := range d.opened {
			if err := s.Close(); err != nil {
				d.Errorf("close: %v", err)
			}
		}
	})
	d.Store = d.open(s)
	t.Cleanup(d.inspect)
	return d
}

// open opens one more store on the database. It is closed after the last look.
func (d *database) open(s store.Settings) store.Store {
	d.Helper()
	opened, err := d.opener.Open(d.ctx, s)
	if err != nil {
		d.Fatalf("open: %v", err)
	}
	shift(d.T, opened, d.offset)
	d.opened = append(d.opened, opened)
	return opened
}

func shift(t rapid.TB, s store.Store, offset time.Duration) {
	c, ok := s.(clocked)
	if !ok {
		t.Fatalf("%T has no SetClockOffset: the suite cannot move its clock", s)
	}
	c.SetClockOffset(offset)
}

// advance moves the clock of every store of the database.
func (d *database) advance(by time.Duration) {
	d.offset += by
	for _, s := range d.opened {
		shift(d.T, s, d.offset)
	}
}

// inspect ends each case: whatever it did, the rules of P6 hold.
func (d *database) inspect() {
	var c store.Check
	if d.abandoned {
		c.Grace = 10_000 * time.Hour
	}
	report, err := d.Store.Check(context.Background(), c)
	if err != nil {
		d.Errorf("check: %v", err)
	}
	for _, f := range report.Faults {
		if d.spoilt[f.ID] {
			continue
		}
		d.Errorf("check: %s: job %s: %s", f.Rule, f.ID, f.Detail)
	}
}

// must stops the case when a call failed that has no reason to.
func must[T any](t testing.TB, what string) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
}

// equal compares an answer with what is promised. Nil and empty are the same.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// within checks that a time lies between two readings of the store's clock.
func within(t testing.TB, what string, got, from, to time.Time) {
	t.Helper()
	if got.Before(from) || got.After(to) {
		t.Errorf("%s is %v, want %v .. %v", what, got, from, to)
	}
}

// now reads the store's clock.
func (d *database) now() time.Time {
	d.Helper()
	return must[time.Time](d, "now")(d.Store.Now(d.ctx))
}

// get reads one job that must exist.
func (d *database) get(id job.ID) job.Job {
	d.Helper()
	got := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{id}))
	if len(got) != 1 {
		d.Fatalf("get %s: %d jobs, want 1", id, len(got))
	}
	return got[0]
}

// gone checks that a job is neither live nor archived.
func (d *database) gone(what string, id job.ID) {
	d.Helper()
	if got := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{id})); len(got) != 0 {
		d.Errorf("%s: job %s is still there, %s", what, id, got[0].State)
	}
}

// states reads the states of jobs that must exist.
func (d *database) states(ids ...job.ID) []job.State {
	d.Helper()
	jobs := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, ids))
	if len(jobs) != len(ids) {
		d.Fatalf("get: %d jobs, want %d", len(jobs), len(ids))
	}
	states := make([]job.State, len(jobs))
	for i := range jobs {
		states[i] = jobs[i].State
	}
	return states
}

// count counts the jobs in these states; none means all.
func (d *database) count(states ...job.State) int {
	d.Helper()
	return must[store.Counted](d, "count")(d.Store.Count(d.ctx, store.Filter{States: states}, 0)).Jobs
}
