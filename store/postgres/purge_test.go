package postgres

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
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
	must(s.transact(ctx, s.reserved, upkeepLimits, func(tr *transaction) error {
		_, err := s.note(ctx, between{tr, func(string) {
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
		if _, err := s.users.Exec(t.Context(), s.sql(text), args...); err != nil {
			t.Fatal(err)
		}
	}
	c := hire(t, s)
	c.enqueue(someDraft(), someDraft())
	jobs := c.claim(2)
	exec(`INSERT INTO pawl.job_log (namespace, job, time, run, level, text)
		SELECT $1, e.id, now(), 1, 0, 'x' FROM unnest($2::uuid[]) AS e (id), generate_series(1, $3)`,
		s.namespace, [][16]byte{jobs[0].ID, job.NewID(), jobs[1].ID}, lines)
	left := func() (n int) {
		t.Helper()
		if err := s.users.QueryRow(t.Context(), s.sql("SELECT count(*) FROM pawl.job_log")).Scan(&n); err != nil {
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
