package claims

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/turns"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// A claim lets jobs through gates in transactions of its own, each for some gates:
//
//  1. Lock: each gate is an advisory lock, which is tried and not waited for. So of two
//     claims that count what runs from a gate, the second counts what the first took: a
//     lock goes after its commit is to be seen. There is no row to keep for a gate, and
//     a million keys leave nothing behind.
//  2. Count and look, in later statements, whose snapshots are later than the locks.
//  3. Choose, here: by turns, bounds, order and tokens.
//  4. Lease what was chosen, and remember what has to be remembered of gates.

const (
	visits = 128 // gates of one transaction: the server has room for so many locks of each claim
	passes = 16  // transactions of one claim
	// strangers is how many jobs are taken out of a gate at once that belong elsewhere
	// by the limits that hold.
	strangers = 100
	// drainedFor is how long a gate is passed from which jobs run and behind which none
	// waits.
	drainedFor = time.Second
	// contendedFor is how long a claim waits that found gates locked by another.
	contendedFor = 5 * time.Millisecond
	// widest is how many jobs of a priority a pass reads at most beyond those that it may
	// take: more each time that a gate showed only such as are for others.
	widest = 4096
	// sweepWide is how wide a look is that begins in front where jobs have several bounds:
	// it reads 64 jobs of a priority. What another bound refuses is not passed, and would
	// hide the others of its gate from a look that reads one.
	sweepWide = 3
	// sweepPause is how much longer than a pass that began in front the time is until it
	// does again: what a held snapshot keeps may be much.
	sweepPause = 50
	// longestSweepPause bounds that.
	longestSweepPause = 30 * time.Second
	// gateLag is how far behind now the frontier of a gate stays: a commit that comes
	// later than that is found by the sweep.
	gateLag = 250 * time.Millisecond
)

// gateFront is where the look at a gate goes on.
type gateFront struct {
	at    positions
	empty uint16        // priorities of which nothing waits, as far as is known
	swept time.Time     // when it last began in front; zero: never
	pause time.Duration // until it does again
	wide  uint8         // how often in a row it met only jobs that are for others; a look reads four times as many each time
	runs  runsSince
}

// lower takes a hint over.
func (f *gateFront) lower(priority int, to position) {
	if priority < job.MinPriority || priority > job.MaxPriority {
		f.swept = time.Time{}
		return
	}
	f.empty &^= 1 << priority
	if to.before(f.at[priority]) {
		f.at[priority] = to
	}
}

// gateTurns are the turns of gates, for each offer: a look passes what its offer never
// takes.
type gateTurns = turns.Turns[gateFront]

// turnsOf are those of an offer.
func (r *Room) turnsOf(print string) *gateTurns {
	r.gates.Lock()
	defer r.gates.Unlock()
	t := r.gates.turns[print]
	if t == nil {
		if r.gates.turns == nil || len(r.gates.turns) >= maxOffers {
			r.gates.turns = map[string]*gateTurns{}
		}
		t = &gateTurns{}
		r.gates.turns[print] = t
	}
	return t
}

// maxOffers bounds the memory of a process whose offer changes all the time.
const maxOffers = 64

// eachTurns is for all of them.
func (r *Room) eachTurns(f func(*gateTurns)) {
	r.gates.Lock()
	if len(r.gates.turns) == 0 {
		r.gates.Unlock()
		return
	}
	all := make([]*gateTurns, 0, len(r.gates.turns))
	for _, t := range r.gates.turns {
		all = append(all, t)
	}
	r.gates.Unlock()
	for _, t := range all {
		f(t)
	}
}

// hintGates takes over that something became ready in a queue.
func (r *Room) hintGates(queue string, priority int, due time.Time) {
	r.eachTurns(func(t *gateTurns) {
		t.Change(queue, func(f *gateFront) { f.lower(priority, position{due: due}) })
		t.Stale(queue)
	})
}

// note takes over that a job waits behind a gate.
func (r *Room) note(d *job.Draft, due time.Time) {
	r.eachTurns(func(t *gateTurns) {
		t.Note(d.Queue, d.Gate, d.Kind, d.Key, func(f *gateFront) { f.lower(d.Priority, position{due: due}) })
	})
}

// gatedQueue is the part of a queue that waits behind gates.
type gatedQueue struct {
	queue *store.QueueClaim
	turns *gateTurns
	jobs  []store.LeasedJob
	bytes int64 // of them, and of those in front
	room  int64
	half  int
}

// behind takes up to limit jobs of a queue from behind gates.
func (k *claiming) behind(ctx context.Context, g *gatedQueue, limit, before int) error {
	room := g.room
	now := k.room.pg.Clock.Estimate()
	for n := 0; limit > 0 && g.bytes < room; n++ {
		if n == passes {
			k.claimed.More = true
			break
		}
		if after, due := g.turns.Scan(g.queue.Queue, now); due {
			if err := k.scan(ctx, g, after, now); err != nil {
				g.turns.Stale(g.queue.Queue)
				return err
			}
		}
		list, left, more := g.turns.Next(g.queue.Queue, visits, now)
		if len(list) == 0 {
			break
		}
		p := &gatePass{
			k: k, g: g, list: list, left: left, more: more,
			limit: limit, start: max(g.queue.Start-before-len(g.jobs), 0), room: room - g.bytes,
		}
		if err := k.lease(ctx, p.run); err != nil {
			return err
		}
		p.settle()
		if p.count != nil && !p.locked { // another claim counts
			now = p.now
			k.seen(now)
			k.upcoming(now.Add(contendedFor))
			return nil
		}
		if now = p.now; p.paused {
			k.seen(now)
			k.cools(g.queue.Queue, p.cools)
			return nil
		}
		n, err := k.room.move(ctx, &p.moves)
		if err != nil {
			return err
		}
		g.jobs = append(g.jobs, p.leased...)
		g.bytes += p.bytes
		limit -= len(p.leased)
		if len(p.leased)+n == 0 && !more && !p.further {
			break
		}
	}
	if g.bytes >= k.c.PerQueue() {
		k.claimed.More = true
	}
	if wait := g.turns.Wait(g.queue.Queue, now); wait > 0 && limit > 0 {
		k.upcoming(now.Add(wait))
	}
	return nil
}

// scanGates finds gates of a queue that have waiting jobs, with the first job of each.
//
//   - job_gated: a seek for each gate.
const scanGates = `WITH RECURSIVE g AS (
	(
		SELECT gate, kind, key
		FROM pawl.job
		WHERE namespace = $1 AND queue = $2 AND state = 2 AND gate IS NOT NULL AND gate > $3
		ORDER BY gate
		LIMIT 1
	)
	UNION ALL
	SELECT n.gate, n.kind, n.key
	FROM g
	CROSS JOIN LATERAL (
		SELECT gate, kind, key
		FROM pawl.job
		WHERE namespace = $1 AND queue = $2 AND state = 2 AND gate IS NOT NULL AND gate > g.gate
		ORDER BY gate
		LIMIT 1
	) AS n
)
SELECT gate, kind, coalesce(key, '')
FROM g
LIMIT $4`

// scan finds the gates of a queue that have waiting jobs.
func (k *claiming) scan(ctx context.Context, g *gatedQueue, after int64, now time.Time) error {
	var list []turns.Found
	took := pg.Stopwatch()
	err := k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		list = nil
		return k.room.pg.Send(ctx, k.room.pg.Claim, pg.SharedLimits, &pg.Statement{
			Text: scanGates, Args: []any{k.room.pg.Namespace, g.queue.Queue, after, turns.Window},
			Each: func(scan pg.Scan) error {
				var f turns.Found
				err := scan(&f.Number, &f.Kind, &f.Key)
				list = append(list, f)
				return err
			},
		})
	})
	if err != nil {
		return err
	}
	g.turns.Found(g.queue.Queue, after, list, len(list) < turns.Window, now, took())
	return nil
}

// gatePass lets jobs through some gates, in one transaction.
type gatePass struct {
	k     *claiming
	g     *gatedQueue
	list  []turns.Gate[gateFront]
	left  int
	more  bool // gates, behind those of the list
	limit int
	start int
	room  int64 // bytes

	now    time.Time
	paused bool
	cools  time.Time // until then
	locked bool      // all of them together, where bounds overlap
	visits []gateVisit
	at     int64
	rest   int
	leased []store.LeasedJob
	bytes  int64
	moves  moved          // that wait where they do not belong
	count  *job.GateCount // where bounds overlap
	// further: behind jobs that are for others there may be some for this worker.
	further bool
}

// gateVisit is one gate of a pass.
type gateVisit struct {
	turns.Visit[gateFront]
	bound   job.GateBound
	known   bool // by the limits that hold
	given   int  // by its turn
	locked  bool
	running int
	first   time.Time // of those, when it came through
	found   []gateJob // in the order of priority, due and id
	asked   int       // of each priority
	from    positions // where the look began
	sweeps  bool      // in front
	sought  uint16    // priorities
	state   gateState
	chosen  []gateJob
}

// gateJob is a job behind a gate as a look sees it.
type gateJob struct {
	candidate
	kind, key string
	ahead     bool // on credit
}

func (v *gateVisit) full(now time.Time) { v.Full, v.Closed = true, now.Add(v.Of.Full()) }

// What a pass reads, in this order.
//
//   - lockGates: no table.
//   - worker's queue: pause_pkey, cool_down_pkey and namespace_pkey.
//   - waitingAtGates: job_gated, a seek for each gate and priority.
const lockGates = `SELECT g.n
FROM unnest($1::bigint[]) WITH ORDINALITY AS g (number, n)
WHERE pg_try_advisory_xact_lock(g.number)`

var (
	lookAtQueue = `SELECT {now}, ` + settings.Revision + `, ` + settings.QueuePaused("$2") + `, ` + settings.CoolsUntil("$2")

	waitingAtGates = `SELECT f.n, f.priority, j.due, j.id, j.kind, j.version, j.capabilities, j.rescues > 0, j.bytes,
	coalesce(j.key, '')
FROM (
	SELECT f.*
	FROM unnest($3::int[], $4::bigint[], $5::smallint[], $6::timestamptz[], $7::uuid[], $8::int[])
		AS f (n, gate, priority, due, id, most)
	OFFSET 0
) AS f
CROSS JOIN LATERAL (
	SELECT due, id, kind, version, capabilities, rescues, key, ` + jobs.RowBytes + ` AS bytes
	FROM pawl.job
	WHERE namespace = $1
		AND queue = $2
		AND state = 2
		AND gate IS NOT NULL
		AND gate = f.gate
		AND priority = f.priority
		AND (due, id) > (f.due, f.id)
	ORDER BY due, id
	LIMIT f.most
) AS j`
)

// gateLock is the number of a gate's lock: schemas and namespaces of one database have
// numbers of their own. A collision only makes one wait.
func (r *Room) gateLock(gate int64) int64 {
	h := fnv.New64a()
	h.Write([]byte(r.pg.SQL("pawl.gate")))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(r.pg.Namespace)))
	return gate ^ int64(h.Sum64())
}

// run is one try.
func (p *gatePass) run(ctx context.Context) error {
	p.begin()
	room := p.k.room
	return room.pg.Transact(ctx, room.pg.Claim, pg.SharedLimits, func(t *pg.Transaction) error {
		took := pg.Stopwatch()
		if err := t.Run(ctx, p.looks()...); err != nil {
			return err
		}
		p.countedAt(pg.Instant(), took())
		if p.paused || p.count != nil && !p.locked {
			return nil
		}
		p.choose()
		steps, alive := p.writes()
		if steps == nil {
			return nil
		}
		if err := t.Commit(ctx, steps...); err != nil {
			return err
		}
		if !*alive {
			return p.k.lost()
		}
		return nil
	})
}

// begin forgets what a try before has found, and deals the turns.
func (p *gatePass) begin() {
	p.visits = make([]gateVisit, len(p.list))
	p.leased, p.bytes, p.paused, p.locked, p.further, p.count, p.moves = nil, 0, false, false, false, nil, moved{}
	deal := make([]job.Turn, len(p.list))
	round, long := 0, turns.Long(p.limit, visits, p.more)
	for i := range p.list {
		v := &p.visits[i]
		v.Of = &p.list[i]
		v.Data = v.Of.Data
		v.bound, v.known = p.k.c.Gates.Bound(p.g.queue.Queue, v.Of.Kind, v.Of.Key)
		v.known = v.known && v.bound.Gate == v.Of.Number
		deal[i] = job.Turn{Weight: long * max(v.bound.Weight, 1)}
		if !v.known {
			v.bound = job.GateBound{}
			deal[i] = job.Turn{Weight: strangers, Room: strangers}
		} else {
			if deal[i].Room = math.MaxInt32; v.bound.Concurrent > 0 {
				deal[i].Room = v.bound.Concurrent
			}
			if v.Weight = max(v.bound.Weight, 1); !p.more {
				deal[i].Credit = int(v.Of.Credit * float64(v.Weight))
			}
		}
		round += min(deal[i].Weight, deal[i].Room)
	}
	limit := p.limit
	if p.more { // there may be others, whose turn it is then
		limit = min(limit, round)
	}
	ahead, turned := job.DealAhead(deal, limit)
	given, next, rest := job.Deal(deal, p.left, turned)
	p.at, p.rest = p.list[next].Number, rest
	if p.more && limit == round {
		p.at, p.rest = p.list[len(p.list)-1].Number+1, 0
	}
	for i := range p.visits {
		p.visits[i].given, p.visits[i].Ahead = given[i]+ahead[i], ahead[i]
	}
	if p.k.c.Gates.Overlap() {
		p.count = &job.GateCount{Rules: p.k.c.Gates}
	}
}

// looks are the statements that find out what each gate lets through.
func (p *gatePass) looks() []*pg.Statement {
	room := p.k.room
	queue := p.g.queue.Queue
	var locks, gates []int64
	running, now := &runningArrays{}, pg.Instant()
	var at []int // visits
	f := &frontArrays{}
	keeps := false
	for i := range p.visits {
		v := &p.visits[i]
		if v.given == 0 {
			continue
		}
		at = append(at, i)
		locks, gates = append(locks, room.gateLock(v.Of.Number)), append(gates, v.Of.Number)
		p.sweep(v)
		v.asked = max(v.given, min(1<<min(2*v.Data.wide, 12), widest/len(p.visits)))
		running.add(v, now)
		v.from = v.Data.at
		for _, priority := range jobs.Priorities {
			if v.Data.empty&(1<<priority) == 0 {
				v.sought |= 1 << priority
				f.add(i, v.Of.Number, priority, v.Data.at[priority], v.asked)
			}
		}
		keeps = keeps || v.bound.Keeps()
	}
	steps := []*pg.Statement{}
	if p.count != nil { // one after the other
		steps = append(steps, &pg.Statement{Text: lockGates, Args: []any{[]int64{room.gateLock(0)}}, Each: func(scan pg.Scan) error {
			var n int
			p.locked = true
			return scan(&n)
		}})
	}
	steps = append(steps,
		&pg.Statement{Text: lockGates, Args: []any{locks}, Each: func(scan pg.Scan) error {
			var n int
			err := scan(&n)
			p.visits[at[n-1]].locked = true
			return err
		}},
		&pg.Statement{Text: lookAtQueue, Args: []any{room.pg.Namespace, queue}, Each: func(scan pg.Scan) error {
			var revision int64
			var cools pgtype.Timestamptz
			err := scan(&p.now, &revision, &p.paused, &cools)
			p.cools = cools.Time
			p.k.claimed.Revision = max(p.k.claimed.Revision, revision)
			return err
		}},
		p.countRunning(running, at),
		&pg.Statement{Text: waitingAtGates, Args: append([]any{room.pg.Namespace, queue}, f.args()...), Each: p.readWaiting})
	if keeps {
		steps = append(steps, p.readStates(gates, at))
	}
	if p.count != nil {
		steps = append(steps, p.countByKind())
	}
	return steps
}

// sweep lets the look at a gate begin in front now and then: for what was committed
// late, or given back by who held it.
func (p *gatePass) sweep(v *gateVisit) {
	now := p.k.room.pg.Clock.Estimate()
	if since := now.Sub(v.Data.swept); !v.Data.swept.IsZero() && since >= 0 && since < max(SweepEvery, min(v.Data.pause, longestSweepPause)) {
		return
	}
	v.sweeps = true
	v.Data = gateFront{swept: now, wide: v.Data.wide, pause: v.Data.pause}
	if p.count != nil {
		v.Data.wide = max(v.Data.wide, sweepWide)
	}
	for i := range v.Data.at {
		v.Data.at[i] = Start
	}
}

// frontArrays are frontiers of gates as arguments.
type frontArrays struct {
	visits, most []int32
	gates        []int64
	priorities   []int16
	dues         []time.Time
	ids          [][16]byte
}

func (f *frontArrays) add(visit int, gate int64, priority int16, at position, most int) {
	f.visits, f.gates, f.priorities = append(f.visits, int32(visit)), append(f.gates, gate), append(f.priorities, priority)
	f.dues, f.ids, f.most = append(f.dues, at.due), append(f.ids, at.ID), append(f.most, int32(most))
}

func (f *frontArrays) args() []any {
	return []any{f.visits, f.gates, f.priorities, f.dues, f.ids, f.most}
}

func (p *gatePass) readWaiting(scan pg.Scan) error {
	var n, version int
	var priority int16
	var due pgtype.Timestamptz
	var id job.ID
	var needs []pgtype.Text
	var rescued pgtype.Bool
	var bytes int64
	c := gateJob{}
	if err := scan(&n, &priority, &due, &id, &c.kind, &version, &needs, &rescued, &bytes, &c.key); err != nil {
		return err
	}
	c.candidate = candidate{
		position: position{dueOf(due), id}, priority: int(priority), rescued: rescued.Bool, bytes: bytes,
		takes: p.k.offer.takes(c.kind, version, needs),
	}
	p.visits[n].found = append(p.visits[n].found, c)
	return nil
}

// dueOf reads when a job falls due. One that never does comes last.
func dueOf(due pgtype.Timestamptz) time.Time {
	if due.InfinityModifier == pgtype.Infinity {
		return time.Unix(math.MaxInt32*1000, 0)
	}
	return due.Time
}

// settle takes a pass over that was committed. Jobs come in the order of their ids, and
// are answered in that of turns.Answer.
func (p *gatePass) settle() {
	taken := make([]turns.Taken[gateJob], len(p.visits))
	for i := range p.visits {
		v := &p.visits[i]
		v.Took = len(v.chosen)
		taken[i] = turns.Taken[gateJob]{Jobs: v.chosen, Ahead: v.Ahead}
	}
	order, ahead := map[job.ID]int{}, map[job.ID]bool{}
	for i, c := range turns.Answer(taken, func(c *gateJob) bool { return c.rescued }, func(c *gateJob) { c.ahead = true }) {
		order[c.ID], ahead[c.ID] = i, c.ahead
	}
	for i := range p.leased {
		p.leased[i].Ahead = ahead[p.leased[i].ID]
	}
	slices.SortFunc(p.leased, func(a, b store.LeasedJob) int { return order[a.ID] - order[b.ID] })
	settled := make([]turns.Visit[gateFront], len(p.visits))
	for i := range p.visits {
		settled[i] = p.visits[i].Visit
	}
	p.g.turns.Settle(p.g.queue.Queue, settled, p.at, p.rest)
	if n := len(p.leased); n > 0 {
		p.k.seen(p.now)
	}
}

// sorted are the jobs of a gate in the order in which they are taken.
func (p *gatePass) sorted(v *gateVisit) []gateJob {
	aging := p.g.queue.Aging
	shift := func(c *gateJob) time.Time { return c.due.Add(time.Duration(c.priority) * aging) }
	slices.SortStableFunc(v.found, func(a, b gateJob) int {
		if aging > 0 {
			if n := shift(&a).Compare(shift(&b)); n != 0 {
				return n
			}
		}
		if a.priority != b.priority {
			return a.priority - b.priority
		}
		if a.before(b.position) {
			return -1
		}
		return 1
	})
	return v.found
}
