package jobs

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readSubject takes what is stored as it comes, within range or not: whoever moves
// many rows must not fail for one (P8). What the statement selects behind the
// columns of a subject is read along.
func readSubject(scan pg.Scan, more ...any) (*job.Subject, error) {
	s := &job.Subject{}
	var state, wait int16
	var ties int32
	var due pgtype.Timestamptz // which may be infinity
	err := scan(append([]any{&s.ID, &state, &s.Priority, &due, &s.Run, &s.Used, &s.MaxAttempts, &s.Lost, &s.Queue, &s.Kind,
		&s.Failures, &s.Worker, &s.Begun, &s.CancelAsked, &wait, &ties}, more...)...)
	s.State, s.Wait, s.Due, s.Ties = job.State(state), job.Wait(wait), due.Time, job.Ties(ties)
	return s, err
}

// apply writes moves in the transaction that has locked their subjects, and has
// followers do what belongs to them. It
// returns what claims should be told when it commits.
func (r *Room) apply(ctx context.Context, session pg.Session, f *followed, moves []job.Move, now time.Time) (hints.Set, error) {
	if err := r.followable(f, moves); err != nil {
		return nil, err
	}
	slices.SortFunc(moves, func(a, b job.Move) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	var told hints.Set
	var released, ended []job.Move
	var logs logLines
	for _, m := range moves {
		if m.To.Final() {
			ended = append(ended, m)
		} else {
			released = append(released, m)
		}
		if m.To == job.Waiting {
			told.Add(m.Of.Queue, m.Of.Priority, now.Add(m.Delay))
		}
		if !m.To.Final() || keepOf(&m.End) >= 0 {
			logs.add(m.ID, m.Logs, now)
		}
	}
	var steps []*pg.Statement
	if len(logs.ids) > 0 {
		steps = append(steps, logs.step(r.pg.Namespace))
	}
	if len(released) > 0 {
		steps = append(steps, releaseStep(r.pg.Namespace, released))
	}
	for _, part := range splitKept(ended) {
		if part.kept {
			// A copy that should not be there must not stop the end of a job. The insert
			// does not look for one itself: that would cost a tenth of every finish.
			steps = append(steps, &pg.Statement{Text: dropCopies, Args: []any{r.pg.Namespace, idsOf(part.moves)}})
		}
		steps = append(steps, endStep(r.pg.Namespace, part.moves, part.kept))
	}
	if len(steps) == 0 {
		return told, nil
	}
	if err := session.Run(ctx, steps...); err != nil {
		return told, err
	}
	return told, r.follow(ctx, session, f, moves)
}

// locking finds and locks the jobs of a transition, with the store's time.
type locking func(ctx context.Context, session pg.Session) (found []*job.Subject, now time.Time, err error)

// transit is the way of every transition that the store decides by itself: lock,
// decide and apply in a transaction, which is tried until it is answered, then
// tell. It returns what was moved, also by a try whose answer is lost, because
// the next one no longer finds that.
func (r *Room) transit(
	ctx context.Context, name string, in func(context.Context, pg.Session, *followed) ([]job.Move, hints.Set, error),
) ([]job.Move, error) {
	var all []job.Move
	var told hints.Set
	var ahead followed
	err := r.pg.Retry(ctx, name, pg.Always, func(ctx context.Context, _ bool) error {
		var moves []job.Move
		err := r.transact(ctx, r.pg.Upkeep, pg.UpkeepLimits, &ahead, func(t *pg.Transaction) (err error) {
			var woken hints.Set
			moves, woken, err = in(ctx, t, &ahead)
			told.Join(woken)
			return err
		})
		if err == nil || pg.FaultOf(err).Unknown {
			all = addMoves(all, moves)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.hints.Tell(told)
	return all, nil
}

// moveAll locks, decides and applies, in a transaction.
func (r *Room) moveAll(
	ctx context.Context, session pg.Session, f *followed, lock locking, decide func(*job.Subject) job.End,
) ([]job.Move, hints.Set, error) {
	found, now, err := lock(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	moves := make([]job.Move, 0, len(found))
	for _, s := range found {
		m, err := job.MoveOf(s, decide(s), now)
		if err != nil {
			return nil, nil, err
		}
		moves = append(moves, m)
	}
	told, err := r.apply(ctx, session, f, moves, now)
	return moves, told, err
}

// addMoves adds those of jobs that are not in the list yet.
func addMoves(list, more []job.Move) []job.Move {
	if len(list) == 0 {
		return more
	}
	known := make(map[job.ID]bool, len(list))
	for i := range list {
		known[list[i].ID] = true
	}
	for i := range more {
		if !known[more[i].ID] {
			list = append(list, more[i])
		}
	}
	return list
}

// lockBy locks what a statement selects as subjects.
func lockBy(text string, args ...any) locking {
	return func(ctx context.Context, session pg.Session) (found []*job.Subject, now time.Time, err error) {
		err = session.Run(ctx, nowStep(&now), &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
			f, err := readSubject(scan)
			found = append(found, f)
			return err
		}})
		return found, now, err
	}
}

// nowStep reads the store's time.
func nowStep(now *time.Time) *pg.Statement {
	return &pg.Statement{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(now) }}
}

// keepOf is how long a final job is kept; negative means not at all.
func keepOf(e *job.End) time.Duration { return e.Keep.WithDefaults().For(e.To) }

type keptMoves struct {
	moves []job.Move
	kept  bool
}

// splitKept parts the moves into those that the archive keeps and the others.
func splitKept(ended []job.Move) (parts []keptMoves) {
	var kept, gone []job.Move
	for _, m := range ended {
		if keepOf(&m.End) >= 0 {
			kept = append(kept, m)
		} else {
			gone = append(gone, m)
		}
	}
	if len(kept) > 0 {
		parts = append(parts, keptMoves{kept, true})
	}
	if len(gone) > 0 {
		parts = append(parts, keptMoves{gone, false})
	}
	return parts
}

// releaseJobs gives running jobs up, and parks or frees others.
//
//   - job_pkey finds the rows, which are locked.
const releaseJobs = `UPDATE pawl.job
SET state = e.state,
	due = {now} + e.delay * interval '1 microsecond',
	wait = nullif(e.wait, 0),
	reason = e.reason,
	worker = NULL,
	claim = NULL,
	begun = false,
	cancel = false,
	used = job.used + e.burnt,
	snoozes = job.snoozes + e.snoozed,
	snoozed = CASE WHEN e.snoozed > 0 THEN {now} ELSE job.snoozed END,
	throttles = CASE WHEN e.burnt + e.snoozed > 0 THEN 0 ELSE job.throttles + e.throttled END,
	throttled = CASE WHEN e.throttled > 0 THEN {now} ELSE job.throttled END,
	ties = job.ties | e.ties,
	lost = job.lost + e.lost,
	rescues = job.rescues + e.rescued,
	deferred = CASE WHEN e.lost > 0 THEN 0 ELSE job.deferred + e.deferred END,
	failures = coalesce(e.failures, job.failures),
	progress_done = CASE WHEN e.progress THEN e.progress_done ELSE job.progress_done END,
	progress_total = CASE WHEN e.progress THEN e.progress_total ELSE job.progress_total END,
	progress_note = CASE WHEN e.progress THEN e.progress_note ELSE job.progress_note END
FROM (
	SELECT $1::int AS namespace, e.*
	FROM unnest(
		$2::uuid[], $3::smallint[], $4::bigint[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[], $10::bytea[],
		$11::boolean[], $12::bigint[], $13::bigint[], $14::text[], $15::int[], $16::smallint[], $17::int[], $18::int[]
	) AS e (
		id, state, delay, reason, burnt, snoozed, lost, rescued, failures,
		progress, progress_done, progress_total, progress_note, deferred, wait, ties, throttled
	)
	OFFSET 0
) AS e
WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id`

func releaseStep(namespace int32, moves []job.Move) *pg.Statement {
	a := newEndArrays(moves)
	return &pg.Statement{Text: releaseJobs, Args: []any{namespace, a.ids, a.states, a.delays, a.reasons, a.burnt, a.snoozed, a.lost, a.rescued,
		a.failures, a.progress, a.done, a.total, a.notes, a.deferred, a.waits, a.ties, a.throttled}}
}

// endJobs moves jobs out of the live table in the transaction that ends them.
//
//   - job_pkey finds the rows, which are locked.
var endJobs = `WITH e AS (
	SELECT $1::int AS namespace, e.*
	FROM unnest(
		$2::uuid[], $3::smallint[], $4::bigint[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[], $10::bytea[],
		$11::boolean[], $12::bigint[], $13::bigint[], $14::text[], $15::bytea[], $16::bigint[], $17::int[], $18::int[]
	) AS e (
		id, state, delay, reason, burnt, snoozed, lost, rescued, failures,
		progress, progress_done, progress_total, progress_note, result, keep, ties, throttled
	)
	OFFSET 0
), gone AS (
	DELETE FROM pawl.job
	USING e
	WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
	RETURNING job.namespace, job.id, job.worker, ` + carriedFrom("job.", map[string]string{
	"used":           "job.used + e.burnt",
	"lost":           "job.lost + e.lost",
	"rescues":        "job.rescues + e.rescued",
	"snoozes":        "job.snoozes + e.snoozed",
	"snoozed":        "CASE WHEN e.snoozed > 0 THEN {now} ELSE job.snoozed END",
	"throttles":      "CASE WHEN e.burnt + e.snoozed > 0 THEN 0 ELSE job.throttles + e.throttled END",
	"throttled":      "CASE WHEN e.throttled > 0 THEN {now} ELSE job.throttled END",
	"ties":           "job.ties | e.ties",
	"progress_done":  "CASE WHEN e.progress THEN e.progress_done ELSE job.progress_done END",
	"progress_total": "CASE WHEN e.progress THEN e.progress_total ELSE job.progress_total END",
	"progress_note":  "CASE WHEN e.progress THEN e.progress_note ELSE job.progress_note END",
	"failures":       "coalesce(e.failures, job.failures)",
}) + `,
		e.state AS final, e.reason AS why, e.result AS result, e.keep AS keep
), `

// freeKeys gives the unique keys of the rows of gone free, or keeps them for their
// period, and ends a statement.
//
//   - job_unique_pkey finds the keys.
const freeKeys = `, freed AS (
	DELETE FROM pawl.job_unique AS u
	USING gone
	WHERE gone.unique_hash IS NOT NULL
		AND gone.unique_period IS NULL
		AND u.namespace = ANY (ARRAY[gone.namespace])
		AND u.hash = gone.unique_hash
		AND u.job = gone.id
), protected AS (
	UPDATE pawl.job_unique AS u
	SET until = {now} + gone.unique_period * interval '1 microsecond'
	FROM gone
	WHERE gone.unique_hash IS NOT NULL
		AND gone.unique_period IS NOT NULL
		AND u.namespace = ANY (ARRAY[gone.namespace])
		AND u.hash = gone.unique_hash
		AND u.job = gone.id
)
SELECT id
FROM gone`

// What becomes of the rows of gone: they are kept, or leave a tombstone.
var keepGone = `kept AS (
	INSERT INTO pawl.job_archive (
		namespace, id, state, reason, result, finished, expires, worker,
		` + carriedColumns + `
	)
	SELECT
		$1, id, final, why, result, {now}, {now} + keep * interval '1 microsecond', worker,
		` + carriedColumns + `
	FROM gone
)`

const (
	tombstoneGone = `buried AS (
	INSERT INTO pawl.tombstone (namespace, id, expires, run, worker)
	SELECT $1, id, {now} + ` + tombstoneLife + `, run, worker
	FROM gone
	ON CONFLICT (namespace, id) DO UPDATE SET expires = excluded.expires, run = excluded.run, worker = excluded.worker
)`
	// deleteLogsGone removes log lines of the rows of gone (job_log_pkey), no more
	// than the bound: the purge finds the rest, which are lines of no job (purgeLogs).
	deleteLogsGone = `silenced AS (
	DELETE FROM pawl.job_log
	WHERE ctid = ANY (ARRAY(
		SELECT l.place
		FROM gone
		CROSS JOIN LATERAL (
			SELECT ctid AS place
			FROM pawl.job_log AS l
			WHERE l.namespace = ANY (ARRAY[gone.namespace]) AND l.job = gone.id
			LIMIT 10000
		) AS l
		LIMIT 10000
	))
)`
	tombstoneLife = "interval '24 hours'" // job.KeepTombstone
)

// DropLines is written out above; this line does not compile when they part.
const _ = uint(10_000-store.DropLines) + uint(store.DropLines-10_000)

var (
	endKept   = endJobs + keepGone + freeKeys
	endBuried = endJobs + tombstoneGone + ", " + deleteLogsGone + freeKeys
)

func endStep(namespace int32, moves []job.Move, kept bool) *pg.Statement {
	a := newEndArrays(moves)
	text := endBuried
	if kept {
		text = endKept
	}
	return &pg.Statement{Text: text, Args: []any{namespace, a.ids, a.states, a.delays, a.reasons, a.burnt, a.snoozed, a.lost, a.rescued,
		a.failures, a.progress, a.done, a.total, a.notes, a.results, a.keeps, a.ties, a.throttled}}
}

// GivenIDs are the ids of a call, as rows to look up by a primary key
// (pg.SettingsText says why so).
const GivenIDs = "SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[]) AS e (id) OFFSET 0"

// dropCopies removes archived rows of jobs that are live (job_archive_pkey).
const dropCopies = `DELETE FROM pawl.job_archive AS a
USING (` + GivenIDs + `) AS e
WHERE a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id`

func idsOf(moves []job.Move) [][16]byte {
	ids := make([][16]byte, len(moves))
	for i := range moves {
		ids[i] = moves[i].ID
	}
	return ids
}

// endArrays are moves as the arguments of a statement.
type endArrays struct {
	ids                                     [][16]byte
	states, waits                           []int16
	delays, keeps                           []int64
	reasons, notes                          []pgtype.Text
	burnt, snoozed, lost, rescued, deferred []int32
	throttled                               []int32
	ties                                    []int32 // that the move adds
	failures, results                       [][]byte
	progress                                []bool
	done, total                             []pgtype.Int8
}

func newEndArrays(moves []job.Move) *endArrays {
	a := &endArrays{}
	one := func(b bool) int32 {
		if b {
			return 1
		}
		return 0
	}
	for i := range moves {
		e := &moves[i].End
		a.ids = append(a.ids, e.ID)
		a.states, a.waits = append(a.states, int16(e.To)), append(a.waits, int16(e.Wait))
		a.delays = append(a.delays, e.Delay.Microseconds())
		a.keeps = append(a.keeps, keepOf(e).Microseconds())
		a.reasons = append(a.reasons, textOrNull(pg.Legible(e.Reason)))
		a.burnt = append(a.burnt, one(e.Burn))
		a.snoozed = append(a.snoozed, one(e.Snooze))
		a.throttled = append(a.throttled, one(e.Throttle))
		a.rescued = append(a.rescued, one(e.Rescue))
		a.deferred = append(a.deferred, one(e.Defer))
		a.lost = append(a.lost, one(e.Lose))
		a.ties = append(a.ties, int32(moves[i].NewTies()))
		a.failures = append(a.failures, moves[i].NewFailures)
		a.results = append(a.results, e.Result)
		var p job.Progress
		if e.Progress != nil {
			p = *e.Progress
		}
		a.progress = append(a.progress, e.Progress != nil)
		a.done = append(a.done, pgtype.Int8{Int64: p.Done, Valid: true})
		a.total = append(a.total, pgtype.Int8{Int64: p.Total, Valid: true})
		a.notes = append(a.notes, textOrNull(pg.Legible(p.Note)))
	}
	return a
}

// logLines are lines of several jobs on their way in.
type logLines struct {
	ids    [][16]byte
	times  []time.Time
	runs   []int64
	levels []int32
	texts  [][]byte
}

func (l *logLines) add(id job.ID, lines []job.LogLine, now time.Time) {
	for _, line := range lines {
		at := line.Time
		if at.IsZero() {
			at = now
		}
		l.ids, l.times, l.runs = append(l.ids, id), append(l.times, at), append(l.runs, line.Run)
		l.levels, l.texts = append(l.levels, int32(line.Level)), append(l.texts, []byte(strings.ToValidUTF8(line.Text, "\uFFFD")))
	}
}

const addLines = `INSERT INTO pawl.job_log (namespace, job, time, run, level, text)
SELECT $1, l.job, l.time, l.run, l.level, l.text
FROM unnest($2::uuid[], $3::timestamptz[], $4::bigint[], $5::int[], $6::bytea[])
	WITH ORDINALITY AS l (job, time, run, level, text, n)
ORDER BY l.n`

// step appends the lines in their order: the number of a line ascends with it.
func (l *logLines) step(namespace int32) *pg.Statement {
	return &pg.Statement{Text: addLines, Args: []any{namespace, l.ids, l.times, l.runs, l.levels, l.texts}}
}

// keep is how long ended jobs of a queue are kept.
func (r *Room) keep(queue string) job.Keep { return r.KeepFor(queue).WithDefaults() }
