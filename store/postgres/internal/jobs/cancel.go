package jobs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Cancel ends jobs that are not running and asks running ones to stop.
func (r *Room) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return r.operate(ctx, ids, op, Cancel)
}

// Delete removes jobs that are not running, and asks running ones to cancel.
func (r *Room) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return r.operate(ctx, ids, op, Delete)
}

// Verb is what an operator does to jobs.
type Verb struct {
	store.Verb
	Action string // as the audit log has it
	run    func(*operation, context.Context, []job.ID) ([]store.Change, error)
}

// What operators do.
var (
	Cancel = VerbOf(store.Verb{Name: store.VerbCancel})
	Retry  = VerbOf(store.Verb{Name: store.VerbRetry})
	Delete = VerbOf(store.Verb{Name: store.VerbDelete})
)

// VerbOf is how a verb is done.
func VerbOf(v store.Verb) Verb {
	run := (*operation).cancel
	switch v.Name {
	case store.VerbRetry:
		run = (*operation).retry
	case store.VerbDelete:
		run = (*operation).remove
	case store.VerbRunNow:
		run = (*operation).runNow
	case store.VerbRequeue, store.VerbPriority:
		run = func(o *operation, ctx context.Context, ids []job.ID) ([]store.Change, error) {
			return o.place(ctx, v, ids)
		}
	}
	return Verb{v, string(v.Name), run}
}

// operation is an operator's verb over several jobs, in one transaction. Every
// job that it may change is locked before anything is decided.
type operation struct {
	room     *Room
	session  pg.Session
	now      time.Time
	live     map[job.ID]*job.Subject
	archived map[job.ID]archivedSubject
	told     hints.Set
	asked    bool // a running job was asked to stop
	// skip: a job whose row is locked is passed over and answered Busy: the
	// others do not wait for a user's transaction (P8).
	skip bool
	busy map[job.ID]bool
	// wanted are the unique keys that the verb takes, held those of them that
	// somebody's transaction was found to hold: their jobs are answered Busy.
	wanted  []LockKey
	held    map[string]bool
	ahead   *followed        // nil in a user's transaction
	of      *store.Operation // that the ids were listed for; nil for none
	details []string         // of what changed, by the place of the id
}

// archivedSubject is what an operator's verb needs to know of an archived row.
type archivedSubject struct {
	state job.State
	hash  []byte
	queue string
	level int16 // priority
}

// Page is one of an operation: what is written with the changes of its jobs.
type Page struct {
	Of *store.Operation
	// Lock locks the operation, and reports whether its page is still to be done.
	Lock func(context.Context, pg.Session) (bool, error)
	// Done writes what became of it, after the jobs.
	Done func(context.Context, pg.Session, []store.Change) error
}

// operate applies a verb to the ids, with the audit entries of what it changed.
// An id that is given twice is taken twice, one after the other.
func (r *Room) operate(ctx context.Context, ids []job.ID, op store.Operator, verb Verb) ([]store.Change, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	if len(ids) == 0 {
		return nil, nil
	}
	return r.operateOn(ctx, ids, op, verb, pg.UnlessUnknown, nil)
}

// Operate applies a verb to the ids.
func (r *Room) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return r.operate(ctx, ids, op, VerbOf(v))
}

// OperatePage applies a verb to the ids of a page. It may be repeated after a lost
// answer: the operation's own row says whether the page was done.
func (r *Room) OperatePage(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator, p *Page) ([]store.Change, error) {
	return r.operateOn(ctx, ids, op, VerbOf(v), pg.Always, p)
}

func (r *Room) operateOn(
	ctx context.Context, ids []job.ID, op store.Operator, verb Verb, may pg.Repeatable, page *Page,
) ([]store.Change, error) {
	var changes []store.Change
	var o *operation
	skip := false
	held := map[string]bool{}
	var ahead followed
	err := r.pg.Retry(ctx, verb.Action, may, func(ctx context.Context, _ bool) error {
		err := r.transact(ctx, r.pg.Work, pg.UpkeepLimits, &ahead, func(t *pg.Transaction) (err error) {
			o = &operation{room: r, session: t, skip: skip, held: held, ahead: &ahead}
			if page == nil {
				changes, err = o.recorded(ctx, ids, op, verb)
				return err
			}
			o.of, changes = page.Of, nil
			if open, err := page.Lock(ctx, t); err != nil || !open {
				return err
			}
			if changes, err = o.recorded(ctx, ids, op, verb); err != nil {
				return err
			}
			return page.Done(ctx, t, changes)
		})
		if pg.FaultOf(err).Blocked {
			skip = true
			for _, k := range r.allHeld(ctx, o.wanted) {
				held[k.Hash] = true
			}
		}
		return err
	})
	if err == nil || errors.Is(err, job.ErrOutcomeUnknown) && o != nil { // then it may have happened
		r.hints.Tell(o.told)
		if o.asked {
			r.hints.Notifier.Cancel()
		}
	}
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// OperateIn applies a verb to the ids in a user's transaction. A job, or a unique
// key, that somebody else's transaction holds is answered Busy: nobody waits for
// it (P8), and what was tried for it is undone. It says what claims are to be told
// when the transaction commits, and whether a running job was asked to stop.
func (r *Room) OperateIn(
	ctx context.Context, in pg.Session, ids []job.ID, op store.Operator, verb Verb,
) (changes []store.Change, told hints.Set, asked bool, err error) {
	if len(ids) == 0 {
		return nil, nil, false, nil
	}
	o := &operation{room: r, session: in, skip: true}
	err = pg.Whole(ctx, in, func() (err error) {
		changes, err = o.recorded(ctx, ids, op, verb)
		return err
	})
	switch {
	case err == nil:
		return changes, o.told, o.asked, nil
	case !pg.Sent(err).Blocked && !errors.Is(err, errRestless):
		return nil, nil, false, err
	case len(ids) == 1:
		return []store.Change{store.Busy}, nil, false, nil
	}
	changes = nil
	for i := range ids { // which of them it was is not known
		some, hints, ask, err := r.OperateIn(ctx, in, ids[i:i+1], op, verb)
		if err != nil {
			return nil, nil, false, err
		}
		changes, asked = append(changes, some...), asked || ask
		told.Join(hints)
	}
	return changes, told, asked, nil
}

// recorded runs the verb over the ids, and writes what it changed into the audit log.
func (o *operation) recorded(ctx context.Context, ids []job.ID, op store.Operator, verb Verb) ([]store.Change, error) {
	changes, err := o.inTurns(ctx, ids, verb)
	if err != nil {
		return nil, err
	}
	var targets, details []string
	for i, c := range changes {
		if c == store.Changed || c == store.Asked {
			targets, details = append(targets, ids[i].String()), append(details, o.details[i])
		}
	}
	return changes, o.room.settings.Record(ctx, o.session, op, verb.Action, targets, details)
}

// standing is what a job was before the verb, and where it stood; 0 where there is none.
func (o *operation) standing(id job.ID) (was job.State, at store.Standing) {
	if s := o.live[id]; s != nil {
		return s.State, store.Standing{Queue: s.Queue, Priority: s.Priority}
	}
	a := o.archived[id]
	return a.state, store.Standing{Queue: a.queue, Priority: int(a.level)}
}

// matching leaves out the jobs that are not what an operation looked for any more.
func (o *operation) matching(ids []job.ID) (list []job.ID, left map[job.ID]store.Change) {
	left = make(map[job.ID]store.Change, len(ids))
	if o.of == nil {
		return ids, left
	}
	for _, id := range ids {
		if was, at := o.standing(id); o.of.Matches(was, at.Queue) {
			list = append(list, id)
		} else {
			left[id] = store.Left(was)
		}
	}
	return list, left
}

// inTurns runs the verb over distinct ids, as often as the longest repetition needs.
func (o *operation) inTurns(ctx context.Context, ids []job.ID, verb Verb) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	o.details = make([]string, len(ids))
	left := make([]int, len(ids))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		var turn, later []int
		var list []job.ID
		seen := make(map[job.ID]bool, len(left))
		for _, i := range left {
			if seen[ids[i]] {
				later = append(later, i)
				continue
			}
			seen[ids[i]] = true
			turn, list = append(turn, i), append(list, ids[i])
		}
		if err := o.lock(ctx, list); err != nil {
			return nil, err
		}
		list, answers := o.matching(list)
		some, err := verb.run(o, ctx, list)
		if err != nil {
			return nil, err
		}
		for n, id := range list {
			answers[id] = some[n]
		}
		for _, i := range turn {
			if changes[i] = answers[ids[i]]; o.busy[ids[i]] {
				changes[i] = store.Busy
			}
			was, at := o.standing(ids[i])
			o.details[i] = verb.Detail(changes[i], was, at)
		}
		left = later
	}
	return changes, nil
}

// The jobs of a call, locked in the order of their ids, as everywhere.
//
//   - job_pkey and job_archive_pkey find the rows.
var (
	lockLive = "SELECT " + subjectColumns + `
FROM (` + GivenIDs + `) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
ORDER BY job.id
FOR UPDATE OF job`
	lockArchived = `SELECT a.id, a.state, a.unique_hash, a.queue, a.priority
FROM (` + GivenIDs + `) AS e
JOIN pawl.job_archive AS a ON a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id
ORDER BY a.id
FOR UPDATE OF a`
)

// lock finds and locks the jobs. One that ends while it waits for the live row is
// found in the archive after it. One that is brought back from there meanwhile is
// found in neither, and looked for again; only one snapshot of both tables can
// tell that it does not exist. One that exists and was passed over is held by somebody.
func (o *operation) lock(ctx context.Context, ids []job.ID) error {
	left := slices.SortedFunc(slices.Values(ids), func(a, b job.ID) int { return bytes.Compare(a[:], b[:]) })
	o.live, o.archived, o.busy = make(map[job.ID]*job.Subject, len(ids)), map[job.ID]archivedSubject{}, map[job.ID]bool{}
	for range rounds {
		if err := o.lockSome(ctx, left); err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(id job.ID) bool {
			_, live := o.live[id]
			_, ended := o.archived[id]
			return live || ended
		})
		if len(left) == 0 {
			return nil
		}
		exist := map[job.ID]bool{}
		err := o.session.Run(ctx, &pg.Statement{Text: existing, Args: []any{o.room.pg.Namespace, UUIDs(left)}, Each: func(scan pg.Scan) error {
			var id job.ID
			err := scan(&id)
			exist[id] = true
			return err
		}})
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(id job.ID) bool { return !exist[id] })
		if len(left) == 0 {
			return nil
		}
		if o.skip {
			for _, id := range left {
				o.busy[id] = true
			}
			return nil
		}
	}
	return pg.Fault{Err: errRestless, Passing: true}.AsError()
}

// existing finds the ids of jobs, live or archived.
//
//   - job_pkey and job_archive_pkey serve the looks.
const existing = `SELECT e.id
FROM (` + GivenIDs + `) AS e
WHERE EXISTS (SELECT FROM pawl.job AS j WHERE j.namespace = ANY (ARRAY[e.namespace]) AND j.id = e.id)
	OR EXISTS (SELECT FROM pawl.job_archive AS a WHERE a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id)`

func (o *operation) lockSome(ctx context.Context, ids []job.ID) error {
	args := []any{o.room.pg.Namespace, UUIDs(ids)}
	live, archived := lockLive, lockArchived
	if o.skip {
		live, archived = lockLive+" SKIP LOCKED", lockArchived+" SKIP LOCKED"
	}
	return o.session.Run(ctx,
		&pg.Statement{Text: live, Args: args, Each: func(scan pg.Scan) error {
			s, err := readSubject(scan)
			o.live[s.ID] = s
			return err
		}},
		&pg.Statement{Text: archived, Args: args, Each: func(scan pg.Scan) error {
			var id job.ID
			var a archivedSubject
			err := scan(&id, &a.state, &a.hash, &a.queue, &a.level)
			o.archived[id] = a
			return err
		}},
		// After the locks: what was written by whoever held them is not ahead of it.
		&pg.Statement{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&o.now) }})
}

func (o *operation) cancel(ctx context.Context, ids []job.ID) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	var moves []job.Move
	var asked [][16]byte
	for i, id := range ids {
		s := o.live[id]
		switch changes[i] = store.CancelAnswer(s, o.archived[id].state); changes[i] {
		case store.Asked:
			asked = append(asked, id)
		case store.Changed:
			m, err := job.MoveOf(s, job.Cancel(s, o.room.keep(s.Queue)), o.now)
			if err != nil {
				return nil, err
			}
			moves = append(moves, m)
		}
	}
	if _, err := o.room.apply(ctx, o.session, o.ahead, moves, o.now); err != nil {
		return nil, err
	}
	return changes, o.ask(ctx, asked)
}

// askJobs marks jobs, which are locked.
//
//   - job_pkey finds them.
const askJobs = `UPDATE pawl.job
SET cancel = true
FROM (` + GivenIDs + `) AS e
WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id AND NOT cancel`

// ask marks running jobs; their workers find them on job_cancel.
func (o *operation) ask(ctx context.Context, ids [][16]byte) error {
	if len(ids) == 0 {
		return nil
	}
	o.asked = true
	return o.session.Run(ctx, &pg.Statement{Text: askJobs, Args: []any{o.room.pg.Namespace, ids}})
}

// removeJobs deletes jobs with their logs and unique keys. Their tombstones
// stay, so that a resend under way does not bring them back.
//
//   - job_pkey and job_archive_pkey find the jobs, job_unique_pkey their keys and
//     job_log_pkey their lines.
const removeJobs = `WITH live AS (
	DELETE FROM pawl.job
	USING (` + GivenIDs + `) AS e
	WHERE job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
	RETURNING job.namespace, job.id, job.unique_hash
), ended AS (
	DELETE FROM pawl.job_archive AS a
	USING (` + GivenIDs + `) AS e
	WHERE a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id
	RETURNING a.namespace, a.id, a.unique_hash
), gone AS (
	SELECT * FROM live
	UNION ALL
	SELECT * FROM ended
), keys AS (
	DELETE FROM pawl.job_unique AS u
	USING gone
	WHERE gone.unique_hash IS NOT NULL
		AND u.namespace = ANY (ARRAY[gone.namespace])
		AND u.hash = gone.unique_hash
		AND u.job = gone.id
), ` + deleteLogsGone + `
INSERT INTO pawl.tombstone (namespace, id, expires)
SELECT DISTINCT namespace, id, {now} + ` + tombstoneLife + `
FROM gone
ON CONFLICT (namespace, id) DO UPDATE SET expires = excluded.expires`

func (o *operation) remove(ctx context.Context, ids []job.ID) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	var asked, gone [][16]byte
	for i, id := range ids {
		switch changes[i] = store.DeleteAnswer(o.live[id], o.archived[id].state); changes[i] {
		case store.Asked:
			asked = append(asked, id)
		case store.Changed:
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 {
		if err := o.session.Run(ctx, &pg.Statement{Text: removeJobs, Args: []any{o.room.pg.Namespace, gone}}); err != nil {
			return nil, err
		}
	}
	return changes, o.ask(ctx, asked)
}
