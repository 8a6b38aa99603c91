package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// audit is one page of entries.
func (d *database) audit(f store.AuditFilter, limit int) []store.AuditEntry {
	d.Helper()
	return must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, f, store.AuditPage{Limit: limit})).Entries
}

func audit() []testCase {
	// did has somebody pause a queue, and returns when.
	did := func(d *database, queue, by, note string) time.Time {
		d.Helper()
		d.advance(time.Minute)
		if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), true, store.Operator{Name: by, Note: note}); err != nil {
			d.Fatal(err)
		}
		return d.audit(store.AuditFilter{}, 1)[0].Time
	}
	notes := func(entries []store.AuditEntry) string {
		var list []string
		for _, e := range entries {
			list = append(list, e.Note)
		}
		return strings.Join(list, "")
	}
	// pages reads every page of a filter.
	pages := func(d *database, f store.AuditFilter, limit int) (all []store.AuditEntry, n int) {
		d.Helper()
		p := store.AuditPage{Limit: limit}
		for {
			got := must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, f, p))
			all, n = append(all, got.Entries...), n+1
			if len(got.Entries) > limit {
				d.Fatalf("%d entries on a page of %d", len(got.Entries), limit)
			}
			if !got.More {
				return all, n
			}
			p.After = got.Next
		}
	}
	return []testCase{
		{name: "J30_WhoPausedAQueueWhenAndWhy", run: func(d *database) {
			did(d, "mail", "ann", "the provider is down")
			at := did(d, queue, "bob", "too slow")
			did(d, "mail", "ann", "still")
			got := d.audit(store.AuditFilter{Target: queue, Action: "pause"}, 10)
			equal(d, "entries", len(got), 1)
			equal(d, "entry", [4]string{got[0].By, got[0].Action, got[0].Target, got[0].Note}, [4]string{"bob", "pause", queue, "too slow"})
			equal(d, "time", got[0].Time, at)
			within(d, "time", at, d.now().Add(-2*time.Minute), d.now())
		}},
		{name: "J30_Filters", run: func(d *database) {
			did(d, "x", "ann", "a")
			b := did(d, "x", "bob", "b")
			did(d, "y", "ann", "c")
			e := did(d, "x", "ann", "d")
			did(d, "y", "bob", "e")
			for _, c := range []struct {
				filter store.AuditFilter
				want   string
			}{
				{store.AuditFilter{}, "edcba"},
				{store.AuditFilter{Target: "x"}, "dba"},
				{store.AuditFilter{Target: "z"}, ""},
				{store.AuditFilter{By: "ann"}, "dca"},
				{store.AuditFilter{Action: "pause"}, "edcba"},
				{store.AuditFilter{Action: "resume"}, ""},
				{store.AuditFilter{Target: "x", By: "ann"}, "da"},
				{store.AuditFilter{After: b}, "edcb"},
				{store.AuditFilter{Before: e}, "cba"},
				{store.AuditFilter{After: b, Before: e}, "cb"},
				{store.AuditFilter{Target: "x", After: b, Before: e}, "b"},
				{store.AuditFilter{Target: "x", By: "ann", After: b}, "d"},
				{store.AuditFilter{By: "it's \x00"}, ""},
			} {
				equal(d, "notes", notes(d.audit(c.filter, 100)), c.want)
				all, _ := pages(d, c.filter, 1)
				equal(d, "notes one by one", notes(all), c.want)
			}
		}},
		{name: "J30_KeysetNewestFirst", run: func(d *database) {
			for i := range 5 {
				did(d, queue, "ann", string(rune('a'+i)))
			}
			equal(d, "notes", notes(d.audit(store.AuditFilter{}, 3)), "edc")
			first := must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, store.AuditFilter{}, store.AuditPage{Limit: 2}))
			equal(d, "more", first.More, true)
			did(d, queue, "ann", "f") // newer than the page: must not shift it
			next := must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, store.AuditFilter{}, store.AuditPage{After: first.Next, Limit: 3}))
			equal(d, "notes", notes(first.Entries)+notes(next.Entries), "edcba")
			equal(d, "more", next.More, false)
		}},
		{name: "J30_EntriesOfOneMomentAreEachListedOnce", run: func(d *database) {
			made := d.enqueue(drafts(7)...)
			must[[]store.Change](d, "cancel")(d.Store.Cancel(d.ctx, made, store.Operator{Name: "ann"}))
			all, n := pages(d, store.AuditFilter{By: "ann"}, 3)
			equal(d, "pages", n, 3)
			seen := map[string]bool{}
			for _, e := range all {
				seen[e.Target] = true
			}
			equal(d, "entries and targets", [2]int{len(all), len(seen)}, [2]int{7, 7})
		}},
		{name: "P10_APageVisitsABoundedNumberOfEntries", run: func(d *database) {
			did(d, queue, "ann", "old")
			made := d.enqueue(drafts(store.AuditVisits + 1)...)
			must[[]store.Change](d, "delete")(d.Store.Delete(d.ctx, made, store.Operator{Name: "bob"}))
			first := must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, store.AuditFilter{By: "ann"}, store.AuditPage{Limit: 10}))
			equal(d, "entries and more", [2]any{len(first.Entries), first.More}, [2]any{0, true})
			all, n := pages(d, store.AuditFilter{By: "ann"}, 10)
			equal(d, "notes and pages", [2]any{notes(all), n}, [2]any{"old", 2})
			equal(d, "by target", notes(d.audit(store.AuditFilter{Target: queue, By: "ann"}, 10)), "old")
		}},
		{name: "J25_AnEntryOfItsOwn", run: func(d *database) {
			op := store.Operator{Name: "ann", Note: "why"}
			if err := d.Store.Record(d.ctx, op, store.UpkeepAction, "purge", "3 jobs"); err != nil {
				d.Fatal(err)
			}
			got := d.audit(store.AuditFilter{Target: "purge"}, 10)
			if len(got) != 1 || got[0].By != "ann" || got[0].Note != "why" || got[0].Action != store.UpkeepAction || got[0].Detail != "3 jobs" || got[0].Time.IsZero() {
				d.Errorf("%+v, want ann's entry", got)
			}
		}},
		{name: "P10_ALimitIsAsked", run: func(d *database) {
			for _, n := range []int{-1, 0, 1001} {
				_, err := d.Store.Audit(d.ctx, store.AuditFilter{}, store.AuditPage{Limit: n})
				if !errors.Is(err, job.ErrInvalid) {
					d.Errorf("limit %d: %v, want ErrInvalid", n, err)
				}
			}
		}},
	}
}
