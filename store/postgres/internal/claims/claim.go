package claims

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Claim leases ready jobs to a worker. It never hands one job to two live
// leases: rows are locked, and those another claim has locked are skipped.
func (r *Room) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.ClaimReply{}, err
	}
	defer r.pg.Leave()
	repeat, known := r.workers.Asked.Ask(c.Worker, c.Seq)
	claimed := store.ClaimReply{}
	if repeat || !known {
		// A worker that this store does not know may have claimed through another.
		again, err := r.claimAgain(ctx, &c)
		if err != nil || repeat || len(again.Jobs) > 0 {
			return again, err
		}
	}
	k := &claiming{room: r, c: &c, offer: NewOffer(c.Offer), claimed: &claimed}
	defer k.leave()
	if err := k.run(ctx); err != nil && !errors.Is(err, errRecovered) {
		r.drop()
		return store.ClaimReply{}, err
	}
	return claimed, nil
}

// claiming is one claim under way.
type claiming struct {
	room    *Room
	c       *store.Claim
	offer   offer
	queues  []*claimQueue
	gated   []*gatedQueue
	claimed *store.ClaimReply
	next    time.Time
	// hinted: it is time to read hints; the first statements take that along.
	hinted bool
	// more: hints were read that lowered the frontiers.
	more bool
}

// claimQueue is one queue's part of a claim.
type claimQueue struct {
	queue *store.QueueClaim
	offer *offer
	view  View
	jobs  []store.LeasedJob
	// bytes is what the jobs come to, room what they may.
	bytes, room int64
	// over: nothing more is to be had from the lane now.
	over bool
	// unsure: it gave less than asked for, and nobody has looked why.
	unsure bool
	// careful: it gave nothing although something is ready, which may be for
	// others. It is looked at before it is locked.
	careful bool
	// gates: its jobs may have to go behind gates. It is always looked at first.
	gates bool
}

// name is the lane's, as its offer sees it.
func (l *claimQueue) name() frontName { return Lane(l.queue.Queue, l.offer.Print) }

func (l *claimQueue) wants() int {
	if l.bytes >= l.room {
		return 0
	}
	return l.queue.Limit - len(l.jobs)
}

func (l *claimQueue) starts() int { return max(0, l.queue.Start-len(l.jobs)) }

// add takes over what was leased.
func (l *claimQueue) add(leased *leaseReader) {
	l.bytes += leased.rows.Large
	if len(l.jobs) == 0 {
		l.jobs = leased.jobs
	} else {
		l.jobs = append(l.jobs, leased.jobs...)
	}
}

// offer is a worker's offer as statements take it.
type offer struct {
	job.Offer
	Print        string
	Kinds        []string
	Newest       []int32
	Capabilities []string
}

func NewOffer(o job.Offer) offer {
	made := offer{Offer: o, Print: fingerprint(o), Kinds: o.KindNames(), Capabilities: o.Capabilities}
	for _, k := range made.Kinds {
		made.Newest = append(made.Newest, int32(o.Kinds[k]))
	}
	if made.Capabilities == nil {
		made.Capabilities = []string{}
	}
	return made
}

// frontEvery is how many claims may take all that they ask for from behind gates, where
// nothing is known to wait in front of them, until one looks there.
const frontEvery = 8

// run takes what waits behind gates and what has none, by halves, so that neither
// starves, and what one leaves the other gets. Which of the two has more changes with
// every claim, for claims of one job.
func (k *claiming) run(ctx context.Context) error {
	if k.c.Gates == nil {
		if err := k.front(ctx, k.c.Queues); err != nil {
			return err
		}
		k.answer()
		return nil
	}
	turns := k.room.turnsOf(k.offer.Print)
	turns.Under(k.c.Gates.Print())
	if turns.Open(k.c.Opened...); len(k.c.Opened) > 0 && k.c.Gates.Overlap() {
		turns.OpenFull()
	}
	asked := slices.Clone(k.c.Queues)
	for i := range asked {
		q := &k.c.Queues[i]
		if q.Limit <= 0 || !k.c.Gates.Touches(q.Queue) {
			continue
		}
		g := &gatedQueue{queue: q, turns: turns, half: (q.Limit + int(k.c.Seq%2)) / 2, room: (k.c.PerQueue() + 1) / 2}
		if k.c.Seq%frontEvery != 0 && k.room.Frontiers.isQuiet(Lane(q.Queue, k.offer.Print)) {
			g.half, g.room = q.Limit, k.c.PerQueue()
		}
		k.gated = append(k.gated, g)
		if err := k.behind(ctx, g, g.half, 0); err != nil {
			return err
		}
		asked[i].Limit -= len(g.jobs)
		asked[i].Start = max(asked[i].Start-len(g.jobs), 0)
	}
	if err := k.front(ctx, asked); err != nil {
		return err
	}
	for _, g := range k.gated {
		took := 0
		g.room = k.c.PerQueue()
		for _, l := range k.queues {
			if l.queue.Queue == g.queue.Queue {
				took, g.bytes = len(l.jobs), g.bytes+l.bytes
			}
		}
		if rest := g.queue.Limit - took - len(g.jobs); rest > 0 {
			if err := k.behind(ctx, g, rest, took); err != nil {
				return err
			}
		}
	}
	k.answer()
	return nil
}

// front takes jobs that have no gate.
func (k *claiming) front(ctx context.Context, queues []store.QueueClaim) error {
	quiet := true
	for i := range queues {
		q := &queues[i]
		if q.Limit <= 0 {
			continue
		}
		l := &claimQueue{queue: q, offer: &k.offer, room: k.c.PerQueue(), gates: k.c.Gates.Touches(q.Queue)}
		for _, g := range k.gated {
			if g.queue.Queue == q.Queue {
				l.room = max(l.room-g.bytes, 0)
			}
		}
		l.view = k.room.Frontiers.View(l.name())
		k.queues = append(k.queues, l)
		quiet = quiet && l.view.quiet
	}
	if len(k.c.Begun) > 0 || len(k.queues) == 0 && k.claimed.Now.IsZero() {
		if err := k.attend(ctx); err != nil {
			return err
		}
	}
	hints, sweep := k.room.lookDue(k.queues)
	looked := len(k.queues) > 0 && (quiet || sweep || k.room.hints.Rows.First() || len(quietOf(k.queues)) >= skimFrom)
	if looked {
		ready, err := k.peek(ctx, k.queues, quiet)
		if err != nil {
			return err
		}
		if quiet && !ready {
			return nil
		}
	}
	k.hinted = hints && !looked
	for range 3 {
		if err := k.take(ctx); err != nil {
			return err
		}
		if k.more {
			k.more = false
			k.renew(k.queues)
			continue
		}
		// What was found is answered at once. A claim that found nothing looks at
		// hints and behind its frontiers before it says so, and one that found the
		// end of a backlog looks when the next job falls due.
		again := k.unsure()
		if k.took() == 0 && !looked && !k.claimed.More {
			again, looked = k.queues, true
		}
		if len(again) == 0 {
			break
		}
		ready, err := k.peek(ctx, again, false)
		if err != nil {
			return err
		}
		if !ready {
			for _, l := range again { // the next claim reads before it locks anything
				k.room.Frontiers.advance(l.view, l.view.At, lookedAt{quiet: true})
			}
			break
		}
	}
	return nil
}

// renew makes lanes look as they are now.
func (k *claiming) renew(lanes []*claimQueue) {
	for _, l := range lanes {
		k.room.Frontiers.leave(l.view)
		l.view = k.room.Frontiers.View(l.name())
		l.over = false
	}
}

// leave lets go of the lanes.
func (k *claiming) leave() {
	for _, l := range k.queues {
		k.room.Frontiers.leave(l.view)
	}
}

func (k *claiming) unsure() (list []*claimQueue) {
	for _, l := range k.queues {
		if l.unsure && l.wants() > 0 {
			list = append(list, l)
		}
	}
	return list
}

func (k *claiming) took() int {
	n := 0
	for _, l := range k.queues {
		n += len(l.jobs)
	}
	for _, g := range k.gated {
		n += len(g.jobs)
	}
	return n
}

// answer puts the lanes' jobs together, each in claim order.
func (k *claiming) answer() {
	for _, l := range k.queues {
		if l.queue.Aging <= 0 {
			slices.SortFunc(l.jobs, func(a, b store.LeasedJob) int {
				return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), bytes.Compare(a.ID[:], b.ID[:]))
			})
		}
		// A job is large: it is moved only where lanes are put together.
		if len(k.claimed.Jobs) == 0 {
			k.claimed.Jobs = l.jobs
		} else {
			k.claimed.Jobs = append(k.claimed.Jobs, l.jobs...)
		}
	}
	for _, g := range k.gated { // as their turns were
		k.claimed.Jobs = append(k.claimed.Jobs, g.jobs...)
	}
	if !k.next.IsZero() {
		k.claimed.Next = max(k.next.Sub(k.claimed.Now), time.Microsecond)
	}
}

// attendWorker tells whether a worker lives (worker_pkey), and the revision.
const attendWorker = "SELECT {now}, " + settings.Revision + `,
	EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL)`

// attend checks the worker and marks runs as begun, where no statement of the
// claim does it.
func (k *claiming) attend(ctx context.Context) error {
	return k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		alive := false
		steps := []*pg.Statement{{
			Text: attendWorker,
			Args: []any{k.room.pg.Namespace, k.c.Worker},
			Each: func(scan pg.Scan) error { return scan(&k.claimed.Now, &k.claimed.Revision, &alive) },
		}}
		if len(k.c.Begun) > 0 {
			steps = append(steps, k.room.workers.BegunStep(k.c.Worker, k.c.Begun))
		}
		if err := k.room.pg.Send(ctx, k.room.pg.Reserved, pg.UpkeepLimits, steps...); err != nil {
			return err
		}
		if !alive {
			return k.lost()
		}
		k.claimed.Now = k.claimed.Now.UTC()
		return nil
	})
}

func (k *claiming) lost() error {
	k.room.workers.Asked.Forget(k.c.Worker)
	return fmt.Errorf("worker %d: %w", k.c.Worker, job.ErrWorkerLost)
}

// take claims from every lane: straight from the front where that is known to
// work, else after a look.
func (k *claiming) take(ctx context.Context) error {
	var straight []*claimQueue
	for _, l := range k.queues {
		l.unsure = false
		if l.wants() > 0 && !l.over && !l.careful && !l.gates && !l.view.mixed && l.queue.Aging <= 0 {
			straight = append(straight, l)
		}
	}
	if k.hinted && len(straight) == 0 {
		k.hinted = false
		if _, err := k.peek(ctx, k.queues, false); err != nil {
			return err
		}
	}
	if err := k.straight(ctx, straight); err != nil {
		return err
	}
	for _, l := range k.queues {
		if l.wants() > 0 && !l.over && !l.unsure {
			if err := k.look(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimStraight takes the first ready jobs of a queue in one statement.
//
//   - job_ready serves the lateral part: one seek per priority, behind the
//     frontier. The outer LIMIT stops pulling, so that no more rows are locked
//     than asked for. Rows come by priority, due and id, because the frontiers do.
//   - worker_pkey finds the worker's row. It is locked FOR SHARE: nobody can
//     declare it lost between the claim's decision and its commit. That is done
//     after jobs were found, and only then: of a fleet that a hint wakes, those who
//     come too late write nothing. Jobs are locked before a worker only here, and
//     nobody who has locked a worker waits for a job that waits.
//   - What the offer does not take is locked for a moment and left; a lane where
//     that happened is looked at before it is locked from then on (look.go).
//   - What follows once the bytes are used up is left, too. The last column but
//     one counts the rows that fit, negative when some did not.
//   - Leased rows are updated by their place in the table: they are locked.
//   - Pauses (pause_pkey), the cool-down (cool_down_pkey) and the revision (namespace_pkey) are looked up once.
//
// job.Offer.Takes is the same predicate; a test compares the two.
var ClaimStraight = `WITH picked AS MATERIALIZED (
	SELECT p.place, p.rescues, p.takes,
		count(*) FILTER (WHERE p.takes) OVER (ROWS UNBOUNDED PRECEDING) <= $12 AS starts,
		coalesce(sum(p.size) FILTER (WHERE p.takes) OVER (ROWS UNBOUNDED PRECEDING), 0)
			- CASE WHEN p.takes THEN p.size ELSE 0 END < $13 AS fits
	FROM (
		SELECT j.place, j.rescues, j.takes, j.size
		FROM unnest($4::smallint[], $5::timestamptz[], $6::uuid[]) AS f (priority, due, id)
		CROSS JOIN LATERAL (
			SELECT ctid AS place, rescues, ` + jobs.RowBytes + ` AS size,
				version <= ($9::int[])[array_position($8::text[], kind)]
					AND (capabilities IS NULL OR capabilities <@ $10::text[]) AS takes
			FROM pawl.job
			WHERE namespace = $1
				AND queue = $3
				AND state = 2
				AND gate IS NULL
				AND priority = f.priority
				AND (due, id) > (f.due, f.id)
				AND due <= {now}
			ORDER BY due, id
			LIMIT $7
			FOR UPDATE SKIP LOCKED
		) AS j
		WHERE NOT ` + settings.QueuePaused("$3") + `
		LIMIT $7
	) AS p
), me AS MATERIALIZED (
	SELECT id
	FROM pawl.worker
	WHERE namespace = $1 AND id = $2 AND lost IS NULL AND EXISTS (SELECT FROM picked)
	FOR SHARE
)
UPDATE pawl.job
SET state = 3, run = run + 1, worker = $2, claim = $11, started = {now}
FROM me
CROSS JOIN picked
WHERE job.ctid = picked.place
	AND picked.takes
	AND picked.fits
	AND (picked.rescues = 0 OR picked.starts)
RETURNING ` + jobs.TakenColumns + `,
	(SELECT CASE WHEN bool_and(fits) THEN count(*) ELSE -count(*) FILTER (WHERE fits) END FROM picked),
	` + settings.Revision

// Arrays are the frontiers of a lane as arguments.
func (v *View) Arrays() (dues []time.Time, ids [][16]byte) {
	for _, p := range jobs.Priorities {
		dues, ids = append(dues, v.At[p].due), append(ids, v.At[p].ID)
	}
	return dues, ids
}

// straight claims from lanes in one transaction, a statement for each. Where the
// lane may come to its end, the look at what is left goes along; so do hints when
// it is time for them, which would otherwise be a round trip in front of the first
// job of an idle system. (A sweep does not: it may take long, and rows are locked.)
func (k *claiming) straight(ctx context.Context, lanes []*claimQueue) error {
	if len(lanes) == 0 {
		return nil
	}
	look, what := k.hinted, lookAhead
	if look {
		k.hinted, what = false, lookAtHints
	}
	for _, l := range lanes {
		look = look || !l.view.full && !l.view.next.known
	}
	var leases []leaseReader
	var p *peeking
	err := k.lease(ctx, func(ctx context.Context) error {
		leases = make([]leaseReader, len(lanes))
		steps := make([]*pg.Statement, len(lanes))
		for i, l := range lanes {
			dues, ids := l.view.Arrays()
			leases[i].lane, leases[i].worker = l.queue, k.c.Worker
			if l.view.full { // so it will be again
				leases[i].jobs = make([]store.LeasedJob, 0, l.wants())
			}
			args := []any{
				k.room.pg.Namespace, k.c.Worker, l.queue.Queue, jobs.Priorities, dues, ids, l.wants(),
				l.offer.Kinds, l.offer.Newest, l.offer.Capabilities, k.c.Seq, l.starts(), l.room - l.bytes,
			}
			steps[i] = &pg.Statement{Text: ClaimStraight, Raw: leases[i].read, Args: args}
		}
		if p = nil; look {
			p = k.newPeek(lanes, what, nil)
			steps = append(steps, p.steps()...)
		}
		return k.room.pg.Send(ctx, k.room.pg.Claim, pg.SharedLimits, steps...)
	})
	if err != nil {
		return err
	}
	if p != nil {
		if _, err := p.conclude(); err != nil {
			return err
		}
		k.more = p.passed
	}
	for i, l := range lanes {
		k.settle(l, &leases[i], p)
	}
	return nil
}

// leaseReader reads the jobs that a statement leased.
type leaseReader struct {
	lane     *store.QueueClaim
	worker   job.WorkerID
	jobs     []store.LeasedJob
	examined int64 // rows that fit
	cut      bool  // more would not
	revision int64 // of what is declared and set; 0 without a row
	rows     jobs.RowReader
}

func (r *leaseReader) read(cols [][]byte) error {
	r.jobs = append(r.jobs, store.LeasedJob{})
	l := &r.jobs[len(r.jobs)-1]
	if err := r.rows.Taken(cols, &l.Job); err != nil {
		return err
	}
	l.Queue, l.State, l.Worker = r.lane.Queue, job.Running, r.worker
	r.examined = r.rows.Int8()
	if r.examined < 0 {
		r.examined, r.cut = -r.examined, true
	}
	r.revision = r.rows.Int8()
	return r.rows.Err
}

// settle takes the answer of a lane over, after it was committed, and moves its
// frontier.
func (k *claiming) settle(l *claimQueue, leased *leaseReader, p *peeking) {
	wanted := l.wants()
	l.add(leased)
	k.claimed.Revision = max(k.claimed.Revision, leased.revision)
	if n := len(leased.jobs); n > 0 && k.claimed.Now.Before(leased.jobs[n-1].Started) {
		k.seen(leased.jobs[n-1].Started)
	}
	full := len(leased.jobs) == wanted || leased.cut
	k.claimed.More = k.claimed.More || leased.cut
	if int(leased.examined) > len(leased.jobs) {
		// Some rows were left: none of them may be passed unseen, so the look that
		// follows starts where this one did.
		k.room.Frontiers.mix(l.view, k.claimed.Now)
		return
	}
	switch {
	case p == nil && !full:
		// It was woken for what it found, or came to the end of a backlog. When it
		// found something it has seen all there is; only what falls due next may
		// have to be looked for.
		l.careful = len(leased.jobs) == 0
		l.unsure = l.careful || !l.view.next.known
		l.over = !l.unsure
		k.upcoming(l.view.next.at)
		k.room.Frontiers.advance(l.view, k.reached(l.view.At, leased.jobs, nil, false), lookedAt{quiet: l.over})
	case p == nil:
		k.room.Frontiers.advance(l.view, k.reached(l.view.At, leased.jobs, nil, false), lookedAt{full: true})
	case p.paused[l.queue.Queue]:
		l.over = true // nothing was looked at
		k.room.Frontiers.advance(l.view, l.view.At, lookedAt{quiet: true})
	default:
		left := p.left[l]
		l.over = len(left) == 0
		k.room.Frontiers.advance(l.view, k.reached(l.view.At, leased.jobs, left, true), lookedAt{quiet: l.over, full: full})
	}
}

// reached is how far a claim came: to its last job of each priority. Where the
// rest was looked at, a priority of which something is left is passed up to that
// job, and one of which nothing is left up to shortly before now.
func (k *claiming) reached(at positions, taken []store.LeasedJob, left map[int16]position, looked bool) positions {
	for i := range taken {
		p := position{taken[i].Due, taken[i].ID}
		if at[taken[i].Priority].before(p) {
			at[taken[i].Priority] = p
		}
	}
	highest := position{due: k.claimed.Now.Add(-k.room.commitLag())}
	quiet := position{due: k.claimed.Now.Add(-QuietLag)}
	for _, p := range jobs.Priorities {
		if first, some := left[p]; some {
			at[p] = first.previous()
		} else if looked && at[p].before(quiet) {
			at[p] = quiet
		}
		if highest.before(at[p]) {
			at[p] = highest
		}
	}
	return at
}

// QuietLag is how long a transaction of this package may take from its insert
// to its commit without anybody having to be told.
const QuietLag = time.Second

// commitLag is the same for frontiers behind jobs that were just claimed. Where
// the store listens, every commit is told.
func (r *Room) commitLag() time.Duration {
	if r.hints.Rows.Heard() {
		return 0
	}
	return 100 * time.Millisecond
}

// seen notes the store's time.
func (k *claiming) seen(now time.Time) {
	k.claimed.Now = now.UTC()
	k.room.heard(now)
}

// heard takes note of the store's time. When it was set back, all remembered
// positions are forgotten: what comes now lies before them.
func (r *Room) heard(now time.Time) (back bool) {
	r.pg.Clock.Note(now)
	if r.Frontiers.clock(now) {
		return false
	}
	r.eachTurns((*gateTurns).Drop)
	r.jobs.Purges.Forget()
	return true
}

func (k *claiming) upcoming(next time.Time) {
	if !next.IsZero() && (k.next.IsZero() || next.Before(k.next)) {
		k.next = next
	}
}

// cools notes that a queue cools down until a time; zero is not at all.
func (k *claiming) cools(queue string, until time.Time) {
	if !until.IsZero() {
		k.claimed.AddCooling(queue, until)
	}
}

// lease runs a transaction that leases. When the answer of a try was lost, what
// it took is found by the number of the claim, and is the answer.
func (k *claiming) lease(ctx context.Context, try func(context.Context) error) error {
	return k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, again bool) error {
		if again {
			before, err := k.room.claimedBefore(ctx, k.c)
			if err != nil {
				return err
			}
			if len(before.Jobs) > k.took() {
				*k.claimed = before
				k.room.drop()
				return errRecovered
			}
		}
		return try(ctx)
	})
}

// errRecovered ends a claim whose answer was lost and has been found.
var errRecovered = errors.New("pawl: the answer of the claim was found")
