package claims

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// candidate is a ready job as a look sees it, before anything is locked.
type candidate struct {
	position
	priority int
	bytes    int64
	takes    bool  // the offer can run it
	gate     int64 // that it has to go behind; 0 for none
	rescued  bool  // before: it may only start at once
}

// Bounds of a look. One claim examines so many jobs of a priority at most; the
// next goes on where it ended.
const (
	firstStep = 64
	longStep  = 1024
)

// takes is Offer.Takes for a job whose needs may not be readable: it is for
// nobody, as claimStraight has it too.
func (o *offer) takes(kind string, version int, needs []pgtype.Text) bool {
	if !o.Knows(kind, version) {
		return false
	}
	for _, n := range needs {
		if !n.Valid || !slices.Contains(o.Capabilities, n.String) {
			return false
		}
	}
	return true
}

func LookBound(limit int) int { return 1000 + 10*limit }

// lookReady reads the next ready jobs of each priority in claim order, without
// locking them.
//
//   - job_ready serves the lateral part: a seek per priority.
//   - pause_pkey, cool_down_pkey and namespace_pkey, once.
var lookReady = `SELECT {now}, state.paused, state.cools, state.revision,
	j.priority, j.due, j.id, j.kind, j.version, j.capabilities, j.rescues > 0, j.bytes, j.key
FROM (
	SELECT ` + settings.QueuePaused("$2") + ` AS paused,
		` + settings.CoolsUntil("$2") + ` AS cools, ` + settings.Revision + ` AS revision
) AS state
LEFT JOIN LATERAL (
	SELECT j.*
	FROM unnest($3::smallint[], $4::timestamptz[], $5::uuid[]) AS f (priority, due, id)
	CROSS JOIN LATERAL (
		SELECT priority, due, id, kind, version, capabilities, rescues, key, ` + jobs.RowBytes + ` AS bytes
		FROM pawl.job
		WHERE namespace = $1
			AND queue = $2
			AND state = 2
			AND gate IS NULL
			AND priority = f.priority
			AND (due, id) > (f.due, f.id)
			AND due <= {now}
		ORDER BY due, id
		LIMIT $6
	) AS j
	WHERE NOT state.paused
) AS j ON true`

// look claims from a lane that holds jobs the offer does not take, or whose
// priorities age: it reads in order, chooses, and locks only what it chose, so
// that jobs for others stay free for them.
func (k *claiming) look(ctx context.Context, l *claimQueue) error {
	w := newLookWalk(l)
	for size := firstStep; len(w.open) > 0 && l.wants() > 0; size = min(size*4, longStep) {
		step, asked := w.next(), max(size, l.wants())
		found, paused, err := k.read(ctx, l, step, w.at, asked)
		if err != nil {
			return err
		}
		if paused {
			l.over = true
			k.room.Frontiers.advance(l.view, l.view.At, lookedAt{quiet: true})
			return nil
		}
		if err := k.gate(ctx, found); err != nil {
			return err
		}
		if w.read(step, found, asked) {
			k.claimed.More = true
		}
		leased, err := k.lock(ctx, l, w.choose())
		if err != nil {
			return err
		}
		l.add(leased)
	}
	if w.mixed() {
		k.room.Frontiers.mix(l.view, k.claimed.Now)
	}
	if l.bytes >= l.room {
		k.claimed.More = true
	}
	ended := l.wants() > 0 && !k.claimed.More && len(w.waiting()) == 0
	l.over = true
	k.room.Frontiers.advance(l.view, k.reached(w.frontier(), nil, nil, ended), lookedAt{quiet: ended})
	return nil
}

func (k *claiming) read(
	ctx context.Context, l *claimQueue, open []int16, at positions, limit int,
) (found []candidate, paused bool, err error) {
	var dues []time.Time
	var ids [][16]byte
	for _, p := range open {
		dues, ids = append(dues, at[p].due), append(ids, at[p].ID)
	}
	var now, until time.Time
	var revision int64
	err = k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		found = nil
		var cools pgtype.Timestamptz
		var priority pgtype.Int2
		var due pgtype.Timestamptz
		var id pgtype.UUID
		var kind pgtype.Text
		var version pgtype.Int4
		var needs []pgtype.Text // NULL where they cannot be read
		var rescued pgtype.Bool
		var bytes pgtype.Int4
		var key pgtype.Text
		args := []any{k.room.pg.Namespace, l.queue.Queue, open, dues, ids, limit}
		return k.room.pg.Send(ctx, k.room.pg.Claim, pg.SharedLimits, &pg.Statement{
			Text: lookReady, Args: args,
			Each: func(scan pg.Scan) error {
				err := scan(&now, &paused, &cools, &revision, &priority, &due, &id, &kind, &version, &needs, &rescued, &bytes, &key)
				if until = cools.Time; err != nil || !id.Valid {
					return err
				}
				gate := k.c.Gates.Gate(l.queue.Queue, kind.String, key.String)
				found = append(found, candidate{
					gate:     gate,
					position: position{due.Time, job.ID(id.Bytes)}, priority: int(priority.Int16),
					rescued: rescued.Bool, bytes: int64(bytes.Int32),
					takes: gate == 0 && l.offer.takes(kind.String, int(version.Int32), needs),
				})
				return nil
			},
		})
	})
	if err == nil {
		k.seen(now)
		k.cools(l.queue.Queue, until)
		k.claimed.Revision = max(k.claimed.Revision, revision)
	}
	return found, paused, err
}

// leaseChosen leases jobs by id, in the order of their ids. What is locked, no longer
// waiting or behind another gate by now is left out: whoever moved it counts it there.
//
//   - job_pkey and worker_pkey find the rows. The worker's is locked last, as in
//     ClaimStraight: who finds nothing left writes nothing.
var leaseChosen = `WITH picked AS MATERIALIZED (
	SELECT job.ctid AS place
	FROM (
		SELECT $1::int AS namespace, 2::smallint AS waiting, c.*
		FROM unnest($4::uuid[], $5::bigint[]) AS c (id, gate)
		OFFSET 0
	) AS c
	JOIN pawl.job ON job.namespace = ANY (ARRAY[c.namespace]) AND job.id = c.id
	WHERE job.state = c.waiting AND job.due <= {now} AND job.gate IS NOT DISTINCT FROM c.gate
	ORDER BY job.id
	FOR UPDATE OF job SKIP LOCKED
), me AS MATERIALIZED (
	SELECT id
	FROM pawl.worker
	WHERE namespace = $1 AND id = $2 AND lost IS NULL AND EXISTS (SELECT FROM picked)
	FOR SHARE
)
UPDATE pawl.job
SET state = 3, run = run + 1, worker = $2, claim = $3, started = {now},
	passed = CASE WHEN gate IS NOT NULL THEN {now} END
FROM me
CROSS JOIN picked
WHERE job.ctid = picked.place
RETURNING ` + jobs.TakenColumns + `, 0::bigint, 0::bigint`

// isAlive tells whether the worker is not lost (worker_pkey).
const isAlive = "SELECT EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL)"

// lock leases what was chosen.
func (k *claiming) lock(ctx context.Context, l *claimQueue, chosen []candidate) (*leaseReader, error) {
	if len(chosen) == 0 {
		return &leaseReader{}, nil
	}
	order := make(map[job.ID]int, len(chosen))
	for i, c := range chosen {
		order[c.ID] = i
	}
	sorted := slices.SortedFunc(slices.Values(chosen), func(a, b candidate) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	var ids [][16]byte
	for _, c := range sorted {
		ids = append(ids, c.ID)
	}
	var leased leaseReader
	alive := false
	err := k.lease(ctx, func(ctx context.Context) error {
		leased = leaseReader{lane: l.queue, worker: k.c.Worker}
		args := []any{k.room.pg.Namespace, k.c.Worker, k.c.Seq, ids, []int64{}} // in front of gates
		return k.room.pg.Send(ctx, k.room.pg.Claim, pg.SharedLimits,
			&pg.Statement{Text: leaseChosen, Args: args, Raw: leased.read},
			&pg.Statement{Text: isAlive, Args: []any{k.room.pg.Namespace, k.c.Worker},
				Each: func(scan pg.Scan) error { return scan(&alive) }})
	})
	if err != nil {
		return nil, err
	}
	if !alive {
		return nil, k.lost()
	}
	slices.SortFunc(leased.jobs, func(a, b store.LeasedJob) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	return &leased, nil
}
