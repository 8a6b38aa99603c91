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
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// finishCall is one caller's ends.
type finishCall struct {
	commit.Call
	worker   job.WorkerID
	ends     []job.End
	weight   int
	again    bool   // they may have been committed before, the answer was lost
	foreign  []bool // of the ends, when again; see finishing
	verdicts []job.Verdict
}

func (c *finishCall) Rows() int { return c.weight }

// Finish ends runs, each fenced by its worker and run number. Calls of many
// goroutines share a commit, and a large one takes several: what those came to
// before one failed is answered beside the error.
func (r *Room) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	var verdicts []job.Verdict
	for len(ends) > 0 {
		n, weight := portion(ends, WeightOfEnd)
		c := &finishCall{Call: commit.NewCall(), worker: w, ends: ends[:n], weight: weight}
		err := r.finisher.Do(ctx, c)
		if err != nil {
			if c.Taken() { // else nobody settles what it brings, either
				ends = ends[n:]
			}
			beginNothing(ends)
			return verdicts, err // those before are committed
		}
		verdicts, ends = append(verdicts, c.verdicts...), ends[n:]
	}
	return verdicts, nil
}

// beginNothing lets go of the slots that are kept for the follow-ups of ends which were
// not sent; an earlier try may have stored them.
func beginNothing(ends []job.End) {
	for i := range ends {
		if then := ends[i].Then; then.Some() {
			job.SettleHandOvers(then.Drafts, job.HandedOver{Unknown: ends[i].Again})
		}
	}
}

// commitEnds commits the ends of many callers together; where one of them fails,
// each goes on alone.
func (r *Room) commitEnds(ctx context.Context, calls []*finishCall) {
	f := newFinishing(r, calls)
	err := f.try(ctx)
	if pg.FaultOf(err).Blocked && !f.again {
		f.skip = true
		err = f.try(ctx)
	}
	if pg.FaultOf(err).Blocked && !f.again {
		err = f.apart(ctx, err)
	}
	switch {
	case err != nil && len(calls) > 1:
		f.handOver(calls)
		for _, c := range calls {
			r.blocked.alone(func() { r.commitEnds(ctx, []*finishCall{c}) })
		}
		return
	case pg.FaultOf(err).Blocked:
		r.blocked.alone(func() { f.answer(calls, f.await(ctx)) })
		return
	}
	f.answer(calls, err)
}

// handOver leaves the calls what is known of their ends, for when each goes on alone:
// one that did not own its run stays stale, also where another end of that run, of
// the same worker, was committed by the try whose answer was lost.
func (f *finishing) handOver(calls []*finishCall) {
	at := 0
	for _, c := range calls {
		if c.again = f.again; f.foreign != nil {
			c.foreign = f.foreign[at : at+len(c.ends)]
		}
		at += len(c.ends)
	}
}

func (f *finishing) answer(calls []*finishCall, err error) {
	if err == nil {
		for i := range f.accepted {
			f.accepted[i].Settle()
		}
	}
	rest := f.verdicts
	for _, c := range calls {
		for i := range c.ends {
			if then := c.ends[i].Then; then.Some() { // of those that an earlier try brought nobody knows
				job.SettleHandOvers(then.Drafts, job.HandedOver{Unknown: f.again || c.ends[i].Again})
			}
		}
		if err == nil {
			c.verdicts, rest = rest[:len(c.ends):len(c.ends)], rest[len(c.ends):]
		}
		c.Answer(err)
	}
}

// await tries until the rows are free. Who holds them may be our own try, whose
// answer was lost: only when it has ended is it known what became of it.
func (f *finishing) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.room.BusyLimit, fmt.Errorf("%w: a job is held by an open transaction", store.ErrBusy))
	defer cancel()
	for n := 1; pg.Pause(ctx, n); n++ {
		if err := f.try(ctx); !pg.FaultOf(err).Blocked {
			return err
		}
	}
	return pg.Failure("finish", context.Cause(ctx), f.again)
}

// try commits the ends together. A row that an open transaction holds, which is
// one of the handler's own, ends the try at once; the next one passes it over.
func (f *finishing) try(ctx context.Context) error {
	limit := f.room.pg.TryTimeout + loading(f.weight)
	err := f.room.pg.RetryWithin(ctx, limit, "finish", pg.Always, func(ctx context.Context, _ bool) error {
		err := f.commit(ctx, pg.SharedLimits)
		fault := pg.FaultOf(err)
		if fault.Unknown {
			f.again, f.skip = true, false // who holds a row now may be that try
		}
		if fault.Blocked || err != nil && f.deserted() {
			fault.Passing = false
			return fault.AsError()
		}
		return err
	})
	if err == nil || f.again { // then it may have happened
		f.room.hints.Tell(f.told)
	}
	return err
}

// apart is for a commit that is held up although it passes locked jobs by: one of the
// jobs that ends bring along (J33) wants a unique key which an open transaction has
// taken. Ends without such jobs are committed together, the others one by one. One
// that is held up is answered Locked, as are those that want a key of its jobs, and
// nobody waits for that transaction (P8). It answers with the error it was given when
// no end brings jobs along.
func (f *finishing) apart(ctx context.Context, blocked error) error {
	bring := map[leasedRun]bool{} // of two ends of one run the first counts, so they stay in order
	for i := range f.ends {
		if f.ends[i].Then.Some() {
			bring[f.of(i)] = true
		}
	}
	if len(bring) == 0 {
		return blocked
	}
	var plain, bringing []int
	for i := range f.ends {
		if bring[f.of(i)] {
			bringing = append(bringing, i)
		} else {
			plain = append(plain, i)
		}
	}
	f.verdicts = make([]job.Verdict, len(f.ends))
	if len(plain) > 0 {
		if err := f.tryPart(ctx, plain); err != nil {
			return err
		}
	}
	held := map[LockKey]bool{}
	for _, i := range bringing {
		var keys []LockKey
		if f.ends[i].Then.Some() {
			keys = lockKeys(f.ends[i].Then.Drafts, false)
		}
		f.verdicts[i] = job.Locked
		if slices.ContainsFunc(keys, func(k LockKey) bool { return held[k] }) {
			continue
		}
		err := f.tryPart(ctx, []int{i})
		if f.again {
			return err
		}
		for _, k := range keys { // whatever the error is, its end is not written, and will be sent again
			held[k] = held[k] || err != nil
		}
	}
	return nil
}

// tryPart commits some of the ends. After an error it has written none of them, unless
// again says that it may have.
func (f *finishing) tryPart(ctx context.Context, list []int) error {
	p := &finishing{room: f.room, calls: f.calls, skip: true, ahead: &followed{}}
	for _, i := range list {
		p.ends, p.workers = append(p.ends, f.ends[i]), append(p.workers, f.workers[i])
		p.weight += WeightOfEnd(&f.ends[i])
	}
	err := p.try(ctx)
	f.again = f.again || p.again && err != nil
	if err != nil {
		return err
	}
	for n, i := range list {
		f.verdicts[i] = p.verdicts[n]
	}
	f.accepted = append(f.accepted, p.accepted...)
	return nil
}

// finishing is the ends of one commit. Their order is that of the calls.
type finishing struct {
	room     *Room
	workers  []job.WorkerID
	ends     []job.End
	calls    []*finishCall
	weight   int
	verdicts []job.Verdict
	told     hints.Set
	accepted []Accepted // of the jobs that ends bring along, by this try
	// again: a try may have been committed, its answer lost. Then an end that
	// finds its run over may be looking at its own work.
	again bool
	// foreign: ends that did not own their run before any try was sent. They are
	// stale whatever became of the others.
	foreign []bool
	// skip: a job whose row is locked is passed over, and its end answered Locked:
	// nobody waits for a user's transaction (P8).
	skip bool
	// ahead: for which jobs followers lock first. Nil in a user's transaction.
	ahead *followed
	// careful: a copy of a job that should not be there met a plain end: all of them
	// are looked at.
	careful bool
}

func newFinishing(r *Room, calls []*finishCall) *finishing {
	f := &finishing{room: r, ends: calls[0].ends, calls: calls, ahead: &followed{}}
	n := 0
	for _, c := range calls {
		n += len(c.ends)
		f.weight += c.weight
		f.again = f.again || c.again
	}
	if len(calls) == 1 {
		f.foreign = calls[0].foreign
	} else {
		f.ends = make([]job.End, 0, n)
		for _, c := range calls {
			f.ends = append(f.ends, c.ends...)
		}
	}
	f.workers = make([]job.WorkerID, 0, n)
	for _, c := range calls {
		for range c.ends {
			f.workers = append(f.workers, c.worker)
		}
	}
	return f
}

// deserted reports whether every caller has given up. They will send their ends
// again, smaller perhaps, and those of others wait behind this commit.
func (f *finishing) deserted() bool {
	for _, c := range f.calls {
		if !c.Gone() {
			return false
		}
	}
	return true
}

// commit is one try.
func (f *finishing) commit(ctx context.Context, l *pg.Limits) error {
	f.accepted = nil
	f.verdicts = make([]job.Verdict, len(f.ends))
	ways := f.split()
	sent := len(ways.light)+len(ways.rest) == 0
	var err error
	if sent {
		err = f.room.pg.Send(ctx, f.room.pg.Finish, l, f.quickStep(ways.plain, endPlain))
		ways = endsByWay{rest: f.stale(ways.plain)} // some may have ties that their worker does not know of
	}
	if err == nil && len(ways.light)+len(ways.rest) > 0 {
		for _, i := range ways.rest {
			f.room.expect(f.ahead, f.ends[i].ID, f.ends[i].Ties)
		}
		if err = f.together(ctx, l, ways); sent && !f.again && pg.FaultOf(err).Blocked {
			f.skip = true // here, as those that were sent are committed and cannot be passed by again
			err = f.together(ctx, l, ways)
		}
		f.again = f.again || sent && err != nil // the others are committed
	}
	switch {
	case err == nil && slices.Contains(f.verdicts, job.Stale):
		return f.recover(ctx)
	case err == nil:
		return nil
	case pg.HasCode(err, uniqueViolation) && !f.careful:
		f.careful = true
		return f.commit(ctx, l)
	}
	return err
}

// together ends runs in one transaction.
func (f *finishing) together(ctx context.Context, l *pg.Limits, ways endsByWay) error {
	return f.room.transact(ctx, f.room.pg.Finish, l, f.ahead, func(t *pg.Transaction) error {
		err := f.run(ctx, t, ways)
		if err == nil && !f.again {
			f.foreign = make([]bool, len(f.ends))
			for i, v := range f.verdicts {
				f.foreign[i] = v == job.Stale
			}
		}
		return err
	})
}

// endsByWay parts the ends of a commit, so that one which has something to say, or
// whose job has something beside itself, costs that end and not those beside it.
// Plain and light ones are in the order of the ids of their jobs.
type endsByWay struct {
	plain []int // one statement ends them, which looks at nothing else
	light []int // another one sees to unique keys and logs, too
	rest  []int // they are locked and looked at
}

// lightTies are those that no decision depends on.
const lightTies = job.TieUnique | job.TieLogs

func (f *finishing) split() (w endsByWay) {
	order := f.byID()
	if f.skip || f.careful {
		slices.Sort(order)
		return endsByWay{rest: order}
	}
	same := func(n, m int) bool { return m >= 0 && m < len(order) && f.ends[order[n]].ID == f.ends[order[m]].ID }
	keep, known := time.Duration(0), false
	quick := func(n int, ties job.Ties) bool {
		e := &f.ends[order[n]]
		if !e.Ties.Only(ties) || !plainEnd(e) || same(n, n-1) || same(n, n+1) {
			return false
		}
		k := e.Keep.WithDefaults().Done
		if !known {
			keep, known = k, true
		}
		return k == keep
	}
	usual := 0
	for usual < len(order) && quick(usual, 0) { // as nearly always: all of them, and nothing is copied
		usual++
	}
	w.plain = order[:usual:usual]
	for n := usual; n < len(order); n++ {
		switch i := order[n]; {
		case quick(n, 0):
			w.plain = append(w.plain, i)
		case quick(n, lightTies):
			w.light = append(w.light, i)
		default:
			w.rest = append(w.rest, i)
		}
	}
	if w.rest != nil && keep < 0 {
		w.rest, w.light = append(w.rest, w.light...), nil // each statement may remove as many log lines as a transaction may (P10)
	}
	slices.Sort(w.rest) // of two ends of one run the first counts
	return w
}

// plainEnd reports whether an end is the usual one: done, with nothing to say.
func plainEnd(e *job.End) bool {
	return e.To == job.Done && !e.Burn && !e.Snooze && !e.Throttle && e.Failure == nil && e.Reason == "" &&
		e.Progress == nil && len(e.Logs) == 0 && e.Then == nil
}

// stale are those of a list that found no run of their own.
func (f *finishing) stale(list []int) (left []int) {
	for _, i := range list {
		if f.verdicts[i] == job.Stale {
			left = append(left, i)
		}
	}
	return left
}

// byID is the order of the ends by the ids of their jobs.
func (f *finishing) byID() []int {
	order := make([]int, len(f.ends))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return bytes.Compare(f.ends[i].ID[:], f.ends[j].ID[:]) })
	return order
}

// endRuns ends runs whose rows nobody has to look at: they are deleted under
// their fence and put into the archive by one statement.
//
//   - job_pkey finds the rows. The arrays are in the order of the ids and the plan
//     is a nested loop over them (settings), so rows are locked in that order, as
//     everywhere.
//   - What is not plain is left: its run is then looked at (stale).
var endRuns = `WITH gone AS (
	DELETE FROM pawl.job
	USING (
		SELECT $1::int AS namespace, 3::smallint AS running, e.*
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $6::bytea[]) AS e (id, run, worker, result)
		OFFSET 0
	) AS e
	WHERE job.namespace = ANY (ARRAY[e.namespace])
		AND job.id = e.id
		AND job.run = e.run
		AND job.worker = e.worker
		AND job.state = e.running
		AND job.ties %s
	RETURNING job.namespace, job.id, job.worker, ` + carriedFrom("job.", nil) + `,
		5::smallint AS final, NULL::text AS why, e.result AS result, $5::bigint AS keep
), `

// quickEnd is one way to end runs by endRuns, kept or not.
type quickEnd struct{ kept, buried string }

// How plain runs end, and those with light ties: 1 and 2 (lightTies).
var (
	endPlain = newQuickEnd("= 0", "", `
SELECT id
FROM gone`)
	endLight = newQuickEnd("< 4", ", "+deleteLogsGone, freeKeys)
)

func newQuickEnd(ties, buried, then string) quickEnd {
	text := strings.Replace(endRuns, "%s", ties, 1)
	return quickEnd{kept: text + keepGone + then, buried: text + tombstoneGone + buried + then}
}

// lightTies is written out above; this line does not compile when they part.
const _ = uint(lightTies-3) + uint(3-lightTies)

// quickStep ends runs by endRuns, in the order of their ids.
func (f *finishing) quickStep(order []int, by quickEnd) *pg.Statement {
	for _, i := range order {
		f.verdicts[i] = job.Stale
	}
	ids, runs, workers, results := make([][16]byte, len(order)), make([]int64, len(order)), make([]int64, len(order)), make([][]byte, len(order))
	for n, i := range order {
		e := &f.ends[i]
		ids[n], runs[n], workers[n], results[n] = e.ID, e.Run, int64(f.workers[i]), e.Result
	}
	keep := f.ends[order[0]].Keep.WithDefaults().Done
	text := by.kept
	if keep < 0 {
		text = by.buried
	}
	return &pg.Statement{Text: text, Args: []any{f.room.pg.Namespace, ids, runs, workers, keep.Microseconds(), results}, Each: func(scan pg.Scan) error {
		var id [16]byte
		if err := scan(&id); err != nil {
			return err
		}
		n, found := slices.BinarySearchFunc(ids, id, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
		if !found {
			return fmt.Errorf("job %x was not to be ended", id)
		}
		f.verdicts[order[n]] = job.Applied
		return nil
	}}
}

// A run that its worker still owns: the fence (P2).
//
//   - job_pkey finds the rows, and they are locked in the order of the ids.
const (
	fromOwned = `
FROM (
	SELECT $1::int AS namespace, 3::smallint AS running, e.*
	FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS e (id, run, worker)
	OFFSET 0
) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
WHERE job.run = e.run
	AND job.worker = e.worker
	AND job.state = e.running
ORDER BY job.id`
	ownedRuns = "SELECT job.id, job.run, job.worker" + fromOwned
)

// heldRuns locks the owned runs; freeRuns passes those by whose rows are locked.
var (
	heldRuns = "SELECT " + subjectColumns + ", {now}" + fromOwned + "\nFOR UPDATE OF job"
	freeRuns = heldRuns + " SKIP LOCKED"
)

// leasedRun is what a fence compares.
type leasedRun struct {
	id     job.ID
	run    int64
	worker job.WorkerID
}

// run ends runs in a transaction: the plain and light ones at once, those of every
// kind by lock and look, decide, write. Ends of one run are taken one after the other.
func (f *finishing) run(ctx context.Context, session pg.Session, w endsByWay) error {
	var quick []*pg.Statement
	if len(w.plain) > 0 {
		quick = append(quick, f.quickStep(w.plain, endPlain))
	}
	if len(w.light) > 0 {
		quick = append(quick, f.quickStep(w.light, endLight))
	}
	if len(quick) > 0 {
		if err := session.Run(ctx, quick...); err != nil {
			return err
		}
	}
	left := slices.Concat(w.rest, f.stale(w.plain), f.stale(w.light)) // of which some may have other ties
	slices.Sort(left)
	for len(left) > 0 {
		var now, later []int
		seen := map[leasedRun]bool{}
		for _, i := range left {
			if run := f.of(i); seen[run] {
				later = append(later, i)
			} else {
				seen[run] = true
				now = append(now, i)
			}
		}
		if err := f.runOnce(ctx, session, now); err != nil {
			return err
		}
		left = later
	}
	return nil
}

// of is the run that an end is of.
func (f *finishing) of(i int) leasedRun { return leasedRun{f.ends[i].ID, f.ends[i].Run, f.workers[i]} }

func (f *finishing) runOnce(ctx context.Context, session pg.Session, list []int) error {
	var ids [][16]byte
	var runs, workers []int64
	for _, i := range list {
		ids, runs, workers = append(ids, f.ends[i].ID), append(runs, f.ends[i].Run), append(workers, int64(f.workers[i]))
	}
	held := make(map[leasedRun]*job.Subject, len(list))
	var now pgtype.Timestamptz
	lock := &pg.Statement{Text: heldRuns, Args: []any{f.room.pg.Namespace, ids, runs, workers}, Each: func(scan pg.Scan) error {
		s, err := readSubject(scan, &now)
		held[leasedRun{s.ID, s.Run, s.Worker}] = s
		return err
	}}
	steps, owned := []*pg.Statement{lock}, map[leasedRun]bool{}
	if f.skip {
		lock.Text = freeRuns
		steps = append(steps, &pg.Statement{Text: ownedRuns, Args: lock.Args, Each: func(scan pg.Scan) error {
			var r leasedRun
			err := scan(&r.id, &r.run, &r.worker)
			owned[r] = true
			return err
		}})
	}
	if err := session.Run(ctx, steps...); err != nil {
		return err
	}
	var moves []job.Move
	var then []job.Draft
	for _, i := range list {
		s, ok := held[f.of(i)]
		if !ok {
			if f.verdicts[i] = job.Stale; owned[f.of(i)] {
				f.verdicts[i] = job.Locked
			}
			continue
		}
		m, err := job.MoveOf(s, job.Settle(f.ends[i], s.CancelAsked), now.Time.UTC())
		if err != nil {
			return err
		}
		moves = append(moves, m)
		f.verdicts[i] = job.Applied
		if m.Then.Some() {
			then = append(then, m.Then.Drafts...)
		}
	}
	told, err := f.room.apply(ctx, session, f.ahead, moves, now.Time)
	f.told.Join(told)
	if err != nil || len(then) == 0 {
		return err
	}
	if f.ahead == nil {
		_, told, err = f.room.EnqueueIn(ctx, session, then)
		f.told.Join(told)
		return err
	}
	accepted, err := f.room.Accept(ctx, session, then)
	f.told.Join(accepted.Told)
	f.accepted = append(f.accepted, accepted)
	return err
}

// endedAs finds the runs that their own worker has ended. While it lives nobody
// else lets go of its runs, so it did, if the run is found in the archive or
// among the tombstones, or, where the job goes on, has been released: it waits or
// is suspended with this run, or has a later one.
//
//   - worker_pkey, job_archive_pkey, tombstone_pkey and job_pkey serve the looks.
const endedAs = `SELECT e.n
FROM (
	SELECT $1::int AS namespace, e.*
	FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::boolean[]) WITH ORDINALITY AS e (id, run, worker, final, n)
	OFFSET 0
) AS e
WHERE EXISTS (
	SELECT FROM pawl.worker AS w
	WHERE w.namespace = e.namespace AND w.id = e.worker AND w.lost IS NULL
) AND (
	EXISTS (
		SELECT FROM pawl.job_archive AS a
		WHERE a.namespace = e.namespace AND a.id = e.id AND a.run = e.run AND a.worker = e.worker
	)
	OR EXISTS (
		SELECT FROM pawl.tombstone AS t
		WHERE t.namespace = e.namespace AND t.id = e.id AND t.run = e.run AND t.worker = e.worker
	)
	OR NOT e.final AND EXISTS (
		SELECT FROM pawl.job AS j
		WHERE j.namespace = e.namespace AND j.id = e.id AND (j.run > e.run OR j.run = e.run AND j.state IN (2, 4))
	)
	OR NOT e.final AND EXISTS (
		SELECT FROM pawl.job_archive AS a
		WHERE a.namespace = e.namespace AND a.id = e.id AND a.run > e.run
	)
)`

// recover finds the stale ends whose run was ended by an earlier try of their own
// worker, the answer of which was lost: one of this call, which is this call's
// work, or one of an earlier call.
func (f *finishing) recover(ctx context.Context) error {
	var stale []int
	var ids [][16]byte
	var runs, workers []int64
	var final []bool
	for i, v := range f.verdicts {
		e := &f.ends[i]
		if v == job.Stale && (e.Again || f.mayBeOwn(i)) {
			stale = append(stale, i)
			ids, runs, workers, final = append(ids, e.ID), append(runs, e.Run), append(workers, int64(f.workers[i])), append(final, e.To.Final())
		}
	}
	if len(stale) == 0 {
		return nil
	}
	return f.room.pg.Send(ctx, f.room.pg.Finish, pg.UpkeepLimits, &pg.Statement{Text: endedAs, Args: []any{f.room.pg.Namespace, ids, runs, workers, final}, Each: func(scan pg.Scan) error {
		var n int
		err := scan(&n)
		i := stale[n-1]
		if f.verdicts[i] = job.Applied; f.ends[i].Again {
			f.verdicts[i] = job.Already
		}
		return err
	}})
}

// mayBeOwn reports whether a try of this call, the answer of which was lost, may have
// ended the run.
func (f *finishing) mayBeOwn(i int) bool { return f.again && (f.foreign == nil || !f.foreign[i]) }

// FinishIn ends runs in a user's transaction, and says what claims are to be told
// when it commits.
//
// It has no careful try: an archived copy of a live job, which should not be there
// (P6, Check finds it), fails the user's transaction, and nothing inside of that can
// be tried again. Looking for copies first would cost every such transaction a round
// trip. The job is not lost: its run fails, and the end of its last attempt, which
// is the store's own commit, drops the copy.
func (r *Room) FinishIn(ctx context.Context, in pg.Session, worker job.WorkerID, ends []job.End) ([]job.Verdict, hints.Set, error) {
	f := &finishing{room: r, ends: ends, verdicts: make([]job.Verdict, len(ends))}
	for range ends {
		f.workers = append(f.workers, worker)
	}
	if len(ends) == 0 {
		return f.verdicts, nil, nil
	}
	err := f.run(ctx, in, f.split())
	return f.verdicts, f.told, err
}
