package log

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

// Due is what the room asks with the look for what is due.
var Due = jobs.Ask{
	Text: `SELECT 1
	FROM pawl.event
	WHERE namespace = $1 AND expires <= {now} AND expires > '-infinity'
	ORDER BY expires
	LIMIT 1`,
	Set:     func(d *store.Due, due bool) { d.Trim = due },
	Indexes: []string{"event_expires"},
}

const (
	// findTrimmable says of which topics ($2) something may have to go: their oldest event is
	// too old ($3), or there are events that were not counted, or too many ($4), none of them
	// past the head ($5).
	//
	//   - topic_trim_pkey, event_topic: two seeks for each.
	findTrimmable = `SELECT t.topic
FROM (
	SELECT $1::int AS namespace, t.*
	FROM unnest($2::int[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS t (topic, keep, most, n)
	OFFSET 0
) AS t
LEFT JOIN pawl.topic_trim AS s ON s.namespace = ANY (ARRAY[t.namespace]) AND s.topic = t.topic
WHERE (
	SELECT e.appended
	FROM pawl.event AS e
	WHERE e.namespace = t.namespace AND e.topic = t.topic AND e.topic > 0
		AND e.seq > coalesce(s.low, 0) AND e.seq <= $5
	ORDER BY e.namespace, e.topic, e.seq
	LIMIT 1
) <= {now} - t.keep * interval '1 microsecond'
	OR s.kept > t.most
	OR t.most IS NOT NULL AND (
		SELECT e.seq
		FROM pawl.event AS e
		WHERE e.namespace = t.namespace AND e.topic = t.topic AND e.topic > 0
			AND e.seq > coalesce(s.counted, 0) AND e.seq <= $5
		ORDER BY e.namespace, e.topic, e.seq
		LIMIT 1
	) IS NOT NULL
ORDER BY t.n`

	// addTrims makes the rows of topics ($2) that have none.
	//
	//   - topic_trim_pkey.
	addTrims = `INSERT INTO pawl.topic_trim (namespace, topic)
SELECT $1, t.topic
FROM unnest($2::int[]) AS t (topic)
ORDER BY t.topic
ON CONFLICT DO NOTHING`

	// lockTrim takes a topic ($2), unless somebody else is at it.
	//
	//   - topic_trim_pkey.
	lockTrim = `SELECT low, lost, counted, kept, {now}
FROM pawl.topic_trim
WHERE namespace = $1 AND topic = $2
FOR UPDATE SKIP LOCKED`

	// lockTrims takes several ($2), one after the other.
	//
	//   - topic_trim_pkey.
	lockTrims = `SELECT s.topic
FROM (SELECT $1::int AS namespace, t.topic FROM unnest($2::int[]) AS t (topic) ORDER BY t.topic OFFSET 0) AS t
JOIN pawl.topic_trim AS s ON s.namespace = ANY (ARRAY[t.namespace]) AND s.topic = t.topic
FOR UPDATE OF s`

	// countEvents counts those of a topic ($2) behind a number ($3), at most $5.
	//
	//   - event_topic.
	countEvents = `SELECT count(*), coalesce(max(e.seq), 0)
FROM (
	SELECT seq
	FROM pawl.event
	WHERE namespace = $1 AND topic = $2 AND topic > 0 AND seq > $3 AND seq <= $4
	ORDER BY namespace, topic, seq
	LIMIT $5
) AS e`

	// oldestEvents reads the first of a topic behind its low mark ($3).
	//
	//   - event_topic.
	oldestEvents = `SELECT seq, appended, expires, coalesce(octet_length(data), 0) + coalesce(octet_length(rest), 0)
FROM pawl.event
WHERE namespace = $1 AND topic = $2 AND topic > 0 AND seq > $3 AND seq <= $4
ORDER BY namespace, topic, seq
LIMIT $5`

	// dropEvents removes those of a topic from behind its low mark ($3) up to a number ($4).
	//
	//   - event_topic.
	dropEvents = `DELETE FROM pawl.event
WHERE namespace = $1 AND topic = $2 AND topic > 0 AND seq > $3 AND seq <= $4`

	// putTrim writes what became of a topic.
	//
	//   - topic_trim_pkey.
	putTrim = `UPDATE pawl.topic_trim
SET low = $3, lost = $4, counted = $5, kept = $6
WHERE namespace = $1 AND topic = $2`

	// raiseTrim keeps the highest of all topics.
	raiseTrim = `INSERT INTO pawl.topic_trim AS s (namespace, topic, low, lost)
VALUES ($1, 0, $2, $3)
ON CONFLICT (namespace, topic) DO UPDATE
SET low = greatest(s.low, excluded.low), lost = greatest(s.lost, excluded.lost)`

	// findExpired reads events that have expired, at most $3, none past the head ($2).
	//
	//   - event_expires.
	findExpired = `SELECT seq, topic, coalesce(octet_length(data), 0) + coalesce(octet_length(rest), 0)
FROM pawl.event
WHERE namespace = $1 AND expires <= {now} AND expires > '-infinity' AND seq <= $2
ORDER BY expires
LIMIT $3`

	// dropExpired removes them ($2), and says whose they were.
	//
	//   - event_pkey.
	dropExpired = `DELETE FROM pawl.event AS e
USING (SELECT $1::int AS namespace, n.seq FROM unnest($2::bigint[]) AS n (seq) OFFSET 0) AS n
WHERE e.namespace = ANY (ARRAY[n.namespace]) AND e.seq = n.seq
RETURNING e.topic, e.seq`

	// uncount takes removed events ($2 topics, $3 numbers) from what was counted.
	//
	//   - topic_trim_pkey.
	uncount = `UPDATE pawl.topic_trim AS s
SET kept = s.kept - c.n
FROM (
	SELECT e.namespace, e.topic, count(*) AS n
	FROM (
		SELECT $1::int AS namespace, e.*
		FROM unnest($2::int[], $3::bigint[]) AS e (topic, seq)
		OFFSET 0
	) AS e
	JOIN pawl.topic_trim AS s
		ON s.namespace = ANY (ARRAY[e.namespace]) AND s.topic = e.topic AND s.low < e.seq AND s.counted >= e.seq
	GROUP BY e.namespace, e.topic
	OFFSET 0
) AS c
WHERE s.namespace = ANY (ARRAY[c.namespace]) AND s.topic = c.topic`

	// readLost looks whether events of some topics ($2) behind a number ($3) were removed.
	//
	//   - topic_trim_pkey.
	readLost = `SELECT 1
FROM (SELECT $1::int AS namespace, t.topic FROM unnest($2::int[]) AS t (topic) OFFSET 0) AS t
JOIN pawl.topic_trim AS s ON s.namespace = ANY (ARRAY[t.namespace]) AND s.topic = t.topic AND s.lost > $3
LIMIT 1`
)

// trimming is one call of Trim.
type trimming struct {
	room  *Room
	head  int64
	left  int // events
	bytes int
	count int
}

// Trim removes events whose time is over, none past the head: nobody could have read those.
func (r *Room) Trim(ctx context.Context, q store.TrimRequest) (reply store.TrimReply, err error) {
	if err := r.enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	h, err := r.head(ctx)
	if err != nil {
		return reply, err
	}
	t := &trimming{room: r, head: h.seq, left: q.Limit, bytes: store.MaxTrimBytes, count: q.Limit * store.TrimCounts}
	if reply.Expired, err = t.expired(ctx); err != nil {
		return reply, err
	}
	reply.More = t.spent()
	if q.Keep == nil || reply.More {
		reply.Next = q.After
		return reply, nil
	}
	err = t.topics(ctx, &q, &reply)
	reply.Removed, reply.Counted = q.Limit-reply.Expired-t.left, q.Limit*store.TrimCounts-t.count
	reply.More = t.spent()
	return reply, err
}

// spent reports whether it came to a bound.
func (t *trimming) spent() bool { return t.left <= 0 || t.bytes <= 0 || t.count <= 0 }

// topics goes through the next topics.
func (t *trimming) topics(ctx context.Context, q *store.TrimRequest, reply *store.TrimReply) error {
	r := t.room
	all, err := stream.ParsePattern("topic", ">")
	if err != nil {
		return err
	}
	topics, err := r.Topics(ctx, all, q.After, store.MaxTrimTopics)
	if err != nil {
		return err
	}
	keeps := map[int32]stream.TopicSettings{}
	var numbers []int32
	var keep, most []pgtype.Int8
	for _, of := range topics {
		if s := q.Keep(of.Name); s.Trims() {
			keeps[of.ID] = s
			numbers, keep = append(numbers, of.ID), append(keep, micros(s.KeepFor))
			most = append(most, pgtype.Int8{Int64: int64(s.KeepCount), Valid: s.KeepCount > 0})
		}
	}
	var found []int32
	if len(numbers) > 0 {
		err = r.pg.Retry(ctx, "look for what to trim", pg.Reading, func(ctx context.Context, _ bool) error {
			found = nil
			return r.pg.Send(ctx, r.pg.Upkeep, pg.SharedLimits, &pg.Statement{
				Text: findTrimmable, Args: []any{r.pg.Namespace, numbers, keep, most, t.head}, Each: func(scan pg.Scan) error {
					var topic int32
					err := scan(&topic)
					found = append(found, topic)
					return err
				},
			})
		})
		if err != nil {
			return err
		}
	}
	for _, of := range topics {
		if slices.Contains(found, of.ID) {
			if t.spent() {
				return nil
			}
			if err := t.topic(ctx, of.ID, keeps[of.ID]); err != nil {
				return err
			}
		}
		reply.Next = of.Name
	}
	if len(topics) < store.MaxTrimTopics {
		reply.Next = ""
	}
	return nil
}

// topic removes the oldest of one. When the answer is lost it looks again: what has gone is
// behind the low mark.
func (t *trimming) topic(ctx context.Context, topic int32, keep stream.TopicSettings) error {
	r := t.room
	left, bytes, count := t.left, t.bytes, t.count
	return r.pg.Retry(ctx, "trim", pg.Always, func(ctx context.Context, _ bool) error {
		t.left, t.bytes, t.count = left, bytes, count
		return r.pg.Transact(ctx, r.pg.Upkeep, pg.UpkeepLimits, func(x *pg.Transaction) error {
			var s store.TrimState
			var now time.Time
			lock := &pg.Statement{Text: lockTrim, Args: []any{r.pg.Namespace, topic}, Each: func(scan pg.Scan) error {
				return scan(&s.Low, &s.Lost, &s.Counted, &s.Kept, &now)
			}}
			if err := x.Run(ctx, &pg.Statement{Text: addTrims, Args: []any{r.pg.Namespace, []int32{topic}}}, lock); err != nil || lock.Hits == 0 {
				return err
			}
			return t.cut(ctx, x, topic, keep, s, now)
		})
	})
}

func (t *trimming) cut(ctx context.Context, x *pg.Transaction, topic int32, keep stream.TopicSettings, s store.TrimState, now time.Time) error {
	r, was := t.room, s
	var rows []store.TrimRow
	steps := []*pg.Statement{{Text: oldestEvents, Args: []any{r.pg.Namespace, topic, s.Low, t.head, t.left}, Each: func(scan pg.Scan) error {
		var row store.TrimRow
		var expires pgtype.Timestamptz
		err := scan(&row.Seq, &row.Appended, &expires, &row.Bytes)
		row.Expires = expires.Time
		rows = append(rows, row)
		return err
	}}}
	if keep.KeepCount > 0 {
		args := []any{r.pg.Namespace, topic, max(s.Counted, s.Low), t.head, t.count}
		steps = append(steps, &pg.Statement{Text: countEvents, Args: args, Each: func(scan pg.Scan) error {
			var n, last int64
			err := scan(&n, &last)
			if n > 0 {
				s.Kept, s.Counted = s.Kept+n, last
				t.count -= int(n)
			}
			return err
		}})
	}
	if err := x.Run(ctx, steps...); err != nil {
		return err
	}
	n := s.Cut(rows, keep, now, &t.bytes)
	if s == was {
		return nil
	}
	t.left -= n
	done := []*pg.Statement{{Text: putTrim, Args: []any{r.pg.Namespace, topic, s.Low, s.Lost, s.Counted, s.Kept}}}
	if n > 0 {
		done = append(done, &pg.Statement{Text: dropEvents, Args: []any{r.pg.Namespace, topic, was.Low, s.Low}},
			&pg.Statement{Text: raiseTrim, Args: []any{r.pg.Namespace, s.Low, s.Lost}})
	}
	return x.Commit(ctx, done...)
}

// expired removes events that have expired, wherever they stand.
func (t *trimming) expired(ctx context.Context) (removed int, err error) {
	r := t.room
	left, bytes := t.left, t.bytes
	err = r.pg.Retry(ctx, "remove expired events", pg.Always, func(ctx context.Context, _ bool) error {
		removed, t.left, t.bytes = 0, left, bytes
		var seqs []int64
		var topics []int32
		err := r.pg.Send(ctx, r.pg.Upkeep, pg.SharedLimits, &pg.Statement{
			Text: findExpired, Args: []any{r.pg.Namespace, t.head, t.left}, Each: func(scan pg.Scan) error {
				var seq int64
				var topic int32
				var size int
				if err := scan(&seq, &topic, &size); err != nil || t.bytes <= 0 {
					return err
				}
				t.bytes -= size
				seqs, topics = append(seqs, seq), append(topics, topic)
				return nil
			},
		})
		if err != nil || len(seqs) == 0 {
			return err
		}
		slices.Sort(topics)
		topics = slices.Compact(topics)
		return r.pg.Transact(ctx, r.pg.Upkeep, pg.UpkeepLimits, func(x *pg.Transaction) error {
			var of []int32
			var gone []int64
			locked := func(pg.Scan) error { return nil }
			err := x.Run(ctx, &pg.Statement{Text: addTrims, Args: []any{r.pg.Namespace, topics}},
				&pg.Statement{Text: lockTrims, Args: []any{r.pg.Namespace, topics}, Each: locked},
				&pg.Statement{Text: dropExpired, Args: []any{r.pg.Namespace, seqs}, Each: func(scan pg.Scan) error {
					var topic int32
					var seq int64
					err := scan(&topic, &seq)
					of, gone = append(of, topic), append(gone, seq)
					return err
				}})
			if err != nil {
				return err
			}
			removed = len(gone)
			t.left -= len(gone)
			return x.Commit(ctx, &pg.Statement{Text: uncount, Args: []any{r.pg.Namespace, of, gone}})
		})
	})
	return removed, err
}

// trimmedBehind reports whether retention has removed events of these topics behind a
// position. ids is nil for all of them.
func (r *Room) trimmedBehind(ctx context.Context, h head, ids []int32, after stream.Position) (found bool, err error) {
	if after.IsZero() || h.lost <= after.Seq() || ids == nil {
		return !after.IsZero() && h.lost > after.Seq(), nil // zero begins with the oldest that is kept
	}
	err = r.pg.Retry(ctx, "look for what was trimmed", pg.Reading, func(ctx context.Context, _ bool) error {
		found = false
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: readLost, Args: []any{r.pg.Namespace, ids, after.Seq()}, Each: func(pg.Scan) error {
			found = true
			return nil
		}})
	})
	return found, err
}
