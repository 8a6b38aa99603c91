package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// A commit whose callers have all given up is not sent again by itself: they send
// their ends again, in smaller portions, and would wait behind it. What it did
// before is found by the end that comes again.
func TestP8_ACommitThatNobodyWaitsForIsNotRepeated(t *testing.T) {
	l := newLossy(t)
	l.queue = "deserted"
	w, jobs := l.running(1)
	commits := 0
	l.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
		if !strings.Contains(strings.Join(c.Statements, "\n"), "job_archive") {
			return pgproxy.Deliver
		}
		if commits++; commits == 1 {
			return pgproxy.Mute // the store waits for the answer until its patience ends
		}
		return pgproxy.Deliver
	})
	end := done(&jobs[0])
	ctx, cancel := context.WithTimeout(t.Context(), short/5)
	defer cancel()
	if _, err := l.hasty.Finish(ctx, w, []job.End{end}); !errors.Is(err, job.ErrOutcomeUnknown) {
		t.Fatalf("error %v, want one that says that the outcome is unknown", err)
	}
	end.Again = true
	verdicts, err := l.hasty.Finish(t.Context(), w, []job.End{end})
	l.proxy.Judge(nil)
	if err != nil || verdicts[0] != job.Already {
		t.Errorf("verdicts %v, %v; want already applied", verdicts, err)
	}
	if commits != 3 { // the first, its repeat by the caller, and the look for what became of it
		t.Errorf("%d commits, want 3", commits)
	}
	l.ended(&jobs[0], end)
}

// A commit is bounded by everything that an end carries.
func TestP10_AnEndWeighsWhatItCarries(t *testing.T) {
	text := strings.Repeat("x", 4*jobs.BytesOfRow)
	plain := jobs.WeightOfEnd(&job.End{})
	for name, e := range map[string]job.End{
		"result":   {Result: []byte(text)},
		"reason":   {Reason: text},
		"failure":  {Failure: []byte(text)},
		"progress": {Progress: &job.Progress{Note: text}},
		"lines":    {Logs: []job.LogLine{{Time: time.Time{}, Text: text}}},
	} {
		if w := jobs.WeightOfEnd(&e); w != plain+4 {
			t.Errorf("%s: weighs %d rows, want %d", name, w, plain+4)
		}
	}
}

// A large call is several commits. What one of them came to is answered, also
// when a later one fails.
func TestJ32_AFinishThatFailsAnswersWhatItCommitted(t *testing.T) {
	b := bystand(t)
	b.enqueue(someDraft(), someDraft(), someDraft())
	held := b.crew.claim(3)
	var ends []job.End
	for i := range held {
		e := done(&held[i])
		e.Result = make([]byte, (jobs.MaxGathered/2+1)*jobs.BytesOfRow) // two do not fit into one commit
		ends = append(ends, e)
	}
	_, err := b.users.Exec(t.Context(), b.s.pg.SQL(`CREATE FUNCTION pawl.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON pawl.job_archive FOR EACH ROW WHEN (NEW.id = '`+held[1].ID.String()+`') EXECUTE FUNCTION pawl.refuse()`))
	b.must(err)
	verdicts, err := b.s.Finish(t.Context(), b.crew.worker, ends)
	if err == nil || errors.Is(err, job.ErrOutcomeUnknown) || !slices.Equal(verdicts, []job.Verdict{job.Applied}) {
		t.Errorf("%v, %v; want that the first is applied, and an error that leaves nothing open", verdicts, err)
	}
	_, err = b.users.Exec(t.Context(), b.s.pg.SQL("DROP TRIGGER refuse ON pawl.job_archive; DROP FUNCTION pawl.refuse()"))
	b.must(err)
	verdicts, err = b.s.Finish(t.Context(), b.crew.worker, ends)
	if want := []job.Verdict{job.Stale, job.Applied, job.Applied}; err != nil || !slices.Equal(verdicts, want) {
		t.Errorf("%v, %v; want %v", verdicts, err, want)
	}
}
