package sqlite

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lists"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// The plans of what runs all the time: each must seek, never read a table.
func TestPlans_HotStatementsSeek(t *testing.T) {
	s := open(t, newFile(t))
	w := s.mustRegister(t)
	one := draft()
	s.mustEnqueue(t, one)
	held := s.mustClaim(t, claimOf(w, 1, 1)).Jobs[0]
	for _, err := range []error{
		second(s.Beat(t.Context(), store.Beat{Worker: w, Begun: []store.RunRef{{ID: held.ID, Run: held.Run}}})),
		second(s.ReportRuns(t.Context(), w, []store.RunRef{{ID: held.ID, Run: held.Run}})),
		second(s.Cancel(t.Context(), []job.ID{one.ID}, store.Operator{Name: "o"})),
		second(s.Retry(t.Context(), []job.ID{one.ID}, store.Operator{Name: "o"})),
		second(s.Finish(t.Context(), w, []job.End{{ID: held.ID, Run: held.Run, To: job.Dead, Burn: true}})),
		second(s.Retry(t.Context(), []job.ID{one.ID}, store.Operator{Name: "o"})),
		second(s.Claim(t.Context(), claimOf(w, 2, 10))),
		second(s.Finish(t.Context(), w, []job.End{{ID: held.ID, Run: held.Run + 1, To: job.Done}})),
		second(s.Delete(t.Context(), []job.ID{one.ID}, store.Operator{Name: "o"})),
		second(s.Rescue(t.Context(), 10)), second(s.Expire(t.Context(), 10)), second(s.Purge(t.Context(), 10)),
		second(s.MarkLost(t.Context(), store.MarkLostRequest{By: w, Beat: time.Now(), Machine: "m"})), second(s.MakeDueAgain(t.Context(), store.ClockStep{Queues: []string{"q"}, Was: time.Now()}, 10)),
		s.SetPaused(t.Context(), store.OfQueue("q"), true, store.Operator{Name: "o"}),
		s.Override(t.Context(), store.Setting{Kind: store.SettingQueue, Name: "q"}, []byte(`{"total":1}`), store.Operator{Name: "o"}),
		second(s.Register(t.Context(), store.Worker{Owner: "o", Version: "v", Declares: []store.Declaration{
			{Setting: store.Setting{Kind: store.SettingQueue, Name: "q"}, Value: []byte(`{"total":1}`)},
		}, LostAfter: time.Minute})),
		second(s.Register(t.Context(), store.Worker{Owner: "o", Version: "v", Declares: []store.Declaration{
			{Setting: store.Setting{Kind: store.SettingQueue, Name: "q"}, Value: []byte(`{"total":2}`)},
		}, LostAfter: time.Minute})),
		second(s.Beat(t.Context(), store.Beat{Worker: w, Serves: &store.Serves{Queues: []string{"q"}, Totals: []store.Total{{Queue: "q", Total: 1, Workers: 1}}}})),
		second(s.MarkDead(t.Context(), []job.WorkerID{w + 1, w + 2})), s.Deregister(t.Context(), w),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	looked := 0
	for _, text := range s.writer.conn.Texts() {
		q := s.writer.conn.Once("EXPLAIN QUERY PLAN " + text)
		for q.Step() {
			looked++
			if step := q.ColText(3); scans(step) {
				t.Errorf("%s\nin %s", step, text)
			}
			// Those that left are visited by the purge only, which has an index of its own.
			if step := q.ColText(3); readsRegistry.MatchString(step) && strings.Contains(text, "pawl_worker") {
				t.Errorf("%s reads the whole registry\nin %s", step, text)
			}
		}
		if err := q.Close(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if looked < 50 {
		t.Errorf("only %d steps of plans were looked at", looked)
	}
}

// readsRegistry is a step that goes through all workers of a namespace, by whichever name a statement gives them.
var readsRegistry = regexp.MustCompile(`^(SCAN|SEARCH) (pawl_worker|l|o|w)( USING PRIMARY KEY \(namespace=\?\))?$`)

func second[T any](_ T, err error) error { return err }

// scans reports whether a step of a plan reads a whole table of a namespace.
// Workers are few, and so is what pawl_job_cancel holds.
func scans(step string) bool {
	large := regexp.MustCompile(`^(SCAN|SEARCH) (pawl_job|pawl_job_archive|pawl_job_unique|pawl_tombstone|pawl_job_log|pawl_audit|pawl_intent|j|a|u)( |$)`)
	return large.MatchString(step) && !strings.Contains(step, "pawl_job_cancel") &&
		(strings.HasPrefix(step, "SCAN") || strings.HasSuffix(step, "(namespace=?)"))
}

// Pages of the audit log seek, by time and by target.
func TestPlans_AuditSeeks(t *testing.T) {
	s := open(t, newFile(t))
	for _, text := range settings.EntryTexts() {
		q := s.writer.conn.Once("EXPLAIN QUERY PLAN " + text)
		steps := 0
		for ; q.Step(); steps++ {
			if step := q.ColText(3); scans(step) || strings.Contains(step, "TEMP B-TREE") || !strings.Contains(step, "time<?") {
				t.Errorf("%s\nin %s", step, text)
			}
		}
		if err := q.Close(); err != nil || steps != 1 {
			t.Errorf("%d steps, %v: %s", steps, err, text)
		}
	}
}

// Lists and counts that name a state read only jobs of that state.
func TestPlans_ListsByStateSeek(t *testing.T) {
	s := open(t, newFile(t))
	w := s.mustRegister(t)
	s.mustEnqueue(t, drafts(2)...)
	for _, l := range s.mustClaim(t, claimOf(w, 1, 1)).Jobs {
		if _, err := s.Finish(t.Context(), w, []job.End{{ID: l.ID, Run: l.Run, To: job.Dead}}); err != nil {
			t.Fatal(err)
		}
	}
	long := drafts(store.MaxSorted + 1)
	for i := range long {
		long[i].Queue = "long"
	}
	s.mustEnqueue(t, long...)
	order := func(f store.Filter) store.Page {
		switch {
		case f.Queue == "gates":
			return store.Page{After: store.Bookmark{Part: store.PartGated}}
		case f.Queue == "q" && slices.Equal(f.States, []job.State{job.Waiting}):
			return store.Page{Order: store.ByDue}
		case slices.Equal(f.States, []job.State{job.Dead, job.Cancelled}):
			return store.Page{Order: store.ByFinish}
		}
		return store.Page{}
	}
	for _, f := range []store.Filter{
		{States: []job.State{job.Waiting}, Queue: "q"},
		{Worker: w},
		{Queue: "q"},
		{States: []job.State{job.Running}},
		{States: []job.State{job.Running}, Queue: "q"},
		{States: []job.State{job.Suspended, job.Blocked}},
		{States: []job.State{job.Dead}},
		{States: []job.State{job.Dead}, Queue: "q", Kind: "k"},
		{States: []job.State{job.Done, job.Dead, job.Cancelled}, Queue: "q", Tag: "x"},
		{States: []job.State{job.Dead, job.Cancelled}},
		{States: []job.State{job.Dead, job.Cancelled}, Queue: "q"},
		{States: []job.State{job.Waiting}, Queue: "long"},
		{Queue: "long"},
		{States: []job.State{job.Waiting}, Queue: "gates"},
	} {
		c, err := s.readers.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		texts, err := lists.ListTexts(&lite.Snapshot{Conn: c, Namespace: s.namespace, Clock: &s.clock}, f, order(f))
		if err != nil || len(texts) == 0 {
			t.Fatal(texts, err)
		}
		for _, text := range texts {
			q := c.Once("EXPLAIN QUERY PLAN " + text)
			for q.Step() {
				if step := q.ColText(3); scans(step) || strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("%+v: %s", f, step)
				}
			}
			if err := q.Close(); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		s.readers.GiveBack(c)
	}
}

// Counts and queues seek: from queue to queue, and within each up to a bound. What waits is counted from its index alone: with a
// seek in the table for each job, 500 queues took twice the time.
func TestPlans_CountsAndQueuesSeek(t *testing.T) {
	s := open(t, newFile(t))
	w := s.mustRegister(t)
	s.mustEnqueue(t, drafts(3)...)
	for _, l := range s.mustClaim(t, claimOf(w, 1, 1)).Jobs {
		if _, err := s.Finish(t.Context(), w, []job.End{{ID: l.ID, Run: l.Run, To: job.Dead}}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.readers.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.readers.GiveBack(c)
	snapshot := &lite.Snapshot{Conn: c, Namespace: s.namespace, Clock: &s.clock}
	if err := errors.Join(second(lists.Counts(snapshot)), second(lists.Queues(snapshot, nil))); err != nil {
		t.Fatal(err)
	}
	looked, alone := 0, 0
	for _, text := range c.Texts() {
		q := c.Once("EXPLAIN QUERY PLAN " + text)
		for ; q.Step(); looked++ {
			step := q.ColText(3)
			waiting := strings.Contains(step, "pawl_job_ready") || strings.Contains(step, "pawl_job_gated")
			if covered := strings.Contains(step, "COVERING"); scans(step) || waiting && !covered {
				t.Errorf("%s\nin %s", step, text)
			} else if waiting {
				alone++
			}
		}
		if err := q.Close(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if looked < 9 || alone < 5 {
		t.Errorf("only %d steps of plans were looked at, %d of what waits", looked, alone)
	}
}
