package claims

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

const (
	// SweptAtOnce is how many jobs for others one sweep reads, in all stretches of a
	// claim together. With a million of them behind a frontier a lap takes four minutes.
	SweptAtOnce = 20_000
	// gatedAtOnce is the same where gates are to be judged, which the server cannot: all
	// that is read comes over. With a million of them a lap takes twenty minutes.
	gatedAtOnce = 4096
	// foundAtOnce is how many of its own jobs it finds among them.
	foundAtOnce = 100
	// readingOne is how long it takes, at most, to read one of them. What takes longer
	// is dead entries.
	readingOne = 5 * time.Microsecond
)

// readPast reads a stretch behind a frontier from a place on, and gives those jobs that
// the offer takes, or all where gates are to be judged ($11), and the last that it read.
//
//   - job_ready serves it: one range, $7 entries at most.
//   - pause_pkey and cool_down_pkey, once.
var readPast = `SELECT state.paused, r.n, r.due, r.id, r.kind, r.version, r.capabilities, r.rescued, r.bytes, r.key
FROM (
	SELECT ` + settings.QueuePaused("$2") + ` AS paused
) AS state
LEFT JOIN LATERAL (
	SELECT j.*, row_number() OVER (ORDER BY j.due, j.id) AS n
	FROM (
		SELECT due, id, kind, version, capabilities, rescues > 0 AS rescued, key, ` + jobs.RowBytes + ` AS bytes,
			$11::bool
				OR version <= ($9::int[])[array_position($8::text[], kind)]
					AND (capabilities IS NULL OR capabilities <@ $10::text[]) AS takes
		FROM pawl.job
		WHERE namespace = $1
			AND queue = $2
			AND state = 2
			AND gate IS NULL
			AND priority = $3
			AND (due, id) > ($4, $5)
			AND due < $6
		ORDER BY due, id
		LIMIT $7
	) AS j
	WHERE NOT state.paused
) AS r ON r.takes OR r.n = $7
ORDER BY r.n
LIMIT $12`

// past is what was read of one stretch.
type past struct {
	found   []candidate // what the offer takes, or has to go behind a gate
	reached position    // the last that was read
	whole   bool        // nothing is left of the stretch
	unread  bool        // its queue is paused, or dead entries are in the way
}

// readPast reads up to so many jobs of a stretch.
func (k *claiming) readPast(ctx context.Context, b probe, most int) (p past, err error) {
	l, found := b.lane, foundAtOnce
	if l.gates {
		most = min(most, gatedAtOnce)
		found = most
	}
	args := []any{
		k.room.pg.Namespace, l.queue.Queue, b.priority, b.from.due, b.from.ID, b.end(), most,
		l.offer.Kinds, l.offer.Newest, l.offer.Capabilities, l.gates, found,
	}
	err = k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		p = past{whole: true}
		rows := 0
		err := k.room.pg.Send(ctx, k.room.pg.Claim, pg.ShortLimits, &pg.Statement{
			Text: readPast, Args: args,
			Each: func(scan pg.Scan) error {
				var n, version pgtype.Int4
				var due pgtype.Timestamptz
				var id pgtype.UUID
				var kind, key pgtype.Text
				var needs []pgtype.Text
				var rescued pgtype.Bool
				var bytes pgtype.Int4
				if err := scan(&p.unread, &n, &due, &id, &kind, &version, &needs, &rescued, &bytes, &key); err != nil || !id.Valid {
					return err
				}
				c := candidate{
					position: position{due.Time, job.ID(id.Bytes)}, priority: int(b.priority), rescued: rescued.Bool, bytes: int64(bytes.Int32),
					gate: k.c.Gates.Gate(l.queue.Queue, kind.String, key.String),
				}
				c.takes = c.gate == 0 && l.offer.takes(kind.String, int(version.Int32), needs)
				if c.takes || c.gate != 0 {
					p.found = append(p.found, c)
				}
				if rows++; rows == found || int(n.Int32) == most {
					p.reached, p.whole = c.position, false
				}
				return nil
			},
		})
		if pg.IsOverTime(err) {
			p, err = past{unread: true}, nil
		}
		return err
	})
	return p, err
}

// sweepPast takes over what a look found behind frontiers. A job that the offer takes
// lowers its frontier. Of those behind jobs for others as many as are wanted are leased at
// once: a frontier that is lowered to one of them would have all those others read again,
// in front of what waits at the other end of them. Reading those others is no reason to
// sweep in slices: over is what it took beyond what they explain.
func (k *claiming) sweepPast(ctx context.Context, p *peeking) (lowered bool, over time.Duration, err error) {
	lower := func(b probe, at position) {
		lowered = true
		k.room.Frontiers.found(b.lane.view.name, b.priority, at)
	}
	most := max(SweptAtOnce/max(len(p.behind), 1), 1)
	for _, b := range p.behind {
		took := pg.Stopwatch()
		read, err := k.readPast(ctx, probe{lane: b.lane, priority: b.priority, from: b.at.previous(), to: b.to}, most)
		if err != nil {
			return false, 0, err
		}
		over += max(took()-time.Duration(most)*readingOne, 0)
		switch {
		case read.unread:
			continue
		case len(read.found) > 0 && read.found[0].position == b.at:
			lower(b.probe, b.at)
			continue
		}
		if err := k.gate(ctx, read.found); err != nil {
			return false, 0, err
		}
		w := newLookWalk(b.lane)
		w.open, w.met = nil, read.found
		leased, err := k.lock(ctx, b.lane, w.choose())
		if err != nil {
			return false, 0, err
		}
		b.lane.add(leased)
		if left := w.waiting(); len(left) > 0 {
			lower(b.probe, left[0].position)
		}
		k.room.Frontiers.lapped(b.probe, read.reached, read.whole)
	}
	for _, b := range p.probes {
		if b.behind && !p.paused[b.lane.queue.Queue] && !slices.ContainsFunc(p.behind, func(f foundFirst) bool { return f.probe == b }) {
			k.room.Frontiers.lapped(b, position{}, true)
		}
	}
	return lowered, over, nil
}

// lapped notes how far a stretch was swept.
func (f *frontiers) lapped(b probe, reached position, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.Fronts[b.lane.view.name]; l != nil {
		l.sweep.lapped(&b, l.at[b.priority], reached, whole)
	}
}
