package claims

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// clockSlack is how far the store's clock may be off from where this process expects it
// before a count begins in front. What a count passes is older than twice that.
const clockSlack = 250 * time.Millisecond

// runsSince is from where the jobs are counted that run from a gate. Whoever let one
// through did so under the gate's lock, by the store's clock, so nothing comes before
// what a count has seen, unless the clock is set back: then it counts from the front,
// as it does with every sweep.
type runsSince struct {
	passed time.Time // nothing that runs came through before
	now    time.Time // by the store's clock when that was seen; zero: it is not known
	when   time.Time // and by that of this process
}

// from is where a count begins, and what the store's clock must show for that.
func (r *runsSince) from(now time.Time) (from, clock pgtype.Timestamptz) {
	if r.now.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, pgtype.Timestamptz{Time: r.now, Valid: true}
	}
	return pgtype.Timestamptz{Time: r.passed.Add(-2 * clockSlack), Valid: true},
		pgtype.Timestamptz{Time: r.now.Add(now.Sub(r.when) - clockSlack), Valid: true}
}

// runningAtGates counts what runs from gates, from where each is to be counted.
//
//   - job_gate_held, up to a bound for each gate. (By an order: to a planner without
//     statistics job_held looks as good, and it would read all that runs.)
const runningAtGates = `WITH g AS MATERIALIZED (
	SELECT g.n, g.gate, g.most, CASE WHEN {now} < g.clock THEN '-infinity' ELSE g.passed END AS since
	FROM unnest($2::bigint[], $3::int[], $4::timestamptz[], $5::timestamptz[])
		WITH ORDINALITY AS g (gate, most, passed, clock, n)
)
SELECT g.n, r.number, r.first
FROM g
CROSS JOIN LATERAL (
	SELECT count(*) AS number, min(r.passed) AS first
	FROM (
		SELECT j.passed
		FROM pawl.job AS j
		WHERE j.namespace = $1 AND j.gate = g.gate AND j.passed >= g.since AND j.state = 3 AND j.gate IS NOT NULL
		ORDER BY j.passed
		LIMIT g.most
	) AS r
) AS r`

// runningArrays are gates whose running jobs are counted, as arguments.
type runningArrays struct {
	gates        []int64
	most         []int32
	since, clock []pgtype.Timestamptz
}

func (a *runningArrays) add(v *gateVisit, now time.Time) {
	since, clock := v.Data.runs.from(now)
	a.gates, a.most = append(a.gates, v.Of.Number), append(a.most, int32(max(v.bound.Concurrent, 1)))
	a.since, a.clock = append(a.since, since), append(a.clock, clock)
}

// countRunning counts them.
func (p *gatePass) countRunning(a *runningArrays, at []int) *pg.Statement {
	args := []any{p.k.room.pg.Namespace, a.gates, a.most, a.since, a.clock}
	return &pg.Statement{Text: runningAtGates, Args: args, Each: func(scan pg.Scan) error {
		var n, running int
		var first pgtype.Timestamptz
		err := scan(&n, &running, &first)
		v := &p.visits[at[n-1]]
		v.running, v.first = running, first.Time
		return err
	}}
}

// countedAt remembers for the gates that this pass has locked what it counted. In front
// of a slow answer nobody knows what the clock showed when.
func (p *gatePass) countedAt(now time.Time, took time.Duration) {
	for i := range p.visits {
		v := &p.visits[i]
		if v.sweeps {
			v.Data.pause = sweepPause * took
		}
		r := &v.Data.runs
		switch {
		case !v.locked:
		case took > clockSlack:
			v.locked = r.now.IsZero() // what it counted from may not have held: the next count begins in front
			*r = runsSince{}
		default:
			if r.passed, r.now, r.when = p.now, p.now, now; v.running > 0 && v.first.Before(p.now) {
				r.passed = v.first // one from ahead of the clock, which was set back, says nothing of those to come
			}
		}
	}
}
