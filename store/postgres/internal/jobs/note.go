package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// ownRuns tells which runs their worker still owns, which have begun, and whether
// the worker is not lost. It locks nothing: a handler may note something while its
// own transaction holds the row.
//
//   - job_pkey finds the runs, worker_pkey the worker.
const ownRuns = `SELECT {now}, e.n, job.begun, job.ties,
	EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL)
FROM (
	SELECT $1::int AS namespace, 3::smallint AS running, e.*
	FROM unnest($3::uuid[], $4::bigint[]) WITH ORDINALITY AS e (id, run, n)
	OFFSET 0
) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
WHERE job.run = e.run
	AND job.worker = $2
	AND job.state = e.running`

// setProgress skips a row that is locked: its run is about to end, and the end
// brings the newest progress along.
//
//   - job_pkey finds the runs.
const setProgress = `WITH own AS MATERIALIZED (
	SELECT job.ctid AS place, e.done, e.total, e.note
	FROM (
		SELECT $1::int AS namespace, 3::smallint AS running, e.*
		FROM unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[]) AS e (id, run, done, total, note)
		OFFSET 0
	) AS e
	JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
	WHERE job.run = e.run
		AND job.worker = $2
		AND job.state = e.running
	ORDER BY job.id
	FOR UPDATE OF job SKIP LOCKED
)
UPDATE pawl.job
SET progress_done = own.done, progress_total = own.total, progress_note = own.note
FROM own
WHERE job.ctid = own.place`

// tieLogs notes on the row of a run that there are lines. One that is locked is
// passed by: its end brings the tie along, and the purge finds lines that nobody
// knows of.
//
//   - job_pkey finds the runs.
const tieLogs = `WITH own AS MATERIALIZED (
SELECT job.ctid AS place` + fromFree + `
)
UPDATE pawl.job
SET ties = ties | 2
FROM own
WHERE job.ctid = own.place`

// job.TieLogs is written out above; this line does not compile when they part.
const _ = uint(job.TieLogs-2) + uint(2-job.TieLogs)

// heldTries is how often a beginning is tried whose row somebody holds: mostly one
// of the store's own transitions, for a moment.
const heldTries = 3

// Note keeps progress and log lines of runs that go on.
func (r *Room) Note(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	if len(notes) == 0 {
		return nil, nil
	}
	verdicts, err := r.noteOnce(ctx, w, notes)
	for n := 1; n < heldTries && err == nil && slices.Contains(verdicts, job.Locked) && pg.Pause(ctx, n); n++ {
		r.noteHeld(ctx, w, notes, verdicts)
	}
	return verdicts, err
}

// noteHeld tries the notes again that were answered Locked. What fails stays that:
// the others are committed and have their answer.
func (r *Room) noteHeld(ctx context.Context, w job.WorkerID, notes []store.Note, verdicts []job.Verdict) {
	var at []int
	var held []store.Note
	for i, v := range verdicts {
		if v == job.Locked {
			at, held = append(at, i), append(held, notes[i])
		}
	}
	again, _ := r.noteOnce(ctx, w, held)
	for n, v := range again {
		verdicts[at[n]] = v
	}
}

func (r *Room) noteOnce(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	var verdicts []job.Verdict
	err := r.pg.Retry(ctx, "note", pg.UnlessUnknown, func(ctx context.Context, _ bool) (err error) {
		return r.pg.Transact(ctx, r.pg.Finish, pg.UpkeepLimits, func(t *pg.Transaction) error {
			verdicts, err = r.NoteIn(ctx, t, w, notes)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (r *Room) NoteIn(ctx context.Context, session pg.Session, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	verdicts := make([]job.Verdict, len(notes))
	refs := make([]store.RunRef, len(notes))
	for i, n := range notes {
		verdicts[i], refs[i] = job.Stale, n.RunRef
	}
	var steps []*pg.Statement
	if begun := beginnings(notes); len(begun) > 0 {
		steps = append(steps, r.workers.BegunStep(w, begun))
	}
	ids, runs := workers.RefArrays(refs)
	var now time.Time
	var untied []store.RunRef // with the first lines of their job
	steps = append(steps, &pg.Statement{Text: ownRuns, Args: []any{r.pg.Namespace, w, ids, runs}, Each: func(scan pg.Scan) error {
		var n int
		var ties int32
		var begun, alive bool
		if err := scan(&now, &n, &begun, &ties, &alive); err != nil {
			return err
		}
		if len(notes[n-1].Logs) > 0 && !job.Ties(ties).Has(job.TieLogs) {
			untied = append(untied, notes[n-1].RunRef)
		}
		switch {
		case begun || !notes[n-1].Begun:
			verdicts[n-1] = job.Applied
		case alive: // the mark passed its row over, which somebody holds
			verdicts[n-1] = job.Locked
		}
		return nil
	}})
	if err := session.Run(ctx, steps...); err != nil {
		return nil, err
	}
	steps = nil
	var logs logLines
	newest := map[store.RunRef]*job.Progress{} // two notes of one run: the last counts
	for i, n := range notes {
		if verdicts[i] != job.Applied {
			continue
		}
		logs.add(n.ID, n.Logs, now)
		if n.Progress != nil {
			newest[n.RunRef] = n.Progress
		}
	}
	if len(logs.ids) > 0 {
		steps = append(steps, logs.step(r.pg.Namespace))
	}
	if len(untied) > 0 {
		ids, runs := workers.RefArrays(untied)
		steps = append(steps, &pg.Statement{Text: tieLogs, Args: []any{r.pg.Namespace, w, ids, runs}})
	}
	if len(newest) > 0 {
		var ids [][16]byte
		var runs, done, total []int64
		var texts []pgtype.Text
		for run, p := range newest {
			ids, runs, done, total = append(ids, run.ID), append(runs, run.Run), append(done, p.Done), append(total, p.Total)
			texts = append(texts, textOrNull(pg.Legible(p.Note)))
		}
		steps = append(steps, &pg.Statement{Text: setProgress, Args: []any{r.pg.Namespace, w, ids, runs, done, total, texts}})
	}
	if len(steps) == 0 {
		return verdicts, nil
	}
	return verdicts, session.Run(ctx, steps...)
}

func beginnings(notes []store.Note) (begun []store.RunRef) {
	for _, n := range notes {
		if n.Begun {
			begun = append(begun, n.RunRef)
		}
	}
	return begun
}
