package jobs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// subject is what a move needs to know of the live row it moves. The row is
// locked by the transaction that reads it.
type subject struct {
	id       job.ID
	state    job.State
	run      int64
	worker   job.WorkerID
	begun    bool
	cancel   bool
	used     int
	lost     int
	priority int
	due      time.Time
	queue    string
	wait     job.Wait
	failures []byte
	mortal   mortal
}

// mortal is what is told of a job when it dies by upkeep. Only that reads it.
type mortal struct {
	kind        string
	maxAttempts int
}

// death names the job as one that died.
func (s *subject) death(reason string) store.Death {
	return store.Death{
		ID: s.id, Kind: s.mortal.kind, Queue: s.queue, Run: s.run, Attempt: s.used + 1, MaxAttempts: s.mortal.maxAttempts, Reason: reason,
	}
}

const subjectColumns = "job.id, job.state, job.run, coalesce(job.worker, 0), job.begun, job.cancel, job.used, job.lost, job.priority, job.due, job.queue, coalesce(job.wait, 0), job.failures"

// mortalColumns come after those of a subject.
const mortalColumns = ", job.kind, job.max_attempts"

// read takes what is stored as it comes, within range or not: whoever moves many
// rows must not fail for one (P8). What the statement selects behind them is read
// along.
func (s *subject) read(scan pg.Scan, more ...any) error {
	var state, wait int16
	var due pgtype.Timestamptz // which may be infinity
	err := scan(append([]any{&s.id, &state, &s.run, &s.worker, &s.begun, &s.cancel, &s.used, &s.lost, &s.priority, &due, &s.queue, &wait, &s.failures}, more...)...)
	s.state, s.wait, s.due = job.State(state), job.Wait(wait), due.Time
	return err
}

// subjects reads all rows of a statement.
func subjects(text string, args ...any) (*pg.Statement, *[]subject) {
	list := &[]subject{}
	return &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		var s subject
		if err := s.read(scan); err != nil {
			return err
		}
		*list = append(*list, s)
		return nil
	}}, list
}

// mortals reads all rows of a statement with mortalColumns.
func mortals(text string, args ...any) (*pg.Statement, *[]subject) {
	list := &[]subject{}
	return &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		var s subject
		if err := s.read(scan, &s.mortal.kind, &s.mortal.maxAttempts); err != nil {
			return err
		}
		*list = append(*list, s)
		return nil
	}}, list
}

// move is one way out of a state, decided: its subject is locked.
type move struct {
	subject
	end     job.End
	rescued bool
	// failures is the whole list after the move, nil when it does not change.
	newFailures []byte
}

// decide makes a move of an end. The time of a failure is the store's.
func decide(s subject, e job.End, rescued bool, now time.Time) (move, error) {
	if !job.CanMove(s.state, e.To) {
		return move{}, fmt.Errorf("pawl: job %s cannot move from %s to %s", s.id, s.state, e.To)
	}
	m := move{subject: s, end: e, rescued: rescued}
	if e.Failure != nil {
		m.newFailures = job.AppendFailure(s.failures, now, e.Failure)
	}
	return m, nil
}

// apply writes moves in the transaction that has locked their subjects, and
// returns what claims should be told when it commits.
func (s *Room) apply(ctx context.Context, session pg.Session, moves []move, now time.Time) (hints.Set, error) {
	slices.SortFunc(moves, func(a, b move) int { return bytes.Compare(a.id[:], b.id[:]) })
	var told hints.Set
	var released, ended []move
	var logs logLines
	for _, m := range moves {
		if m.end.To.Final() {
			ended = append(ended, m)
		} else {
			released = append(released, m)
		}
		if m.end.To == job.Waiting {
			told.Add(m.queue, m.priority, now.Add(m.end.Delay))
		}
		if !m.end.To.Final() || keepOf(&m.end) >= 0 {
			logs.add(m.id, m.end.Logs, now)
		}
	}
	var steps []*pg.Statement
	if len(logs.ids) > 0 {
		steps = append(steps, logs.step(s.pg.Namespace))
	}
	if len(released) > 0 {
		steps = append(steps, releaseStep(s.pg.Namespace, released))
	}
	for _, part := range splitKept(ended) {
		if part.kept {
			// A copy that should not be there must not stop the end of a job. The insert
			// does not look for one itself: that would cost a tenth of every finish.
			steps = append(steps, &pg.Statement{Text: dropCopies, Args: []any{s.pg.Namespace, idsOf(part.moves)}})
		}
		steps = append(steps, endStep(s.pg.Namespace, part.moves, part.kept))
	}
	if len(steps) == 0 {
		return told, nil
	}
	return told, session.Run(ctx, steps...)
}

// keepOf is how long a final job is kept; negative means not at all.
func keepOf(e *job.End) time.Duration { return e.Keep.WithDefaults().For(e.To) }

type keptMoves struct {
	moves []move
	kept  bool
}

// splitKept parts the moves into those that the archive keeps and the others.
func splitKept(ended []move) (parts []keptMoves) {
	var kept, gone []move
	for _, m := range ended {
		if keepOf(&m.end) >= 0 {
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

// releaseJobs gives running jobs up, and parks or frees others (job_pkey). The
// rows are locked.
const releaseJobs = `UPDATE pawl.job SET state = e.state, due = {now} + e.delay * interval '1 microsecond', wait = nullif(e.wait, 0), reason = e.reason,
	worker = NULL, claim = NULL, begun = false, cancel = false,
	used = job.used + e.burnt, snoozes = job.snoozes + e.snoozed, lost = job.lost + e.lost, rescues = job.rescues + e.rescued,
	deferred = CASE WHEN e.lost > 0 THEN 0 ELSE job.deferred + e.deferred END,
	failures = coalesce(e.failures, job.failures),
	progress_done = CASE WHEN e.progress THEN e.progress_done ELSE job.progress_done END,
	progress_total = CASE WHEN e.progress THEN e.progress_total ELSE job.progress_total END,
	progress_note = CASE WHEN e.progress THEN e.progress_note ELSE job.progress_note END
FROM (SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[], $3::smallint[], $4::bigint[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[], $10::bytea[],
	$11::boolean[], $12::bigint[], $13::bigint[], $14::text[], $15::int[], $16::smallint[])
	AS e (id, state, delay, reason, burnt, snoozed, lost, rescued, failures, progress, progress_done, progress_total, progress_note, deferred, wait) OFFSET 0) AS e
WHERE job.namespace = e.namespace AND job.id = e.id`

func releaseStep(namespace int32, moves []move) *pg.Statement {
	a := newEndArrays(moves)
	return &pg.Statement{Text: releaseJobs, Args: []any{namespace, a.ids, a.states, a.delays, a.reasons, a.burnt, a.snoozed, a.lost, a.rescued,
		a.failures, a.progress, a.done, a.total, a.notes, a.deferred, a.waits}}
}

// The columns that a job takes along into the archive and back.
const carried = `priority, due, run, used, max_attempts, lost, rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, key, budget, flow, unique_hash, unique_period, capabilities, tags, progress_done, progress_total, progress_note, headers, failures, args`

// endJobs moves jobs out of the live table in the transaction that ends them.
// The rows are locked.
const endJobs = `WITH e AS (
	SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[], $3::smallint[], $4::bigint[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[], $10::bytea[],
		$11::boolean[], $12::bigint[], $13::bigint[], $14::text[], $15::bytea[], $16::bigint[])
		AS e (id, state, delay, reason, burnt, snoozed, lost, rescued, failures, progress, progress_done, progress_total, progress_note, result, keep)
	OFFSET 0
), gone AS (
	DELETE FROM pawl.job USING e WHERE job.namespace = e.namespace AND job.id = e.id
	RETURNING job.namespace, job.id, job.priority, job.due, job.run, job.worker, job.used + e.burnt AS used, job.max_attempts, job.lost + e.lost AS lost,
		job.rescues + e.rescued AS rescues, job.snoozes + e.snoozed AS snoozes, job.version, job.created, job.started, job.timeout, job.deadline,
		job.queue, job.kind, job.key, job.budget, job.flow, job.unique_hash, job.unique_period, job.capabilities, job.tags,
		CASE WHEN e.progress THEN e.progress_done ELSE job.progress_done END AS progress_done,
		CASE WHEN e.progress THEN e.progress_total ELSE job.progress_total END AS progress_total,
		CASE WHEN e.progress THEN e.progress_note ELSE job.progress_note END AS progress_note,
		job.headers, coalesce(e.failures, job.failures) AS failures, job.args,
		e.state AS final, e.reason AS why, e.result AS result, e.keep AS keep
), ` + keptOrBuried

// keptOrBuried is what becomes of the rows of gone; %s is one of the two below.
const keptOrBuried = `%s, freed AS (
	DELETE FROM pawl.job_unique AS u USING gone
	WHERE gone.unique_hash IS NOT NULL AND gone.unique_period IS NULL AND u.namespace = gone.namespace AND u.hash = gone.unique_hash AND u.job = gone.id
), protected AS (
	UPDATE pawl.job_unique AS u SET until = {now} + gone.unique_period * interval '1 microsecond' FROM gone
	WHERE gone.unique_hash IS NOT NULL AND gone.unique_period IS NOT NULL AND u.namespace = gone.namespace AND u.hash = gone.unique_hash AND u.job = gone.id
)
SELECT id FROM gone`

const (
	keepGone = `kept AS (
	INSERT INTO pawl.job_archive (namespace, id, state, reason, result, finished, expires, worker, ` + carried + `)
	SELECT $1, id, final, why, result, {now}, {now} + keep * interval '1 microsecond', worker, ` + carried + ` FROM gone
)`
	tombstoneGone = `buried AS (
	INSERT INTO pawl.tombstone (namespace, id, expires, run, worker)
	SELECT $1, id, {now} + ` + tombstoneLife + `, run, worker FROM gone
	ON CONFLICT (namespace, id) DO UPDATE SET expires = excluded.expires, run = excluded.run, worker = excluded.worker
), ` + deleteLogsGone
	// deleteLogsGone removes log lines of the rows of gone, no more than the bound: the
	// purge finds the rest, which are lines of no job (purgeLogs).
	deleteLogsGone = `silenced AS (
	DELETE FROM pawl.job_log WHERE ctid = ANY (ARRAY(SELECT l.place FROM gone CROSS JOIN LATERAL (
		SELECT ctid AS place FROM pawl.job_log AS l WHERE l.namespace = gone.namespace AND l.job = gone.id LIMIT 10000) AS l LIMIT 10000))
)`
	tombstoneLife = "interval '24 hours'" // job.KeepTombstone
)

// DropLines is written out above; this line does not compile when they part.
const _ = uint(10_000-store.DropLines) + uint(store.DropLines-10_000)

var (
	endKept   = strings.Replace(endJobs, "%s", keepGone, 1)
	endBuried = strings.Replace(endJobs, "%s", tombstoneGone, 1)
)

func endStep(namespace int32, moves []move, kept bool) *pg.Statement {
	a := newEndArrays(moves)
	text := endBuried
	if kept {
		text = endKept
	}
	return &pg.Statement{Text: text, Args: []any{namespace, a.ids, a.states, a.delays, a.reasons, a.burnt, a.snoozed, a.lost, a.rescued,
		a.failures, a.progress, a.done, a.total, a.notes, a.results, a.keeps}}
}

// dropCopies removes archived rows of jobs that are live (job_archive_pkey).
const dropCopies = `DELETE FROM pawl.job_archive AS a USING (SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[]) AS e (id) OFFSET 0) AS e
	WHERE a.namespace = e.namespace AND a.id = e.id`

func idsOf(moves []move) [][16]byte {
	ids := make([][16]byte, len(moves))
	for i := range moves {
		ids[i] = moves[i].id
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
	failures, results                       [][]byte
	progress                                []bool
	done, total                             []pgtype.Int8
}

func newEndArrays(moves []move) *endArrays {
	a := &endArrays{}
	one := func(b bool) int32 {
		if b {
			return 1
		}
		return 0
	}
	for i := range moves {
		m := &moves[i]
		e := &m.end
		a.ids = append(a.ids, m.id)
		a.states, a.waits = append(a.states, int16(e.To)), append(a.waits, int16(e.Wait))
		a.delays = append(a.delays, e.Delay.Microseconds())
		a.keeps = append(a.keeps, keepOf(e).Microseconds())
		a.reasons = append(a.reasons, textOrNull(pg.Legible(e.Reason)))
		a.burnt = append(a.burnt, one(e.Burn))
		a.snoozed = append(a.snoozed, one(e.Snooze))
		a.rescued = append(a.rescued, one(m.rescued))
		a.deferred = append(a.deferred, one(e.Defer))
		a.lost = append(a.lost, one(m.rescued && e.Failure != nil)) // job.Rescue adds a failure when the handler had begun
		a.failures = append(a.failures, m.newFailures)
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

// step appends the lines in their order: the number of a line ascends with it.
func (l *logLines) step(namespace int32) *pg.Statement {
	return &pg.Statement{Text: `INSERT INTO pawl.job_log (namespace, job, time, run, level, text)
		SELECT $1, l.job, l.time, l.run, l.level, l.text
		FROM unnest($2::uuid[], $3::timestamptz[], $4::bigint[], $5::int[], $6::bytea[]) WITH ORDINALITY AS l (job, time, run, level, text, n) ORDER BY l.n`,
		Args: []any{namespace, l.ids, l.times, l.runs, l.levels, l.texts}}
}

// keep is how long ended jobs of a queue are kept.
func (s *Room) keep(queue string) job.Keep { return s.KeepFor(queue).WithDefaults() }
