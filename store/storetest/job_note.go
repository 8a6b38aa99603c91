package storetest

import (
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func jobNote() []testCase {
	note := func(d *database, w job.WorkerID, notes ...store.Note) []job.Verdict {
		d.Helper()
		return must[[]job.Verdict](d, "note")(d.Store.Note(d.ctx, w, notes))
	}
	logs := func(d *database, id job.ID, skip, limit int) []job.LogLine {
		d.Helper()
		return must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, skip, limit))
	}
	return []testCase{
		{name: "J28_ProgressIsTheNewest", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			for i := range int64(3) {
				p := job.Progress{Done: i, Total: 10, Note: fmt.Sprintf("step %d", i)}
				equal(d, "verdict", note(d, w.id, store.Note{RunRef: ref(held), Progress: &p}), []job.Verdict{job.Applied})
				equal(d, "progress", d.get(held.ID).Progress, p)
			}
			note(d, w.id, store.Note{RunRef: ref(held)})
			equal(d, "progress after a note without", d.get(held.ID).Progress.Done, 2)
		}},
		{name: "J28_LogLinesInOrder", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			now := d.now()
			var want []job.LogLine
			for i := range 10 {
				lines := []job.LogLine{
					{Time: now, Run: held.Run, Level: i, Text: fmt.Sprintf("line %d", 2*i)},
					{Time: now, Run: held.Run, Level: -i, Text: fmt.Sprintf("line %d 漢字", 2*i+1)},
				}
				want = append(want, lines...)
				equal(d, "verdict", note(d, w.id, store.Note{RunRef: ref(held), Logs: lines}), []job.Verdict{job.Applied})
			}
			equal(d, "all", logs(d, held.ID, 0, 100), want)
			equal(d, "first page", logs(d, held.ID, 0, 7), want[:7])
			equal(d, "second page", logs(d, held.ID, 7, 7), want[7:14])
			equal(d, "past the end", logs(d, held.ID, 20, 7), nil)
		}},
		{name: "J28_TheFirstLineIsATie", run: func(d *database) {
			line := func(text string) []job.LogLine { return []job.LogLine{{Time: d.now(), Run: 1, Text: text}} }
			id, plain := d.one(once("x", 0)), d.one()
			w := d.hire()
			held := w.claim(2)
			equal(d, "ties as they are claimed", [2]job.Ties{held[0].Ties, held[1].Ties}, [2]job.Ties{job.TieUnique, 0})
			note(d, w.id, store.Note{RunRef: ref(held[0]), Progress: &job.Progress{Done: 1}})
			equal(d, "ties after progress", d.get(id).Ties, job.TieUnique)
			for range 2 {
				note(d, w.id, store.Note{RunRef: ref(held[0]), Logs: line("while it ran")}, store.Note{RunRef: ref(held[1])})
				equal(d, "ties after a line", d.get(id).Ties, job.TieUnique|job.TieLogs)
			}
			equal(d, "ties of the job beside it", d.get(plain).Ties, 0)
			w.end(held[0], job.Waiting)
			equal(d, "ties after it went back", d.get(id).Ties, job.TieUnique|job.TieLogs)
			w.end(held[1], job.Waiting, func(e *job.End) { e.Logs = line("as it went back") })
			equal(d, "ties after an end with a line", d.get(plain).Ties, job.TieLogs)
			for _, j := range w.claim(2) {
				equal(d, "ties as it is claimed again", j.Ties, d.get(j.ID).Ties)
			}
		}},
		{name: "J28_TiesFollowTheJobIntoTheArchiveAndBack", run: func(d *database) {
			w := d.hire()
			for _, kept := range []struct {
				what string
				ties job.Ties
				edit func(*job.End)
			}{
				{"nothing beside it", 0, func(*job.End) {}},
				{"a last line", job.TieLogs, func(e *job.End) { e.Logs = []job.LogLine{{Time: d.now(), Run: 1, Text: "at its end"}} }},
			} {
				id, keyed := d.one(), d.one(once(kept.what, 0))
				for _, j := range w.claim(2) {
					w.end(j, job.Dead, kept.edit)
				}
				equal(d, "ties of one that died with "+kept.what, d.get(id).Ties, kept.ties)
				equal(d, "ties beside a key", d.get(keyed).Ties, kept.ties|job.TieUnique)
				equal(d, "retried", d.retry(id, keyed), []store.Change{store.Changed, store.Changed})
				equal(d, "ties after a retry of one with "+kept.what, d.get(id).Ties, kept.ties)
				equal(d, "ties beside a key", d.get(keyed).Ties, kept.ties|job.TieUnique)
				for _, j := range w.claim(2) {
					w.end(j, job.Done, func(e *job.End) { e.Ties = j.Ties })
				}
				equal(d, "ties of one that is done with "+kept.what, d.get(id).Ties, kept.ties)
				d.one(once(kept.what, 0), in(time.Hour)) // its key is free
			}
		}},
		{name: "P2_StaleNoteChangesNothing", run: func(d *database) {
			d.one()
			w := d.hire()
			old := w.take()
			w.end(old, job.Waiting)
			held := w.take()
			before := d.get(held.ID)
			stale := store.Note{RunRef: ref(old), Progress: &job.Progress{Done: 9}, Logs: []job.LogLine{{Time: d.now(), Run: 1, Text: "stale"}}}
			equal(d, "old run", note(d, w.id, stale), []job.Verdict{job.Stale})
			stale.RunRef = ref(held)
			equal(d, "another worker", note(d, d.hire().id, stale), []job.Verdict{job.Stale})
			stale.ID = job.NewID()
			equal(d, "unknown job", note(d, w.id, stale), []job.Verdict{job.Stale})
			equal(d, "job", d.get(held.ID), before)
			equal(d, "logs", logs(d, held.ID, 0, 10), nil)
			w.end(held, job.Done)
			stale.RunRef = ref(held)
			equal(d, "ended run", note(d, w.id, stale), []job.Verdict{job.Stale})
		}},
		{name: "VerdictsInOrder", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w := d.hire()
			held := w.claim(2)
			p := &job.Progress{Done: 1}
			unknown := store.Note{RunRef: store.RunRef{ID: job.NewID(), Run: 1}, Progress: p}
			equal(d, "verdicts", note(d, w.id, store.Note{RunRef: ref(held[1]), Progress: p}, unknown, store.Note{RunRef: ref(held[0]), Progress: p}),
				[]job.Verdict{job.Applied, job.Stale, job.Applied})
		}},
		{name: "EmptySlice", run: func(d *database) {
			equal(d, "verdicts", note(d, d.hire().id), nil)
		}},
		{name: "J28_LogsFollowTheJobIntoTheArchive", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			first := job.LogLine{Time: d.now(), Run: held.Run, Text: "while it ran"}
			last := job.LogLine{Time: d.now(), Run: held.Run, Text: "at its end"}
			note(d, w.id, store.Note{RunRef: ref(held), Logs: []job.LogLine{first}})
			w.end(held, job.Dead, func(e *job.End) { e.Logs = []job.LogLine{last} })
			equal(d, "logs", logs(d, held.ID, 0, 10), []job.LogLine{first, last})
			d.retry(held.ID)
			equal(d, "logs after a retry", logs(d, held.ID, 0, 10), []job.LogLine{first, last})
		}},
	}
}
