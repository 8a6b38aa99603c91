package log

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const eventColumns = `seq, topic, schema, appended, time, expires, id, key, type, source, content_type, rest, data, version`

const (
	// readAll reads events of all topics behind a number ($2), up to the head ($3).
	//
	//   - event_pkey.
	readAll = `SELECT ` + eventColumns + `
FROM pawl.event
WHERE namespace = $1 AND seq > $2 AND seq <= $3
ORDER BY namespace, seq
LIMIT $4`

	// readTopics reads those of some topics ($5): a seek for each, because one over all of
	// them walks what lies between.
	//
	//   - event_topic.
	readTopics = `SELECT e.*
FROM (SELECT $1::int AS namespace, t.topic FROM unnest($5::int[]) AS t (topic) OFFSET 0) AS t
CROSS JOIN LATERAL (
	SELECT ` + eventColumns + `
	FROM pawl.event
	WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0 AND seq > $2 AND seq <= $3
	ORDER BY event.namespace, event.topic, seq
	LIMIT $4
) AS e
ORDER BY e.seq
LIMIT $4`

	// readLowTopics is readTopics for who begins before what was trimmed: each topic is
	// seeked from its low mark, so that nobody walks what was removed, also while somebody's
	// snapshot keeps its entries.
	//
	//   - topic_trim_pkey, event_topic.
	readLowTopics = `SELECT e.*
FROM (
	SELECT t.namespace, t.topic, greatest($2, coalesce((
			SELECT s.low
			FROM pawl.topic_trim AS s
			WHERE s.namespace = t.namespace AND s.topic = t.topic
		), 0)) AS low
	FROM (SELECT $1::int AS namespace, t.topic FROM unnest($5::int[]) AS t (topic) OFFSET 0) AS t
	OFFSET 0
) AS t
CROSS JOIN LATERAL (
	SELECT ` + eventColumns + `
	FROM pawl.event
	WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0 AND seq > t.low AND seq <= $3
	ORDER BY event.namespace, event.topic, seq
	LIMIT $4
) AS e
ORDER BY e.seq
LIMIT $4`
)

// maxSeeks is of how many topics each is seeked where all of them could be read in one go.
const maxSeeks = 1000

// Events reads what lies behind a position, not past the head.
func (r *Room) Events(ctx context.Context, q store.EventQuery) (page store.EventPage, err error) {
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
	ids, text, args, err := r.reading(ctx, &q, head, limit)
	if err != nil {
		return page, err
	}
	all, err := r.readAs(ctx, head, text, args)
	if err != nil {
		return page, err
	}
	trimmed, err := r.trimmedBehind(ctx, head, ids, q.After)
	if err != nil {
		return page, err
	}
	page = store.EventPage{Next: q.After, Visited: len(all), More: len(all) == limit, Trimmed: trimmed, Head: stream.At(head.epoch, head.seq)}
	if len(all) > 0 {
		page.Next = all[len(all)-1].Position
	}
	for i := range all {
		if !all[i].Expired(head.now) && q.Match.Match(&all[i]) {
			page.Events = append(page.Events, all[i])
		}
	}
	return page, nil
}

// reading chooses the statement of a page. ids are the topics that match, nil for all.
func (r *Room) reading(ctx context.Context, q *store.EventQuery, h head, limit int) (ids []int32, text string, args []any, err error) {
	args = []any{r.pg.Namespace, q.After.Seq(), h.seq, limit}
	p, behind := q.Match.Pattern, q.After.Seq() < h.low
	switch {
	case p.String() != ">":
		if ids, err = r.matching(ctx, p); err != nil {
			return nil, "", nil, err
		}
		if text = readTopics; behind {
			text = readLowTopics
		}
		return ids, text, append(args, ids), nil
	case behind:
		few, err := r.Topics(ctx, p, "", maxSeeks)
		if err != nil {
			return nil, "", nil, err
		}
		if len(few) == maxSeeks {
			break
		}
		all := make([]int32, len(few))
		for i := range few {
			all[i] = few[i].ID
		}
		return nil, readLowTopics, append(args, all), nil
	}
	return nil, readAll, args, nil
}

// readAs reads the events that a statement finds, with the names of their topics.
func (r *Room) readAs(ctx context.Context, h head, text string, args []any) (all []stream.Event, err error) {
	err = r.pg.Retry(ctx, "read events", pg.Reading, func(ctx context.Context, _ bool) error {
		all = nil
		var topics []int32
		err := r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
			e, topic, err := read(scan, h.epoch)
			all, topics = append(all, e), append(topics, topic)
			return err
		}})
		if err != nil {
			return err
		}
		return r.nameAll(ctx, all, topics)
	})
	return all, err
}

// read makes an event of a row.
func read(scan pg.Scan, epoch uint32) (e stream.Event, topic int32, err error) {
	var seq int64
	var schema int32
	var expires pgtype.Timestamptz
	var version pgtype.Int8
	var rest []byte
	err = scan(&seq, &topic, &schema, &e.Appended, &e.Time, &expires,
		&e.ID, &e.Key, &e.Type, &e.Source, &e.ContentType, &rest, &e.Data, &version)
	if err != nil {
		return e, topic, err
	}
	e.Position, e.Schema, e.Version = stream.At(epoch, seq), int(schema), version.Int64
	e.Appended, e.Time = e.Appended.UTC(), e.Time.UTC()
	if expires.Valid {
		e.Expires = expires.Time.UTC()
	}
	if err := e.SetRest(rest); err != nil {
		return e, topic, fmt.Errorf("event %s: %w", e.Position.Debug(), err)
	}
	return e, topic, nil
}

// matching are the numbers of the topics that a pattern matches.
func (r *Room) matching(ctx context.Context, p stream.TopicPattern) (ids []int32, err error) {
	if name, one := p.Topic(); one {
		r.topics.mu.RLock()
		n, known := r.topics.numbers[name]
		r.topics.mu.RUnlock()
		if known {
			return []int32{n}, nil
		}
	}
	after := ""
	for {
		list, err := r.Topics(ctx, p, after, store.MaxEventPage)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		if len(list) < store.MaxEventPage {
			return ids, nil
		}
		after = list[len(list)-1].Name
	}
}
