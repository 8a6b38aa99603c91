package claims

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

const (
	// SweepEvery is how often a claim looks behind its frontiers. With the pause
	// between two claims of an idle worker it is the longest that a ready job can
	// be passed over: Stranded.
	SweepEvery = 5 * time.Second
)

// Stranded is the longest that a job which is ready and committed can stay
// unseen by claims that come at least every 5 seconds, when every hint of it was
// lost: one period of the sweep and one pause between claims. It holds while
// what lies behind the frontier can be swept at once; see [docs/postgres.md] for
// a snapshot that is held for hours.
const Stranded = 2 * SweepEvery

// sweep is how a lane is looked at behind its frontier.
//
// Behind it lie
//
//  1. The entries of jobs that are gone. They cost nothing once vacuum has removed
//     them, and the whole stretch is swept. When a held snapshot keeps them and a
//     sweep took too long, it is swept in slices: the newest stretch every time,
//     since what is passed over was mostly passed over just now, and an older one
//     beside it in turn.
//  2. Jobs that this offer does not take, any number. They are read (sweep_past.go),
//     so many at a time, and the next sweep goes on where this one ended: a lap.
//     Meanwhile the newest stretch is swept every time, too.
type sweep struct {
	last  time.Time                // the store's clock at the last one
	span  time.Duration            // of the newest slice; 0 means everything at once
	older int                      // which of the older slices comes next
	laps  [job.MaxPriority + 1]lap // of each priority
}

// lap is how far the sweeps have come of which each goes on where the one before ended.
// It ends where the frontier was when it began, however far that has moved since. The
// zero value is none.
type lap struct {
	at    position
	end   time.Time
	reach time.Duration // of the last stretch, where sweeps go by slices; 0: begin small
}

func (l *lap) underWay() bool { return l.at != position{} }

const (
	sweepSlow   = 50 * time.Millisecond
	sweepQuick  = 5 * time.Millisecond
	firstSpan   = 10 * time.Minute
	shortSpan   = time.Second
	longestSpan = 30 * 24 * time.Hour
)

// probe is a stretch of a lane in which the first waiting job is looked for.
type probe struct {
	lane     *claimQueue
	priority int16
	from     position
	to       time.Time // exclusive; zero means no end
	behind   bool      // it is a slice behind the frontier
	lap      lapPart
}

// lapPart is what a stretch is to a lap.
type lapPart uint8

const (
	noLap    lapPart = iota // the newest stretch, which every sweep has
	mayLap                  // a lap begins where it is too much for one sweep
	nextLap                 // it goes on from where the lap has come to
	finalLap                // and comes to the end of the lap
)

// end is where the stretch ends, as an argument.
func (b *probe) end() pgtype.Timestamptz {
	if b.to.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: b.to, Valid: true}
}

func (s *sweep) due(now time.Time) bool { return now.Sub(s.last) >= SweepEvery }

// sweepRecent is the newest stretch while a lap is under way.
const sweepRecent = 3 * SweepEvery

// stretches gives the slices of one sweep of a priority in front of a position.
func (s *sweep) stretches(priority int16, at position) []probe {
	slice := func(from position, to time.Time, lap lapPart) probe {
		return probe{priority: priority, from: from, to: to.Add(time.Microsecond), behind: true, lap: lap}
	}
	l := &s.laps[priority]
	if !l.underWay() && s.span == 0 {
		return []probe{slice(Start, at.due, mayLap)}
	}
	newest := slice(position{due: at.due.Add(-cmp.Or(s.span, sweepRecent))}, at.due.Add(time.Microsecond), noLap)
	if !l.underWay() {
		from, to := position{due: at.due.Add(-s.span << (s.older + 1))}, at.due.Add(-s.span<<s.older)
		if s.span<<(s.older+1) > longestSpan {
			from = Start
		}
		return []probe{newest, slice(from, to, mayLap)}
	}
	end := l.end
	if at.due.Before(end) { // it was lowered
		end = at.due
	}
	if s.span == 0 {
		return []probe{newest, slice(l.at, end, finalLap)}
	}
	to := l.at.due.Add(s.reach(l))
	if oldest := end.Add(-longestSpan); to.Before(oldest) {
		to = oldest
	}
	if to.Before(end) {
		return []probe{newest, slice(l.at, to, nextLap)}
	}
	return []probe{newest, slice(l.at, end, finalLap)}
}

// reach is how long the next stretch of a lap is: each is twice as long as the one before,
// as slices are, while they are swept as a whole.
func (s *sweep) reach(l *lap) time.Duration { return max(2*l.reach, 2*s.span) }

// lapped notes how far a stretch of a priority was swept: to a place in it, or as a whole.
func (s *sweep) lapped(b *probe, at, reached position, whole bool) {
	switch l := &s.laps[b.priority]; {
	case b.lap == noLap || b.lap == mayLap && whole:
	case b.lap == mayLap && s.span == 0:
		*l = lap{at: reached, end: at.due}
	case b.lap == mayLap: // a slice among others: of all of them
		*l = lap{at: Start, end: at.due}
	case !whole:
		l.at, l.reach = reached, 0
	case b.lap == nextLap:
		l.at, l.reach = position{due: b.to.Add(-time.Microsecond)}, s.reach(l)
	default:
		*l = lap{}
	}
}

// done notes a sweep and how long it took.
func (s *sweep) done(now time.Time, took time.Duration) {
	s.last = now
	s.older++
	if s.span == 0 || s.span<<(s.older+1) > 2*longestSpan {
		s.older = 0
	}
	switch {
	case took > sweepSlow && s.span == 0:
		s.span = firstSpan
	case took > sweepSlow:
		s.span = max(s.span/2, shortSpan)
		for i := range s.laps {
			s.laps[i].reach = 0
		}
	case took < sweepQuick && s.span > 0:
		if s.span *= 2; s.span > longestSpan {
			s.span = 0
		}
	}
}

// lookDue reports whether it is time to read hints, and to look behind one of the
// lanes.
func (r *Room) lookDue(lanes []*claimQueue) (hints, sweep bool) {
	now := r.pg.Clock.Estimate()
	hints = r.hints.Rows.Due(now)
	r.Frontiers.mu.Lock()
	defer r.Frontiers.mu.Unlock()
	for _, l := range lanes {
		if known := r.Frontiers.Fronts[l.view.name]; known != nil && known.sweep.due(now) {
			sweep = true
		}
	}
	return hints, sweep
}

// probes lists what a peek asks for: each lane from its frontier on, and the
// slices of those whose sweep is due. Without a time none is. Where it is known
// which of the quiet ones have some job, the others are not asked for.
func (f *frontiers) probes(lanes []*claimQueue, now time.Time, some map[string]bool) (list []probe, swept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lanes {
		known := f.lane(l.view.name)
		due := !now.IsZero() && known.sweep.due(now)
		swept = swept || due
		if some != nil && l.view.quiet && !some[l.queue.Queue] {
			continue
		}
		for _, p := range jobs.Priorities {
			at := known.at[p]
			list = append(list, probe{lane: l, priority: p, from: at})
			if !due || at == Start {
				continue
			}
			for _, s := range known.sweep.stretches(p, at) {
				s.lane = l
				list = append(list, s)
			}
		}
	}
	return list, swept
}

// found lowers a lane to a job that lies behind its frontier.
func (f *frontiers) found(name frontName, priority int16, at position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.Fronts[name]; l != nil && !l.at[priority].before(at) {
		l.lower(int(priority), position{due: at.due})
	}
}

// swept notes that the lanes were looked at.
func (f *frontiers) swept(lanes []*claimQueue, now time.Time, took time.Duration) {
	if f.Timed != nil {
		took = f.Timed(took)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lanes {
		if known := f.Fronts[l.view.name]; known != nil && known.sweep.due(now) {
			known.sweep.done(now, took)
		}
	}
}

// peekStretches finds the first waiting job of each stretch. Nothing is locked or
// written, so that an idle worker costs the server a read.
//
//   - job_ready serves it: one seek for each stretch.
//   - worker_pkey, pause_pkey, cool_down_pkey and namespace_pkey, once.
var peekStretches = `SELECT {now}, ` + settings.Revision + `,
	EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL),
	CASE
		WHEN EXISTS (SELECT FROM pawl.pause WHERE namespace = $1 AND scope = 3 AND name = '') THEN $3::text[]
		ELSE (
			SELECT array_agg(p.name)
			FROM pawl.pause AS p
			WHERE p.namespace = $1 AND p.scope = 1 AND p.name = ANY ($3::text[])
		)
	END,
	cooling.queues, cooling.untils,
	j.n, j.due, j.id
FROM (
	` + settings.CoolingQueues("$3::text[]") + `
) AS cooling
LEFT JOIN (
	SELECT f.n, j.due, j.id
	FROM unnest($3::text[], $4::smallint[], $5::timestamptz[], $6::uuid[], $7::timestamptz[])
		WITH ORDINALITY AS f (queue, priority, due, id, until, n)
	CROSS JOIN LATERAL (
		SELECT due, id
		FROM pawl.job
		WHERE namespace = $1
			AND queue = f.queue
			AND state = 2
			AND gate IS NULL
			AND priority = f.priority
			AND (due, id) > (f.due, f.id)
			AND due < f.until
		ORDER BY due, id
		LIMIT 1
	) AS j
) AS j ON true`

// peeking is a look at what is ready, at hints, and behind the frontiers where
// that is due.
type peeking struct {
	k      *claiming
	lanes  []*claimQueue
	probes []probe
	hints  *hints.RowLook // nil where they are not asked for
	swept  bool
	took   func() time.Duration

	now      time.Time
	revision int64 // of what is declared and set
	alive    bool
	paused   map[string]bool                    // or cools down
	cooling  map[string]time.Time               // until when
	left     map[*claimQueue]map[int16]position // the first ready job of each priority
	next     map[*claimQueue]time.Time          // when the next one falls due
	behind   []foundFirst
	firsts   []foundFirst // as a look for several namespaces found them
	passed   bool         // frontiers were lowered to something that they had passed
}

// foundFirst is the first waiting job of a stretch.
type foundFirst struct {
	probe
	at position
}

// lookKind is how much a look asks for.
type lookKind uint8

const (
	lookAhead   lookKind = iota // what is left from the frontiers on
	lookAtHints                 // and hints
	lookBehind                  // and, where it is due, what the frontiers have passed
)

func (k *claiming) newPeek(lanes []*claimQueue, what lookKind, some map[string]bool) *peeking {
	p := &peeking{
		k: k, lanes: lanes, took: pg.Stopwatch(),
		paused: map[string]bool{}, cooling: map[string]time.Time{}, left: map[*claimQueue]map[int16]position{}, next: map[*claimQueue]time.Time{},
	}
	now := time.Time{} // no sweep
	if what == lookBehind {
		now = k.room.pg.Clock.Estimate()
	}
	if what >= lookAtHints {
		p.hints = k.room.hints.Rows.Look(k.room.pg.Namespace)
	}
	p.probes, p.swept = k.room.Frontiers.probes(lanes, now, some)
	return p
}

func (p *peeking) steps() []*pg.Statement {
	steps := []*pg.Statement{p.step(p.probes)}
	if p.hints == nil {
		return steps
	}
	return append(steps, &p.hints.Statement)
}

// step looks into stretches.
func (p *peeking) step(probes []probe) *pg.Statement {
	n := len(probes)
	queues, levels := make([]string, n), make([]int16, n)
	dues, ids, ends := make([]time.Time, n), make([][16]byte, n), make([]pgtype.Timestamptz, n)
	for i, b := range probes {
		queues[i], levels[i], dues[i], ids[i] = b.lane.queue.Queue, b.priority, b.from.due, b.from.ID
		ends[i] = pgtype.Timestamptz{Time: b.to, Valid: true}
		if b.to.IsZero() {
			ends[i] = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
		}
	}
	args := []any{p.k.room.pg.Namespace, p.k.c.Worker, queues, levels, dues, ids, ends}
	return &pg.Statement{Text: peekStretches, Args: args, Each: func(scan pg.Scan) error { return p.read(scan, probes) }}
}

func (p *peeking) read(scan pg.Scan, probes []probe) error {
	var n pgtype.Int8
	var due pgtype.Timestamptz
	var id pgtype.UUID
	var paused, cooling []string
	var untils []time.Time
	if err := scan(&p.now, &p.revision, &p.alive, &paused, &cooling, &untils, &n, &due, &id); err != nil {
		return err
	}
	for i, q := range cooling {
		p.cools(q, untils[i])
	}
	for _, q := range paused {
		p.paused[q] = true
	}
	if !n.Valid {
		return nil
	}
	p.found(probes[n.Int64-1], position{due.Time, job.ID(id.Bytes)})
	return nil
}

// cools takes over that a queue cools down, which is a pause that says until when.
func (p *peeking) cools(queue string, until time.Time) {
	p.paused[queue], p.cooling[queue] = true, until
}

// found takes over the first waiting job of a stretch.
func (p *peeking) found(b probe, at position) {
	switch {
	case p.paused[b.lane.queue.Queue]:
	case b.behind:
		p.behind = append(p.behind, foundFirst{b, at})
	case at.due.After(p.now):
		if next, some := p.next[b.lane]; !some || at.due.Before(next) {
			p.next[b.lane] = at.due
		}
	default:
		if p.left[b.lane] == nil {
			p.left[b.lane] = map[int16]position{}
		}
		p.left[b.lane][b.priority] = at
	}
}

// conclude takes a look over once it was answered, and tells whether anything is
// ready.
func (p *peeking) conclude() (ready bool, err error) {
	k := p.k
	if !p.alive {
		return false, k.lost()
	}
	k.claimed.Now = p.now.UTC()
	k.claimed.Revision = max(k.claimed.Revision, p.revision)
	for _, l := range p.lanes {
		k.cools(l.queue.Queue, p.cooling[l.queue.Queue])
		k.upcoming(p.next[l])
		if !p.paused[l.queue.Queue] {
			k.room.Frontiers.expect(l.view, p.next[l])
		}
	}
	if k.room.heard(p.now) {
		ready, p.passed = true, true // everything was forgotten: look from the start
	}
	if p.hints != nil {
		missed := k.room.hints.Rows.Keep(p.hints, p.now)
		if p.hints.Some() {
			k.room.hints.Remover.Some()
		}
		if missed || p.hints.TooMany() {
			ready, p.passed = true, true
			k.room.drop()
		}
		for name, due := range p.hints.Told {
			ready, p.passed = true, true
			k.room.lower(name.Queue, name.Priority, due)
		}
	}
	return ready || len(p.left) > 0, nil
}

// peek looks before or after a claim, in a round trip of its own; a claim that
// expects nothing, with those of other namespaces.
func (k *claiming) peek(ctx context.Context, lanes []*claimQueue, quiet bool) (ready bool, err error) {
	var p *peeking
	some, err := k.skim(ctx, quietOf(lanes))
	if err != nil {
		return false, err
	}
	if quiet && k.room.meets.peek != nil {
		if p = k.newPeek(lanes, lookBehind, some); k.peekWith(ctx, p) {
			return k.conclude(ctx, p)
		}
	}
	err = k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		p = k.newPeek(lanes, lookBehind, some)
		p.took = pg.Stopwatch()
		return k.room.pg.Send(ctx, k.room.pg.Claim, pg.SharedLimits, p.steps()...)
	})
	if err != nil {
		return false, err
	}
	return k.conclude(ctx, p)
}

// conclude takes a look over, and the lanes as it left them.
func (k *claiming) conclude(ctx context.Context, p *peeking) (ready bool, err error) {
	if ready, err = p.conclude(); err != nil {
		return false, err
	}
	if p.swept {
		took := p.took() // what is done about what was found is not the sweep's
		lowered, over, err := k.sweepPast(ctx, p)
		if err != nil {
			return false, err
		}
		ready = ready || lowered
		k.room.Frontiers.swept(p.lanes, p.now, took+over)
	}
	k.renew(p.lanes)
	for _, l := range p.lanes {
		l.over = l.view.quiet && len(p.left[l]) == 0 // it was quiet, and still is
	}
	return ready, nil
}
