package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
)

const (
	// sweepEvery is how often a claim looks behind its frontiers. With the pause
	// between two claims of an idle worker it is the longest that a ready job can
	// be passed over: Stranded.
	sweepEvery = 5 * time.Second
	// hintsEvery is how often a busy worker reads hints of users' transactions.
	hintsEvery = 100 * time.Millisecond
)

// Stranded is the longest that a job which is ready and committed can stay
// unseen by claims that come at least every 5 seconds, when every hint of it was
// lost: one period of the sweep and one pause between claims. It holds while
// what lies behind the frontier can be swept at once; see [docs/postgres.md] for
// a snapshot that is held for hours.
const Stranded = 2 * sweepEvery

// sweep is how a lane is looked at behind its frontier.
//
// Behind it lie the entries of jobs that are gone. They cost nothing once vacuum
// has removed them, and the whole stretch is swept. When a held snapshot keeps
// them and a sweep took too long, it is swept in slices: the newest stretch every
// time, since what is passed over was mostly passed over just now, and an older
// one beside it in turn.
type sweep struct {
	last  time.Time     // the store's clock at the last one
	span  time.Duration // of the newest slice; 0 means everything at once
	older int           // which of the older slices comes next
}

const (
	sweepSlow   = 50 * time.Millisecond
	sweepQuick  = 5 * time.Millisecond
	firstSpan   = 10 * time.Minute
	shortSpan   = time.Second
	longestSpan = 30 * 24 * time.Hour
)

// probe is a stretch of a lane in which the first waiting job is looked for.
type probe struct {
	lane     *claimLane
	queue    string
	priority int16
	from     position
	to       time.Time // exclusive; zero means no end
	behind   bool      // it is a slice behind the frontier
}

func (s *sweep) due(now time.Time) bool { return now.Sub(s.last) >= sweepEvery }

// stretches gives the slices of one sweep in front of a position.
func (s *sweep) stretches(at position) (slices [][2]time.Time) {
	if s.span == 0 {
		return [][2]time.Time{{start.due, at.due}}
	}
	newest := at.due.Add(-s.span)
	from, to := at.due.Add(-s.span<<(s.older+1)), at.due.Add(-s.span<<s.older)
	if s.span<<(s.older+1) > longestSpan {
		from = start.due
	}
	return [][2]time.Time{{newest, at.due.Add(time.Microsecond)}, {from, to}}
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
	case took < sweepQuick && s.span > 0:
		if s.span *= 2; s.span > longestSpan {
			s.span = 0
		}
	}
}

// lookDue reports whether it is time to look behind one of the lanes, or for hints.
func (s *Store) lookDue(lanes []*claimLane) bool {
	now := s.clock.estimate()
	if s.hints.due(now) {
		return true
	}
	s.frontiers.mu.Lock()
	defer s.frontiers.mu.Unlock()
	for _, l := range lanes {
		if known := s.frontiers.lanes[l.view.name]; known != nil && known.sweep.due(now) {
			return true
		}
	}
	return false
}

// probes lists what a peek asks for: each lane from its frontier on, and the
// slices of those whose sweep is due.
func (f *frontiers) probes(lanes []*claimLane, now time.Time) (list []probe, swept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lanes {
		known := f.lane(l.view.name)
		due := known.sweep.due(now)
		swept = swept || due
		for _, p := range priorities {
			at := known.at[p]
			list = append(list, probe{lane: l, queue: l.queue.Queue, priority: p, from: at})
			if !due || at == start {
				continue
			}
			for _, s := range known.sweep.stretches(at) {
				list = append(list, probe{lane: l, queue: l.queue.Queue, priority: p, from: position{due: s[0]}, to: s[1].Add(time.Microsecond), behind: true})
			}
		}
	}
	return list, swept
}

// found lowers a lane to a job that lies behind its frontier.
func (f *frontiers) found(name laneName, priority int16, at position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.lanes[name]; l != nil && !l.at[priority].before(at) {
		l.lower(int(priority), position{due: at.due})
	}
}

// swept notes that the lanes were looked at.
func (f *frontiers) swept(lanes []*claimLane, now time.Time, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lanes {
		if known := f.lanes[l.view.name]; known != nil && known.sweep.due(now) {
			known.sweep.done(now, took)
		}
	}
}

// peekStretches finds the first waiting job of each stretch: one seek on
// job_ready each. Nothing is locked or written, so that an idle worker costs the
// server a read.
const peekStretches = `SELECT {now}, EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL), j.n, j.due, j.id
FROM (SELECT 1) AS one LEFT JOIN (
	SELECT f.n, j.due, j.id
	FROM unnest($3::text[], $4::smallint[], $5::timestamptz[], $6::uuid[], $7::timestamptz[]) WITH ORDINALITY AS f (queue, priority, due, id, until, n)
	CROSS JOIN LATERAL (
		SELECT due, id FROM pawl.job
		WHERE namespace = $1 AND queue = f.queue AND state = 2 AND priority = f.priority AND (due, id) > (f.due, f.id) AND due < f.until
		ORDER BY due, id LIMIT 1
	) AS j
	WHERE NOT EXISTS (SELECT FROM pawl.queue WHERE namespace = $1 AND name = f.queue AND paused)
) AS j ON true`

// peek looks for hints, behind the frontiers where that is due, and whether
// anything is ready at all.
func (k *claiming) peek(ctx context.Context) (ready bool, err error) {
	var took time.Duration
	var probes []probe
	var swept bool
	var hints *hintLook
	err = k.s.retry(ctx, "claim", always, func(ctx context.Context, _ bool) error {
		ready, k.next = false, time.Time{}
		probes, swept = k.s.frontiers.probes(k.lanes, k.s.clock.estimate())
		hints = k.s.hints.look(k.s.namespace)
		steps := []*step{&hints.step, k.peekStep(probes, &ready)}
		if swept {
			if xmin, ok := k.s.hints.stale(k.s.clock.estimate()); ok {
				steps = append(steps, &step{text: removeHints, args: []any{k.s.namespace, xmin}})
			}
		}
		elapsed := stopwatch()
		err := k.s.send(ctx, k.s.work, sharedLimits, steps...)
		took = elapsed()
		return err
	})
	if err != nil {
		return false, err
	}
	if !k.alive {
		return false, k.lost()
	}
	if !k.s.frontiers.clock(k.claimed.Now) {
		ready = true // everything was forgotten: look from the start
	}
	k.s.clock.note(k.claimed.Now)
	k.s.hints.keep(hints, k.claimed.Now)
	if swept {
		k.s.frontiers.swept(k.lanes, k.claimed.Now, took)
	}
	for name, due := range hints.told {
		ready = true
		k.s.frontiers.lower(name.queue, name.priority, due)
	}
	for _, l := range k.lanes {
		l.view = k.s.frontiers.view(l.queue.Queue, k.offer.print)
		l.short = false
	}
	return ready, nil
}

func (k *claiming) peekStep(probes []probe, ready *bool) *step {
	n := len(probes)
	queues, levels, dues, ids, ends := make([]string, n), make([]int16, n), make([]time.Time, n), make([][16]byte, n), make([]pgtype.Timestamptz, n)
	for i, p := range probes {
		queues[i], levels[i], dues[i], ids[i] = p.queue, p.priority, p.from.due, p.from.id
		ends[i] = pgtype.Timestamptz{Time: p.to, Valid: true}
		if p.to.IsZero() {
			ends[i] = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
		}
	}
	var now time.Time
	var at pgtype.Int8
	var due pgtype.Timestamptz
	var id pgtype.UUID
	return &step{
		text: peekStretches, args: []any{k.s.namespace, k.c.Worker, queues, levels, dues, ids, ends},
		each: func(scan scan) error {
			if err := scan(&now, &k.alive, &at, &due, &id); err != nil {
				return err
			}
			k.claimed.Now = now.UTC()
			if !at.Valid {
				return nil
			}
			p := probes[at.Int64-1]
			switch {
			case p.behind:
				k.s.frontiers.found(p.lane.view.name, p.priority, position{due.Time, job.ID(id.Bytes)})
				*ready = true
			case due.Time.After(now):
				k.upcoming(due)
			default:
				*ready = true
			}
			return nil
		},
	}
}
