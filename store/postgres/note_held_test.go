package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A beginning is answered Applied only if it is stored. A user's transaction that
// holds the row of one keeps no other waiting, and its worker is told.
func TestP8_ABeginningOfAHeldJobIsAnsweredHeld(t *testing.T) {
	b := bystand(t)
	b.enqueue(someDraft(), someDraft(), someDraft())
	b.crew.seq++
	claimed, err := b.s.Claim(t.Context(), store.Claim{Worker: b.crew.worker, Seq: b.crew.seq, Offer: knowsK,
		Queues: []store.QueueClaim{{Queue: "q", Limit: 3}}}) // held ready
	b.must(err)
	var notes []store.Note
	for _, j := range claimed.Jobs {
		notes = append(notes, store.Note{RunRef: store.RunRef{ID: j.ID, Run: j.Run}, Begun: true, Logs: []job.LogLine{{Time: time.Now(), Run: j.Run, Text: "it begins"}}})
	}
	begun := func() (list []bool) {
		t.Helper()
		for _, n := range notes {
			var is bool
			b.must(b.users.QueryRow(t.Context(), b.s.pg.SQL("SELECT begun FROM pawl.job WHERE id = $1"), n.ID).Scan(&is))
			lines, err := b.s.Logs(t.Context(), n.ID, 0, 10)
			b.must(err)
			if is != (len(lines) == 1) {
				t.Errorf("begun %v, lines %v: half of a note", is, lines)
			}
			list = append(list, is)
		}
		return list
	}
	note := func(notes []store.Note, want ...job.Verdict) {
		t.Helper()
		verdicts, err := b.s.Note(t.Context(), b.crew.worker, notes)
		if err != nil || !slices.Equal(verdicts, want) {
			t.Errorf("%v, %v; want %v", verdicts, err, want)
		}
	}
	tx := b.begin(pgx.TxOptions{})
	_, err = tx.Exec(t.Context(), b.s.pg.SQL("SELECT FROM pawl.job WHERE id = $1 FOR UPDATE"), notes[1].ID)
	b.must(err)
	note(notes[:2], job.Applied, job.Locked)
	if b.waited() {
		t.Error("it waited for a lock")
	}
	if got := begun(); !slices.Equal(got, []bool{true, false, false}) {
		t.Errorf("begun %v", got)
	}
	b.must(tx.Rollback(t.Context()))
	note(notes[1:2], job.Applied)
	if got := begun(); !slices.Equal(got, []bool{true, true, false}) {
		t.Errorf("begun %v", got)
	}
	// What has begun may be held: the answer is true.
	tx = b.begin(pgx.TxOptions{})
	_, err = tx.Exec(t.Context(), b.s.pg.SQL("SELECT FROM pawl.job FOR UPDATE"))
	b.must(err)
	note([]store.Note{{RunRef: notes[0].RunRef, Begun: true}, {RunRef: notes[2].RunRef, Begun: true}}, job.Applied, job.Locked)
	b.must(tx.Rollback(t.Context()))
	// A worker that was lost begins nothing, although its run is still its own.
	_, err = b.users.Exec(t.Context(), b.s.pg.SQL("UPDATE pawl.worker SET lost = now() WHERE id = $1"), b.crew.worker)
	b.must(err)
	note(notes[2:], job.Stale)
}
