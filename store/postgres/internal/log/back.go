package log

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// readAllBack reads events of all topics up to a number ($2), the newest first.
	//
	//   - event_pkey, backwards.
	readAllBack = `SELECT ` + eventColumns + `
FROM pawl.event
WHERE namespace = $1 AND seq <= $2
ORDER BY namespace DESC, seq DESC
LIMIT $3`

	// readTopicsBack reads those of some topics ($4): a seek for each, as readTopics, and not
	// below its low mark.
	//
	//   - topic_trim_pkey; event_topic, backwards.
	readTopicsBack = `SELECT e.*
FROM (
	SELECT t.namespace, t.topic, coalesce((
			SELECT s.low
			FROM pawl.topic_trim AS s
			WHERE s.namespace = t.namespace AND s.topic = t.topic
		), 0) AS low
	FROM (SELECT $1::int AS namespace, t.topic FROM unnest($4::int[]) AS t (topic) OFFSET 0) AS t
	OFFSET 0
) AS t
CROSS JOIN LATERAL (
	SELECT ` + eventColumns + `
	FROM pawl.event
	WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0 AND seq > t.low AND seq <= $2
	ORDER BY event.namespace DESC, event.topic DESC, seq DESC
	LIMIT $3
) AS e
ORDER BY e.seq DESC
LIMIT $3`

	// readNewest reads when the newest event of each of some topics ($2) was appended.
	//
	//   - topic_trim_pkey; event_topic, backwards.
	readNewest = `SELECT t.topic, e.appended
FROM (
	SELECT t.namespace, t.topic, coalesce((
			SELECT s.low
			FROM pawl.topic_trim AS s
			WHERE s.namespace = t.namespace AND s.topic = t.topic
		), 0) AS low
	FROM (SELECT $1::int AS namespace, t.topic FROM unnest($2::int[]) AS t (topic) OFFSET 0) AS t
	OFFSET 0
) AS t
CROSS JOIN LATERAL (
	SELECT appended
	FROM pawl.event
	WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0 AND seq > t.low
	ORDER BY event.namespace DESC, event.topic DESC, seq DESC
	LIMIT 1
) AS e`
)

// EventsBack reads what lies up to a position, the newest first, not past the head.
func (r *Room) EventsBack(ctx context.Context, q store.EventQuery) (page store.EventPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	if err := r.enter(ctx); err != nil {
		return page, err
	}
	defer r.pg.Leave()
	limit := q.Limit
	if limit == 0 {
		limit = store.MaxEventPage
	}
	head, err := r.head(ctx)
	if err != nil {
		return page, err
	}
	if err := head.check(q.After); err != nil {
		return page, err
	}
	from := head.seq
	if !q.After.IsZero() {
		from = min(from, q.After.Seq())
	}
	args := []any{r.pg.Namespace, from, limit}
	text := readAllBack
	if p := q.Match.Pattern; p.String() != ">" {
		ids, err := r.matching(ctx, p)
		if err != nil {
			return page, err
		}
		text, args = readTopicsBack, append(args, ids)
	}
	all, err := r.readAs(ctx, head, text, args)
	if err != nil {
		return page, err
	}
	return store.BackPage(&q, stream.At(head.epoch, head.seq), limit, all, func(i int) bool { return !all[i].Expired(head.now) }), nil
}

// NewestEvents says when the newest event of each of some topics was appended. It may be past
// the head: nobody reads by it.
func (r *Room) NewestEvents(ctx context.Context, topics []store.TopicInfo) (newest map[int32]time.Time, err error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	ids := make([]int32, len(topics))
	for i := range topics {
		ids[i] = topics[i].ID
	}
	err = r.pg.Retry(ctx, "read newest events", pg.Reading, func(ctx context.Context, _ bool) error {
		newest = map[int32]time.Time{}
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: readNewest, Args: []any{r.pg.Namespace, ids}, Each: func(scan pg.Scan) error {
			var topic int32
			var appended time.Time
			err := scan(&topic, &appended)
			newest[topic] = appended.UTC()
			return err
		}})
	})
	return newest, err
}
