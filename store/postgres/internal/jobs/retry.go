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
WHERE job.namespace = e.namespace AND job.id = e.id`
	freeJobs = `UPDATE pawl.job
SET state = 2, due = $3, used = 0, throttles = 0, wait = NULL, reason = NULL
FROM (` + GivenIDs + `) AS e
WHERE job.namespace = e.namespace AND job.id = e.id`
)

// reviveJobs brings jobs back from the archive. The run number goes on from where
// it was (P2). Attempts and lost runs are forgiven, and so is a deadline that has
// passed, by which the retry would end at once.
var reviveJobs = `WITH back AS (
	DELETE FROM pawl.job_archive AS a
	USING (` + GivenIDs + `) AS e
	WHERE a.namespace = e.namespace AND a.id = e.id
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
