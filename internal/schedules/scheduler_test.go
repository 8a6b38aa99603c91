package schedules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/schedules"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// office is a store whose clock the test sets, with one scheduler or more.
type office struct {
	t  *testing.T
	st *sqlite.Store
}

func newOffice(t *testing.T) *office {
	t.Helper()
	st, err := sqlite.Memory().Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t, st.(*sqlite.Store)}
	t.Cleanup(func() {
		if report, err := st.Check(context.Background(), store.Check{}); err != nil || len(report.Faults) > 0 {
			t.Errorf("check: %+v, %v", report.Faults, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// inOffice is a subtest in which time stands still.
func inOffice(t *testing.T, name string, test func(t *testing.T, o *office)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newOffice(t)) })
	})
}

// at sets the store's clock.
func (o *office) at(now time.Time) { o.st.SetClockOffset(time.Until(now)) }

func (o *office) set(name string, s job.ScheduleSettings) {
	o.t.Helper()
	value, err := json.Marshal(s)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.st.Override(o.t.Context(), store.Setting{Kind: store.SettingSchedule, Name: name}, value, store.Operator{}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) known() *store.Effective {
	o.t.Helper()
	answer, err := o.st.Settings(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	known := store.Resolve(answer)
	return &known
}

// nobody works in the process that fires.
type nobody struct{}

func (nobody) HandOver([]job.Draft) {}
func (nobody) Accepted([]job.Draft) {}

// scheduler follows the settings at once; one that knows something follows nothing.
func (o *office) scheduler(st store.Schedules, known *store.Effective) *schedules.Scheduler {
	return schedules.New(schedules.Config{
		Store: st, Begin: nobody{}, Logger: slog.New(slog.DiscardHandler),
		Known: func() *store.Effective {
			if known != nil {
				return known
			}
			return o.known()
		},
		Look: func(context.Context) error { return nil },
		Drafts: func(_ context.Context, e *schedules.Entry, due []time.Time) (list []job.Draft, err error) {
			for _, at := range due {
				d, err := e.Settings.Draft(job.ScheduledID(e.Name, at))
				if err != nil {
					return nil, err
				}
				d.Attempts, d.Queue = 1, "q"
				d.Args = []byte(at.UTC().Format(time.RFC3339))
				d.Tags = []string{e.Name}
				list = append(list, d)
			}
			return list, nil
		},
	})
}

// run looks at one time, and whenever something is due, up to another. The looks of
// every minute in between find nothing.
func (o *office) run(s *schedules.Scheduler, from, until time.Time) {
	o.t.Helper()
	for now := from; now.Before(until); {
		o.at(now)
		wait, err := s.RunOnce(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		states, err := o.st.ScheduleStates(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		next := until
		for _, state := range states.List {
			if !state.Next.IsZero() && state.Next.Before(next) {
				next = state.Next
			}
		}
		if sleeps := min(next.Sub(now), time.Minute); wait > sleeps {
			o.t.Errorf("at %v it sleeps for %v, and %v is due", now, wait, next)
		}
		now = next.Add(time.Millisecond) // as late as a process is
	}
}

// jobs are those of a schedule, by due time.
func (o *office) jobs(name string) (due []string) {
	o.t.Helper()
	for p := (store.Page{Limit: 500}); ; {
		list, err := o.st.List(o.t.Context(), store.Filter{Tag: name}, p)
		if err != nil {
			o.t.Fatal(err)
		}
		for _, j := range list.Jobs {
			due = append(due, string(j.Args))
		}
		if !list.More {
			slices.Sort(due)
			return due
		}
		p.After = list.Next
	}
}

// A daily job has one job for each day, and an hourly one for each real hour, through
// both changes of the clock.
func TestJ16_ChangesOfTheClockInVirtualTime(t *testing.T) {
	for _, c := range []struct {
		zone string
		from string // midnight before the change, UTC
		want string // of "30 2 * * *"
		days int
	}{
		{"America/New_York", "2026-03-07T05:00:00Z", "2026-03-07T07:30:00Z 2026-03-08T07:00:00Z 2026-03-09T06:30:00Z", 3},
		{"America/New_York", "2026-10-31T04:00:00Z", "2026-10-31T06:30:00Z 2026-11-01T07:30:00Z 2026-11-02T07:30:00Z", 3},
		{"Europe/Berlin", "2026-03-27T23:00:00Z", "2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z", 3},
		{"Europe/Berlin", "2026-10-23T22:00:00Z", "2026-10-24T00:30:00Z 2026-10-25T00:30:00Z 2026-10-26T01:30:00Z", 3},
		{"Australia/Lord_Howe", "2026-10-02T13:30:00Z", "2026-10-02T16:00:00Z 2026-10-03T15:30:00Z 2026-10-04T15:30:00Z", 3},
		{"Australia/Lord_Howe", "2026-04-03T13:00:00Z", "2026-04-03T15:30:00Z 2026-04-04T16:00:00Z 2026-04-05T16:00:00Z", 3},
		{"Asia/Kolkata", "2026-03-27T18:30:00Z", "2026-03-27T21:00:00Z 2026-03-28T21:00:00Z 2026-03-29T21:00:00Z", 3},
		{"UTC", "2026-03-28T00:00:00Z", "2026-03-28T02:30:00Z 2026-03-29T02:30:00Z 2026-03-30T02:30:00Z", 3},
	} {
		inOffice(t, c.zone+" "+c.from, func(t *testing.T, o *office) {
			from, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			o.at(from)
			o.set("daily", job.ScheduleSettings{Kind: "k", Cron: "30 2 * * *", Zone: c.zone})
			o.set("hourly", job.ScheduleSettings{Kind: "k", Cron: "0 * * * *", Zone: c.zone})
			o.run(o.scheduler(o.st, nil), from, from.Add(time.Duration(c.days)*24*time.Hour))
			if got := strings.Join(o.jobs("daily"), " "); got != c.want {
				t.Errorf("daily\n%s, want\n%s", got, c.want)
			}
			if n := len(o.jobs("hourly")); n < 71 || n > 72 || c.zone != "Australia/Lord_Howe" && n != 71 { // the first is due at the end of the first hour
				t.Errorf("hourly fired %d times: %v", n, o.jobs("hourly"))
			}
		})
	}
}

// A schedule that is edited while it fires has, for each instant, a job by what was
// set before or after, and never both.
func TestJ16_AnEditWhileItFires(t *testing.T) {
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, order := range []string{"old new", "new old", "old edit new old", "edit old new"} {
		inOffice(t, order, func(t *testing.T, o *office) {
			o.at(at.Add(-time.Hour))
			o.set("s", job.ScheduleSettings{Kind: "before", Cron: "0 12 * * *", CatchUp: job.CatchUpAll})
			old := o.scheduler(o.st, o.known()) // it never hears of the edit
			fresh := o.scheduler(o.st, nil)
			o.run(fresh, at.Add(-time.Hour), at.Add(-30*time.Minute))
			o.at(at.Add(time.Second))
			edited := false
			edit := func() {
				if !edited {
					o.set("s", job.ScheduleSettings{Kind: "after", Cron: "*/30 * * * *"})
				}
				edited = true
			}
			for _, who := range strings.Fields(order) {
				switch who {
				case "edit":
					edit()
				case "old":
					if _, err := old.RunOnce(t.Context()); err != nil {
						t.Fatal(err)
					}
				case "new":
					if order == "old new" {
						edit()
					}
					if _, err := fresh.RunOnce(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			edit()
			o.run(fresh, at.Add(time.Second), at.Add(40*time.Minute))
			got := o.jobs("s")
			want := []string{"2026-11-16T12:00:00Z", "2026-11-16T12:30:00Z"}
			if order == "edit old new" { // nobody fired noon before the edit: the new one begins after it
				want = want[1:]
			}
			if !slices.Equal(got, want) {
				t.Errorf("fired %v, want %v", got, want)
			}
			states, err := o.st.ScheduleStates(t.Context())
			if err != nil || states.List[0].Cron != "*/30 * * * *" {
				t.Errorf("states: %+v, %v", states, err)
			}
		})
	}
}

// brittle is a store that refuses some.
type brittle struct {
	store.Schedules
	refuse func([]store.Firing) error
}

func (b brittle) Fire(ctx context.Context, revision int64, list []store.Firing) ([]store.Fired, error) {
	if err := b.refuse(list); err != nil {
		return nil, err
	}
	return b.Schedules.Fire(ctx, revision, list)
}

// One that cannot be fired costs itself only, and is tried again.
func TestJ16_OneThatFailsCostsItselfOnly(t *testing.T) { synctest.Test(t, oneFails) }

func oneFails(t *testing.T) {
	o := newOffice(t)
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	o.at(at.Add(-time.Hour))
	for i := range 5 {
		o.set(fmt.Sprintf("s%d", i), job.ScheduleSettings{Kind: "k", Cron: "@hourly"})
	}
	broken := true
	s := o.scheduler(brittle{o.st, func(list []store.Firing) error {
		if broken && slices.ContainsFunc(list, func(f store.Firing) bool { return f.Name == "s3" && len(f.Jobs) > 0 }) {
			return errors.New("a key is held")
		}
		return nil
	}}, nil)
	o.run(s, at.Add(-time.Hour), at)
	o.at(at.Add(time.Second))
	wait, err := s.RunOnce(t.Context())
	if err != nil || wait > 2*time.Second {
		t.Errorf("it looks again in %v, %v", wait, err)
	}
	for i := range 5 {
		want := 1
		if i == 3 {
			want = 0
		}
		if got := o.jobs(fmt.Sprintf("s%d", i)); len(got) != want {
			t.Errorf("s%d fired %v", i, got)
		}
	}
	if err := s.Failure("s3"); err == nil || s.Failure("s2") != nil {
		t.Errorf("failures: %v, %v", err, s.Failure("s2"))
	}
	broken = false
	time.Sleep(time.Second) // virtual: its pause is over
	if _, err := s.RunOnce(t.Context()); err != nil || len(o.jobs("s3")) != 1 || s.Failure("s3") != nil {
		t.Errorf("mended: %v, %v, %v", err, o.jobs("s3"), s.Failure("s3"))
	}
}
