package jobs

import (
	"bytes"
	"context"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Retry makes dead, cancelled or parked jobs wait again with a fresh attempt
// budget, and scheduled ones due at once.
func (r *Room) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return r.operate(ctx, ids, op, Retry)
}

// All jobs of one call are due at the same moment, whichever way they come. The
// rows are locked.
//
//   - job_pkey finds those that are live, job_archive_pkey the others.
const (
	dueNow = `UPDATE pawl.job
SET due = $3
FROM (` + GivenIDs + `) AS e
WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id`
	freeJobs = `UPDATE pawl.job
SET state = 2, due = $3, used = 0, throttles = 0, wait = NULL, reason = NULL
FROM (` + GivenIDs + `) AS e
WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id`
)

// reviveJobs brings jobs back from the archive. The run number goes on from where
// it was (P2). Attempts and lost runs are forgiven, and so is a deadline that has
// passed, by which the retry would end at once.
var reviveJobs = `WITH back AS (
	DELETE FROM pawl.job_archive AS a
	USING (` + GivenIDs + `) AS e
	WHERE a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id
	RETURNING a.*
)
INSERT INTO pawl.job (namespace, id, state, ` + carriedColumns + `)
SELECT namespace, id, 2, ` + carriedFrom("", map[string]string{
	"due":       "$3",
	"used":      "0",
	"lost":      "0",
	"throttles": "0",
	"deadline":  "CASE WHEN deadline > $3 THEN deadline END",
}) + `
FROM back`

func (o *operation) retry(ctx context.Context, ids []job.ID) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	var due, free, back [][16]byte
	asks := map[string][]int{} // who of this call asks for a unique key, in order
	for i, id := range ids {
		a := o.archived[id]
		s := o.live[id]
		change, way := store.RetryAnswer(s, a.state, o.now)
		switch changes[i] = change; {
		case way == store.RetryDue:
			due = append(due, id)
			o.told.Add(s.Queue, s.Priority, o.now)
		case way == store.RetryParked:
			free = append(free, id)
			o.told.Add(s.Queue, s.Priority, o.now)
		case way == store.RetryEnded && a.hash == nil:
			back = append(back, id)
		case way == store.RetryEnded && o.held[string(a.hash)]:
			changes[i] = store.Busy
		case way == store.RetryEnded:
			changes[i] = store.Duplicate // unless it gets the key
			asks[string(a.hash)] = append(asks[string(a.hash)], i)
		}
	}
	for len(asks) > 0 { // twice at most: the second time those ask who hold their key
		var keys []uniqueKey
		for hash, list := range asks {
			keys = append(keys, uniqueKey{[]byte(hash), ids[list[0]]})
		}
		for _, k := range keys {
			o.wanted = append(o.wanted, LockKey{Hash: string(k.hash)})
		}
		slices.SortFunc(keys, func(a, b uniqueKey) int { return bytes.Compare(a.hash, b.hash) })
		answers, err := o.room.takeUnique(ctx, o.session, keys, true)
		if err != nil {
			return nil, err
		}
		for n, k := range keys {
			list := asks[string(k.hash)]
			delete(asks, string(k.hash))
			switch answers[n] {
			case uniqueAnswer{free: true}, uniqueAnswer{holder: k.job}:
				changes[list[0]], back = store.Changed, append(back, k.job)
			case uniqueAnswer{}: // it changed hands in between
				return nil, pg.Fault{Err: errRestless, Passing: true}.AsError()
			default:
				holds := func(i int) bool { return ids[i] == answers[n].holder }
				if at := slices.IndexFunc(list, holds); at >= 0 {
					asks[string(k.hash)] = list[at : at+1]
				}
			}
		}
	}
	for _, id := range back {
		a := o.archived[job.ID(id)]
		o.told.Add(a.queue, int(a.level), o.now)
	}
	var steps []*pg.Statement
	for _, part := range []struct {
		text string
		ids  [][16]byte
	}{{dueNow, due}, {freeJobs, free}, {reviveJobs, back}} {
		if len(part.ids) > 0 {
			steps = append(steps, &pg.Statement{Text: part.text, Args: []any{o.room.pg.Namespace, part.ids, o.now}})
		}
	}
	if len(steps) == 0 {
		return changes, nil
	}
	return changes, o.session.Run(ctx, steps...)
}

// placeJobs puts jobs, which are locked, into another queue ($3) or priority ($4):
// empty and 0 leave it. Their due times, and so their turns, stay, and their gates.
//
//   - job_pkey, or job_archive_pkey, finds them.
const (
	placeLive = `UPDATE pawl.job
SET queue = CASE WHEN $3::text = '' THEN queue ELSE $3::text END,
	priority = CASE WHEN $4::smallint = 0 THEN priority ELSE $4::smallint END,
	gate = CASE WHEN $3::text = '' THEN gate END
FROM (` + GivenIDs + `) AS e
WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id`
	placeArchived = `UPDATE pawl.job_archive AS a
SET queue = CASE WHEN $3::text = '' THEN queue ELSE $3::text END,
	priority = CASE WHEN $4::smallint = 0 THEN priority ELSE $4::smallint END,
	gate = CASE WHEN $3::text = '' THEN gate END
FROM (` + GivenIDs + `) AS e
WHERE a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id`
)

// place puts jobs into another queue or priority. A frontier may have passed the due
// time that they keep: the hint takes it back there.
func (o *operation) place(ctx context.Context, v store.Verb, ids []job.ID) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	var live, ended [][16]byte
	for i, id := range ids {
		s := o.live[id]
		was, at := o.standing(id)
		switch changes[i] = store.PlaceAnswer(v, s, o.archived[id].state, at); {
		case changes[i] != store.Changed:
		case s == nil:
			ended = append(ended, id)
		default:
			live = append(live, id)
			if to := v.Moved(at); was == job.Waiting {
				o.told.Add(to.Queue, to.Priority, s.Due)
			}
		}
	}
	var steps []*pg.Statement
	for _, part := range []struct {
		text string
		ids  [][16]byte
	}{{placeLive, live}, {placeArchived, ended}} {
		if len(part.ids) > 0 {
			steps = append(steps, &pg.Statement{Text: part.text, Args: []any{o.room.pg.Namespace, part.ids, v.Queue, int16(v.Priority)}})
		}
	}
	if len(steps) == 0 {
		return changes, nil
	}
	return changes, o.session.Run(ctx, steps...)
}

// makeFirst makes a job due, a moment before the first of its queue and priority.
//
//   - job_pkey finds it; job_ready, or job_gated for those behind its gate, the first.
const makeFirst = `UPDATE pawl.job AS j
SET due = least(j.due, $3, CASE
	WHEN j.gate IS NULL THEN (
		SELECT f.due - interval '1 microsecond'
		FROM pawl.job AS f
		WHERE f.namespace = $1 AND f.state = 2 AND f.gate IS NULL
			AND f.queue = $4 AND f.priority = $5 AND f.id <> $2
		ORDER BY f.due
		LIMIT 1
	)
	ELSE (
		SELECT f.due - interval '1 microsecond'
		FROM pawl.job AS f
		WHERE f.namespace = $1 AND f.state = 2 AND f.gate IS NOT NULL AND f.gate = j.gate
			AND f.queue = $4 AND f.priority = $5 AND f.id <> $2
		ORDER BY f.due
		LIMIT 1
	)
END)
WHERE j.namespace = $1 AND j.id = $2
RETURNING due`

// runNow makes waiting jobs due, each before those that wait.
func (o *operation) runNow(ctx context.Context, ids []job.ID) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	for i, id := range ids {
		s := o.live[id]
		if changes[i] = store.RunNowAnswer(s, o.archived[id].state); changes[i] != store.Changed {
			continue
		}
		due := o.now
		first := &pg.Statement{
			Text: makeFirst, Args: []any{o.room.pg.Namespace, [16]byte(id), o.now, s.Queue, int16(s.Priority)},
			Each: func(scan pg.Scan) error { return scan(&due) },
		}
		if err := o.session.Run(ctx, first); err != nil {
			return nil, err
		}
		o.told.Add(s.Queue, s.Priority, due)
	}
	return changes, nil
}

// What a verb would find, without locking anything. A key of the archived ones is
// held (u.job) while the time of its row is not over.
//
//   - job_pkey, job_archive_pkey and job_unique_pkey.
var (
	foreseeLive = "SELECT " + subjectColumns + `
FROM (` + GivenIDs + `) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id`
	foreseeArchived = `SELECT a.id, a.state, a.unique_hash, a.queue, a.priority, u.job
FROM (` + GivenIDs + `) AS e
JOIN pawl.job_archive AS a ON a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id
LEFT JOIN pawl.job_unique AS u ON u.namespace = ANY (ARRAY[e.namespace]) AND u.hash = a.unique_hash
	AND (u.until IS NULL OR u.until > {now})`
)

// Foresee says what a verb would answer, and changes nothing.
func (r *Room) Foresee(ctx context.Context, v store.Verb, ids []job.ID) ([]store.Foreseen, error) {
	var o *operation
	holders := map[job.ID]*job.ID{}
	args := []any{r.pg.Namespace, UUIDs(ids)}
	err := r.pg.Read(ctx, func() []*pg.Statement {
		o = &operation{live: map[job.ID]*job.Subject{}, archived: map[job.ID]archivedSubject{}}
		return []*pg.Statement{
			{Text: foreseeLive, Args: args, Each: func(scan pg.Scan) error {
				s, err := readSubject(scan)
				o.live[s.ID] = s
				return err
			}},
			{Text: foreseeArchived, Args: args, Each: func(scan pg.Scan) error {
				var id job.ID
				var a archivedSubject
				var holder *job.ID
				err := scan(&id, &a.state, &a.hash, &a.queue, &a.level, &holder)
				o.archived[id], holders[id] = a, holder
				return err
			}},
			{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&o.now) }},
		}
	})
	if err != nil {
		return nil, err
	}
	answers := make([]store.Foreseen, len(ids))
	for i, id := range ids {
		_, at := o.standing(id)
		a := o.archived[id]
		answers[i].Change = v.Answer(o.live[id], a.state, at, o.now)
		if v.Name != store.VerbRetry || o.live[id] != nil || answers[i].Change != store.Changed || a.hash == nil {
			continue
		}
		if holder := holders[id]; holder != nil && *holder != id {
			answers[i].Change = store.Duplicate
		} else {
			answers[i].Key = string(a.hash)
		}
	}
	return answers, nil
}
