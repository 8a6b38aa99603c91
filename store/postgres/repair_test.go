package postgres

import (
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A row that a user's open transaction holds is left for another time, and holds up no
// other (P8).
func TestJ27_P8_AHeldRowIsSaidToBe(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	held, free := someDraft(), someDraft()
	c.enqueue(held, free)
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text), args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("UPDATE pawl.job SET wait = 1")
	if _, err := tx.Exec(t.Context(), s.pg.SQL("SELECT FROM pawl.job WHERE id = $1 FOR UPDATE"), held.ID); err != nil {
		t.Fatal(err)
	}
	report, err := s.Check(t.Context(), store.Check{})
	if err != nil || len(report.Faults) != 2 {
		t.Fatalf("%s, %v", report, err)
	}
	answers := func() map[job.ID]store.RepairAnswer {
		t.Helper()
		done, err := s.Repair(t.Context(), report.Faults, store.RepairRequest{})
		if err != nil {
			t.Fatal(err)
		}
		list := map[job.ID]store.RepairAnswer{}
		for _, r := range done {
			list[r.ID] = r.Answer
		}
		return list
	}
	if a := answers(); a[held.ID] != store.RepairBusy || a[free.ID] != store.RepairDone {
		t.Errorf("answers %v, want busy for %s and done for %s", a, held.ID, free.ID)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := answers(); a[held.ID] != store.RepairDone || a[free.ID] != store.RepairNotNeeded {
		t.Errorf("answers %v after the transaction", a)
	}
}

// Not: a recovered namespace whose number comes again.
func TestJ27_ARecoveredNamespaceKeepsItsNumber(t *testing.T) {
	s := openInternal(t)
	if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(
		"INSERT INTO pawl.tombstone (namespace, id, expires) SELECT id + 1, $1, '2100-01-01' FROM pawl.namespace"), job.NewID()); err != nil {
		t.Fatal(err)
	}
	report, err := s.Check(t.Context(), store.Check{})
	if err != nil || len(report.Faults) != 1 {
		t.Fatalf("%s, %v", report, err)
	}
	if done, err := s.Repair(t.Context(), report.Faults, store.RepairRequest{}); err != nil || done[0].Answer != store.RepairDone {
		t.Fatalf("%v, %v", done, err)
	}
	var number int32
	err = s.pg.Users.QueryRow(t.Context(), s.pg.SQL("INSERT INTO pawl.namespace (name) VALUES ('next') RETURNING id")).Scan(&number)
	if err != nil || number <= s.pg.Namespace+1 {
		t.Errorf("the next namespace is %d, %v", number, err)
	}
}
