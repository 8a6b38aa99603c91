package limits

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// takeTokens is job.Bucket.Take as one statement. Where there is no row it stores the
// one that was computed for a full bucket ($14 to $21); else the upsert has the lock of
// the row when it computes, and reads the clock then. The answer is what it stored.
//
// Parameters are rate, burst and revision of the caller ($4 to $6), what it needs and
// wants ($7, $8), its last block ($9 taken, $10 size, $11 unused), how long ago
// and at what time it asked last ($12, $22; NULL: never) and the drain ($13).
//
//   - bucket_pkey. No column of an index changes more than once an hour, so the update
//     stays in its page.
const takeTokens = `INSERT INTO pawl.bucket AS b (namespace, name, key,
	level, at, tick, held, before, drained, until, turn, rate, burst, revision, ready, size, wait, expires)
VALUES ($1, $2, $3,
	$14, {instant}, 1000000, $15::bigint, 0, $16, $17, $18, $4, $5, $6, $19::bigint, $15::bigint, $20,
	{instant} + $21 * interval '1 microsecond')
ON CONFLICT (namespace, name, key) DO UPDATE
SET (level, at, tick, held, before, drained, until, turn, rate, burst, revision, ready, size, wait, expires) = (
	SELECT s.level - g.size * 1000000000, c.now, t.tick, s.held + g.size, s.before, s.drained, s.until,
		w.turn, r.rate, r.burst, r.revision, s.level, g.size, CASE
			WHEN w.asks THEN w.turn - t.tick
			ELSE 0
		END, x.expires
	FROM (SELECT {instant} AS now OFFSET 0) AS c
	-- Time passes, second by second of the bucket's own.
	CROSS JOIN LATERAL (
		SELECT b.tick + greatest(extract(epoch FROM CASE
				WHEN c.now > $22::timestamptz + ($12::bigint + 200000) * interval '1 microsecond' THEN
					$22::timestamptz + $12::bigint * interval '1 microsecond'
				ELSE
					c.now
			END - b.at) * 1000000, 0)::bigint AS tick,
			b.tick / 1000000 * 1000000 + 1000000 AS first,
			b.tick / 1000000 * 1000000 + 2000000 AS second
		OFFSET 0
	) AS t
	CROSS JOIN LATERAL (
		SELECT least(b.level + floor(greatest(least(t.tick, t.first) - greatest(b.tick, b.until), 0)::numeric
			* b.rate / 1000000), (b.burst - b.held - b.before) * 1000000000::numeric) AS level
	) AS l1
	CROSS JOIN LATERAL (
		SELECT least(l1.level + floor(
			greatest(least(t.tick, t.second) - greatest(least(t.tick, t.first), b.until), 0)::numeric
			* b.rate / 1000000), (b.burst - b.held) * 1000000000::numeric) AS level
	) AS l2
	CROSS JOIN LATERAL (
		SELECT least(l2.level + floor(greatest(t.tick - greatest(least(t.tick, t.second), b.until), 0)::numeric
			* b.rate / 1000000), b.burst * 1000000000::numeric)::bigint AS level
	) AS l3
	-- The newest settings hold.
	CROSS JOIN LATERAL (
		SELECT CASE WHEN $6 >= b.revision THEN $4 ELSE b.rate END AS rate,
			CASE WHEN $6 >= b.revision THEN $5 ELSE b.burst END AS burst,
			greatest($6, b.revision) AS revision
	) AS r
	-- The last block is settled.
	CROSS JOIN LATERAL (
		SELECT CASE WHEN t.tick < t.first THEN b.held ELSE 0 END AS held,
			CASE WHEN t.tick < t.first THEN b.before WHEN t.tick < t.second THEN b.held ELSE 0 END AS before,
			t.tick / 1000000 - $9::bigint / 1000000 AS age
	) AS o
	CROSS JOIN LATERAL (
		SELECT CASE WHEN o.age = 0 THEN greatest(o.held - $10::bigint, 0) ELSE o.held END AS held,
			CASE WHEN o.age = 1 THEN greatest(o.before - $10::bigint, 0) ELSE o.before END AS before,
			CASE
				WHEN o.age IN (0, 1) AND $10::bigint > 0 AND $9::bigint > b.drained THEN $11::bigint
				ELSE 0
			END AS unused
	) AS p
	-- The drain.
	CROSS JOIN LATERAL (
		SELECT p.held, p.before, least(l3.level + p.unused * 1000000000,
				(r.burst - p.held - p.before) * 1000000000,
				CASE WHEN $13::bigint > 0 THEN 0 END) AS level,
			CASE WHEN $13::bigint > 0 THEN t.tick ELSE b.drained END AS drained,
			CASE
				WHEN $13::bigint > 0 THEN greatest(b.until, t.tick + $13::bigint)
				WHEN $13::bigint < 0 THEN least(b.until, t.tick)
				ELSE b.until
			END AS until
	) AS s
	-- The block.
	CROSS JOIN LATERAL (
		SELECT least(r.rate / 2, r.burst * 500000000) AS ahead
	) AS a
	CROSS JOIN LATERAL (
		SELECT least($8::bigint, greatest($7::bigint, a.ahead / 1000000000)) AS want
	) AS v
	CROSS JOIN LATERAL (
		SELECT greatest($7::bigint, least(v.want, a.ahead / 4 * 3 / 1000000000)) AS least,
			least((s.level + a.ahead) / 1000000000, r.burst - s.held - s.before) AS there
	) AS m
	CROSS JOIN LATERAL (
		SELECT CASE
			WHEN $7::bigint BETWEEN 1 AND r.burst AND t.tick >= s.until AND m.there >= m.least THEN
				least(v.want, m.there)
			ELSE 0
		END AS size
	) AS g
	-- Or when to ask again.
	CROSS JOIN LATERAL (
		SELECT least(ceil(m.least * 1000000000::numeric * 1000000 / r.rate), 315360000000000)::bigint AS turn
	) AS u
	CROSS JOIN LATERAL (
		SELECT u.turn, greatest(greatest(s.until - t.tick, 0) + least(greatest(
				ceil((m.least * 1000000000 - a.ahead - s.level)::numeric * 1000000 / r.rate), 0
			), 315360000000000)::bigint, CASE
				WHEN r.burst - s.held - s.before < m.least THEN least(greatest(u.turn, 5000), 1000000)
			END) AS wait
	) AS n
	CROSS JOIN LATERAL (
		SELECT q.asks, CASE
			WHEN q.asks THEN greatest(t.tick + n.wait, least(
				CASE WHEN b.turn > t.tick THEN b.turn + n.turn ELSE 0 END, t.tick + n.wait + 2000000 + 8 * n.turn))
			ELSE b.turn
		END AS turn
		FROM (SELECT $7::bigint BETWEEN 1 AND r.burst AND g.size = 0 AS asks) AS q
	) AS w
	-- It is full by then: in whole hours, and an hour more.
	CROSS JOIN LATERAL (
		SELECT to_timestamp(floor(extract(epoch FROM c.now) / 3600 + (greatest(s.until - t.tick, 0) + least(
				ceil((r.burst * 1000000000 - s.level + g.size * 1000000000)::numeric * 1000000 / r.rate),
				315360000000000)) / 3600000000) * 3600 + 7200) AS expires
	) AS x
)
RETURNING b.at, b.tick, b.size, b.ready, b.wait, b.rate, b.burst, b.revision`

// take is the statement, and reads its answer.
func (r *Room) take(of store.BucketName, q *job.TakeRequest, reply *job.TakeReply) *pg.Statement {
	fresh := q.NewBucket(0)
	answer := fresh.Take(0, q)
	var since, last any
	if q.Since >= 0 {
		since, last = q.Since.Microseconds(), time.UnixMicro(q.Last)
	}
	drain := q.Drain.Microseconds()
	if q.Drain == job.Undrain {
		drain = -1
	}
	return &pg.Statement{
		Text: takeTokens,
		Args: []any{
			r.pg.Namespace, of.Limit, of.Key, q.Parts(), int64(q.Burst), q.Revision, int64(q.Need), int64(q.Want),
			q.Settle.Taken, int64(q.Settle.Size), int64(q.Settle.Unused), since, drain,
			fresh.Level, fresh.Held, fresh.Drained, fresh.Until, fresh.Turn, answer.Ready, answer.Wait.Microseconds(),
			fresh.Expires(), last,
		},
		Each: func(scan pg.Scan) error {
			var wait int64
			var at time.Time
			err := scan(&at, &reply.Taken, &reply.Size, &reply.Ready, &wait, &reply.Rate, &reply.Burst, &reply.Revision)
			reply.At, reply.Wait = at.UnixMicro(), time.Duration(wait)*time.Microsecond
			return err
		},
	}
}

// Take takes a block of tokens, or says when to ask again. What was committed without
// an answer is not done again: the block is lost until its time is over.
func (r *Room) Take(ctx context.Context, of store.BucketName, q job.TakeRequest) (reply job.TakeReply, err error) {
	if err := store.CheckTake(of, &q); err != nil {
		return reply, err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "take tokens", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		reply = job.TakeReply{}
		return r.pg.Send(ctx, r.pg.Work, pg.SharedLimits, r.take(of, &q, &reply))
	})
	if err != nil {
		return job.TakeReply{}, err
	}
	return reply, nil
}

// Drain empties a bucket for a time, or ends a drain. Done twice it is done once.
func (r *Room) Drain(ctx context.Context, of store.BucketName, q job.TakeRequest, op *store.Operator) error {
	if err := store.CheckTake(of, &q); err != nil {
		return err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	return r.pg.Retry(ctx, "drain", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		var reply job.TakeReply
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			if err := t.Run(ctx, r.take(of, &q, &reply)); err != nil || op == nil {
				return err
			}
			action, target := store.DrainAction(of, q.Drain)
			return r.settings.Record(ctx, t, *op, action, []string{target}, []string{q.Drain.String()})
		})
	})
}
