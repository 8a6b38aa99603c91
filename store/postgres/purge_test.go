package postgres

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// A note that is under way when its job goes leaves lines of no job.
func TestP10_LinesOfNoJobGoAway(t *testing.T) {
	s := openInternal(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	w, err := s.Register(ctx, store.Worker{Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Offer: offer})
	must(err)
	d := someDraft()
	_, err = s.Enqueue(ctx, []job.Draft{d})
	must(err)
	c, err := s.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}})
	must(err)
	run := c.Jobs[0].Run
	kept := someDraft()
	_, err = s.Enqueue(ctx, []job.Draft{kept})
	must(err)
	n := 0
	must(s.pg.Transact(ctx, s.pg.Reserved, pg.UpkeepLimits, func(tr *pg.Transaction) error {
		_, err := s.jobs.NoteIn(ctx, between{tr, func(string) {
			if n++; n == 2 {
				_, err := s.Finish(ctx, w, []job.End{{ID: d.ID, Run: run, To: job.Done, Keep: job.Keep{Done: -1}}})
				must(err)
			}
		}}, w, []store.Note{{RunRef: store.RunRef{ID: d.ID, Run: run}, Logs: []job.LogLine{{Text: "x"}}}})
		return err
	}))
	purge := func() {
		t.Helper()
		for range 3 { // each looks at one line
			_, err := s.Purge(ctx, 1)
			must(err)
		}
	}
	c, err = s.Claim(ctx, store.Claim{Worker: w, Seq: 2, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}})
	must(err)
	ref := store.RunRef{ID: kept.ID, Run: c.Jobs[0].Run}
	_, err = s.Note(ctx, w, []store.Note{{RunRef: ref, Logs: []job.LogLine{{Text: "kept"}}}})
	must(err)
	due, err := s.Due(ctx)
	must(err)
	if !due.Purge {
		t.Error("there are lines, and a look says that there is nothing to purge")
	}
	purge() // while it is live
	_, err = s.Finish(ctx, w, []job.End{{ID: ref.ID, Run: ref.Run, To: job.Dead}})
	must(err)
	purge() // and archived
	for id, want := range map[job.ID]int{d.ID: 0, kept.ID: 1} {
		lines, err := s.Logs(ctx, id, 0, 10)
		must(err)
		if len(lines) != want {
			t.Errorf("%d lines are left, want %d", len(lines), want)
		}
	}
}

// The clock was set forward, and back again: what has ended since expires before
// what was purged meanwhile.
func TestJ32_PurgeMeetsAStepOfTheClock(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	for _, at := range []time.Duration{100 * time.Hour, 0} {
		s.SetClockOffset(at)
		c.enqueue(someDraft())
		j := c.claim(1)[0]
		if v, err := s.Finish(t.Context(), c.worker, []job.End{{ID: j.ID, Run: j.Run, To: job.Done, Keep: job.Keep{Done: time.Hour}}}); err != nil || v[0] != job.Applied {
			t.Fatal(v, err)
		}
		s.SetClockOffset(102 * time.Hour)
		if n, err := s.Purge(t.Context(), 10); err != nil || n != 1 {
			t.Errorf("a job that ended at %v: %d purged, %v", at, n, err)
		}
	}
}

// However many lines of no job there are, one purge removes a few, and says that
// there are more.
func TestP10_ManyLinesOfNoJobGoOverSeveralRounds(t *testing.T) {
	s := openInternal(t)
	const limit, lines = 10, 35
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text), args...); err != nil {
			t.Fatal(err)
		}
	}
	c := hire(t, s)
	c.enqueue(someDraft(), someDraft())
	jobs := c.claim(2)
	exec(`INSERT INTO pawl.job_log (namespace, job, time, run, level, text)
		SELECT $1, e.id, now(), 1, 0, 'x' FROM unnest($2::uuid[]) AS e (id), generate_series(1, $3)`,
		s.pg.Namespace, [][16]byte{jobs[0].ID, job.NewID(), jobs[1].ID}, lines)
	left := func() (n int) {
		t.Helper()
		if err := s.pg.Users.QueryRow(t.Context(), s.pg.SQL("SELECT count(*) FROM pawl.job_log")).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for round, before := 0, 3*lines; before > 2*lines; round++ {
		n, err := s.Purge(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		now := left()
		if gone := before - now; gone > limit || gone == limit && n < limit {
			t.Errorf("a purge removed %d lines and answered %d, want at most %d lines, and %d while there is more", gone, n, limit, limit)
		}
		if before = now; round > 3*lines {
			t.Fatalf("%d lines are left", now)
		}
	}
	for range 3 * lines { // all around, more than once
		if _, err := s.Purge(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
	}
	if n := left(); n != 2*lines {
		t.Errorf("%d lines are left, want the %d of the jobs that are there", n, 2*lines)
	}
}

// However much a job has said, no transaction removes more of its lines than the
// bound: neither that of a delete nor that of an end that keeps nothing. Nobody
// reads the rest, and the purge removes it.
func TestP10_LinesOfAJobThatGoesAreRemovedInRounds(t *testing.T) {
	const said = 2*store.DropLines + 5000
	for _, way := range []string{"delete", "delete archived", "not kept", "not kept, with a word"} {
		t.Run(way, func(t *testing.T) {
			s := openInternal(t)
			c := hire(t, s)
			c.enqueue(someDraft(), someDraft())
			jobs := c.claim(2)
			ids := [][16]byte{jobs[0].ID, jobs[1].ID}
			if way == "delete" { // while they wait
				if _, err := s.Finish(t.Context(), c.worker, []job.End{released(&jobs[0]), released(&jobs[1])}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(`INSERT INTO pawl.job_log (namespace, job, time, run, level, text)
				SELECT $1, e.id, now(), 1, 0, 'x' FROM unnest($2::uuid[]) AS e (id), generate_series(1, $3)`), s.pg.Namespace, ids, said); err != nil {
				t.Fatal(err)
			}
			exec(t, s, "UPDATE pawl.job SET ties = ties | 2 WHERE namespace = $1", s.pg.Namespace)
			left := func() (n int) {
				t.Helper()
				if err := s.pg.Users.QueryRow(t.Context(), s.pg.SQL("SELECT count(*) FROM pawl.job_log")).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			var err error
			ends := []job.End{done(&jobs[0]), done(&jobs[1])}
			switch way {
			case "delete archived":
				if _, err = s.Finish(t.Context(), c.worker, ends); err != nil {
					t.Fatal(err)
				}
				fallthrough
			case "delete":
				_, err = s.Delete(t.Context(), []job.ID{jobs[0].ID, jobs[1].ID}, store.Operator{})
			case "not kept":
				_, err = s.Finish(t.Context(), c.worker, []job.End{unkept(&jobs[0]), unkept(&jobs[1])})
			default:
				ends[0], ends[1] = unkept(&jobs[0]), unkept(&jobs[1])
				ends[0].Progress = &job.Progress{Done: 1}
				_, err = s.Finish(t.Context(), c.worker, ends)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := left(); n != 2*said-store.DropLines {
				t.Errorf("%d lines of %d are left, want that %d went at once", n, 2*said, store.DropLines)
			}
			for _, j := range jobs {
				if lines, err := s.Logs(t.Context(), j.ID, 0, 10); err != nil || len(lines) > 0 {
					t.Errorf("a job that is gone says %v, %v", lines, err)
				}
			}
			for round := 0; left() > 0; round++ {
				if _, err := s.Purge(t.Context(), store.DropLines); err != nil || round > 20 {
					t.Fatalf("%d lines are left, %v", left(), err)
				}
			}
		})
	}
}
