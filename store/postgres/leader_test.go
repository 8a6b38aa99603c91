package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// A deploy replaces every worker, and while somebody holds a snapshot the entries of those
// who left stay. No beat steps over them again and again.
func TestP10_ABeatDoesNotReadThoseWhoLeft(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	const left = 300
	for _, text := range []string{
		fmt.Sprintf(`INSERT INTO pawl.worker
		SELECT (w).* FROM (
			SELECT jsonb_populate_record(w, jsonb_build_object('id', n)) AS w
			FROM pawl.worker AS w CROSS JOIN generate_series(1, %d) AS n
		) AS copies`, left),
		"", // the snapshot sees them
		fmt.Sprintf("UPDATE pawl.worker SET lost = {now}, gone = true, drained = true WHERE id <= %d", left),
	} {
		if text == "" {
			holdSnapshot(t, s)
			continue
		}
		if _, err := s.pg.Work.Exec(t.Context(), s.pg.SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	beat, err := s.Beat(t.Context(), store.Beat{Worker: c.worker})
	if err != nil || !beat.Leader {
		t.Fatalf("%+v, %v; want that the only one leads", beat, err)
	}
	plan := workers.Plans[slices.IndexFunc(workers.Plans, func(p pg.Plan) bool { return p.Name == "beatWorker" })]
	if n := c.entries("worker_live", plan.Text, s.pg.Namespace, c.worker, s.workers.Leader.From(c.worker)); n > 10 {
		t.Errorf("a beat reads %d workers", n)
	}
	second := hire(t, s)
	for range 2 * 120 { // the search begins in front from time to time, and finds the same one
		if b, err := s.Beat(t.Context(), store.Beat{Worker: second.worker}); err != nil || b.Leader {
			t.Fatalf("%+v, %v; want that the first leads", b, err)
		}
	}
	if err := s.Deregister(t.Context(), c.worker); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Beat(t.Context(), store.Beat{Worker: second.worker, Splits: true}); err != nil || !b.Leader {
		t.Errorf("%+v, %v; want that the second leads", b, err)
	}
}

// Numbers follow the clock. When it is set back and nobody remembers the higher ones,
// there is still one leader: the first of those who are there.
func TestJ32_OneLeadsAfterTheClockIsSetBack(t *testing.T) {
	s := openInternal(t)
	s.SetClockOffset(100 * time.Hour)
	before := hire(t, s)
	if b, err := s.Beat(t.Context(), store.Beat{Worker: before.worker}); err != nil || !b.Leader {
		t.Fatalf("%+v, %v; want that the only one leads", b, err)
	}
	if err := s.Deregister(t.Context(), before.worker); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pg.Work.Exec(t.Context(), s.pg.SQL("DELETE FROM pawl.worker WHERE id = $1"), before.worker); err != nil {
		t.Fatal(err)
	}
	s.SetClockOffset(0)
	first, second := hire(t, s), hire(t, s)
	for range 2 {
		for _, w := range []*crew{second, first} {
			if b, err := s.Beat(t.Context(), store.Beat{Worker: w.worker}); err != nil || b.Leader != (w == first) {
				t.Errorf("%+v, %v; want that the first leads", b, err)
			}
		}
	}
}
