package claims

import (
	"context"
	"math"
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// What Regate reads and writes.
//
//   - scanAllGates and behindOne: job_gated, a seek for each gate.
//   - forgetGates: gate_pkey, and job_pkey for heads.
const (
	scanAllGates = `WITH RECURSIVE g AS (
	(
		SELECT queue, gate, kind, key
		FROM pawl.job
		WHERE namespace = $1 AND state = 2 AND gate IS NOT NULL AND (queue, gate) > ($2, $3)
		ORDER BY queue, gate
		LIMIT 1
	)
	UNION ALL
	SELECT n.queue, n.gate, n.kind, n.key
	FROM g
	CROSS JOIN LATERAL (
		SELECT queue, gate, kind, key
		FROM pawl.job
		WHERE namespace = $1 AND state = 2 AND gate IS NOT NULL AND (queue, gate) > (g.queue, g.gate)
		ORDER BY queue, gate
		LIMIT 1
	) AS n
)
SELECT queue, gate, kind, coalesce(key, '')
FROM g
LIMIT $4`

	behindOne = `SELECT id, kind, coalesce(key, '')
FROM pawl.job
WHERE namespace = $1 AND state = 2 AND gate IS NOT NULL AND queue = $2 AND gate = $3
LIMIT $4`

	forgetGates = `WITH over AS MATERIALIZED (
	SELECT g.ctid AS place
	FROM pawl.gate AS g
	WHERE g.namespace = $1 AND g.expires <= {now}
		AND (SELECT 1 FROM pawl.job AS j WHERE j.namespace = ANY (ARRAY[g.namespace]) AND j.id = g.head LIMIT 1) IS NULL
	LIMIT $2
	FOR UPDATE OF g SKIP LOCKED
)
DELETE FROM pawl.gate
USING over
WHERE gate.ctid = over.place`
)

// regating is where the next call goes on.
type regating struct {
	sync.Mutex
	queue string
	gate  int64
}

// Regate moves waiting jobs to where the rules put them.
func (r *Room) Regate(ctx context.Context, rules *job.GateRules, limit int) (reply store.RegateReply, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	at := &r.regating
	at.Lock()
	defer at.Unlock()
	if at.queue == "" {
		at.gate = math.MinInt64
	}
	type pair struct {
		queue     string
		gate      int64
		kind, key string
	}
	var pairs []pair
	err = r.pg.Retry(ctx, "regate", pg.Always, func(ctx context.Context, _ bool) error {
		pairs = nil
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, &pg.Statement{
			Text: scanAllGates, Args: []any{r.pg.Namespace, at.queue, at.gate, store.RegateVisits},
			Each: func(scan pg.Scan) error {
				var p pair
				err := scan(&p.queue, &p.gate, &p.kind, &p.key)
				pairs = append(pairs, p)
				return err
			},
		})
	})
	if err != nil {
		return reply, err
	}
	for _, p := range pairs {
		at.queue, at.gate = p.queue, p.gate
		if rules.Gate(p.queue, p.kind, p.key) == p.gate {
			continue
		}
		n, err := r.regateOne(ctx, rules, p.queue, p.gate, limit-reply.Moved)
		if reply.Moved += n; err != nil {
			return reply, err
		}
		if reply.Moved >= limit {
			at.gate-- // there may be more of it
			reply.More = true
			return reply, nil
		}
	}
	if reply.More = len(pairs) == store.RegateVisits; reply.More {
		return reply, nil
	}
	at.queue = ""
	err = r.pg.Retry(ctx, "regate", pg.Always, func(ctx context.Context, _ bool) error {
		forget := &pg.Statement{Text: forgetGates, Args: []any{r.pg.Namespace, limit}}
		err := r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, forget)
		reply.Forgotten = int(forget.Hits)
		return err
	})
	return reply, err
}

// regateOne moves the jobs of one gate.
func (r *Room) regateOne(ctx context.Context, rules *job.GateRules, queue string, gate int64, limit int) (int, error) {
	var m moved
	err := r.pg.Retry(ctx, "regate", pg.Always, func(ctx context.Context, _ bool) error {
		m = moved{}
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, &pg.Statement{
			Text: behindOne, Args: []any{r.pg.Namespace, queue, gate, limit}, Each: func(scan pg.Scan) error {
				var id job.ID
				var kind, key string
				err := scan(&id, &kind, &key)
				if want := rules.Gate(queue, kind, key); want != gate {
					m.add(id, gate, want)
				}
				return err
			},
		})
	})
	if err != nil {
		return 0, err
	}
	return r.move(ctx, &m)
}
