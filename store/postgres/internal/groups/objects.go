package groups

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	groupColumns = `g.id, g.name, g.mode, g.filter, g.made, g.paused`

	// listGroups is by consumer_group_name, and so is oneGroup.
	listGroups = `SELECT ` + groupColumns + `
FROM pawl.consumer_group AS g
WHERE g.namespace = $1 AND g.name > $2
ORDER BY g.namespace, g.name
LIMIT $3`

	oneGroup = `SELECT ` + groupColumns + `
FROM pawl.consumer_group AS g
WHERE g.namespace = $1 AND g.name = $2`

	// shelvesOf reads how far the shelves of a group were read, and what waits there.
	//
	//   - shelf_member, shelf_at_pkey backwards, retry_due.
	shelvesOf = `SELECT a.upto, (
		SELECT count(*)
		FROM (
			SELECT
			FROM pawl.retry AS r
			WHERE r.namespace = s.namespace AND r.shelf = s.id AND r.hand = 0
			ORDER BY r.namespace, r.shelf, r.due
			LIMIT $3
		) AS r
	)
FROM pawl.shelf AS s
CROSS JOIN LATERAL (
	SELECT upto
	FROM pawl.shelf_at AS a
	WHERE a.namespace = s.namespace AND a.shelf = s.id
	ORDER BY a.namespace DESC, a.shelf DESC, a.turn DESC
	LIMIT 1
) AS a
WHERE s.namespace = $1 AND s.consumer_group = $2
LIMIT $3`

	// countParked is by retry_parked.
	countParked = `SELECT count(*)
FROM (
	SELECT
	FROM pawl.retry
	WHERE namespace = $1 AND consumer_group = $2 AND hand = -1
	LIMIT $3
) AS r`

	// listMembers reads members of a group by number, after one.
	//
	//   - hand_member, hand_at_pkey backwards, retry_hand, stripe_pkey.
	listMembers = `SELECT h.id, h.member, h.worker, h.joined, a.turned, a.turn, cardinality(a.open) + (
		SELECT count(*)
		FROM pawl.retry AS r
		WHERE r.namespace = h.namespace AND r.hand = h.id AND r.hand > 0
	), a.upto, a.behind, a.behind_at, array(
		SELECT s.stripe
		FROM pawl.stripe AS s
		WHERE s.namespace = h.namespace AND s.consumer_group = h.consumer_group AND s.hand = h.id
	)
FROM (
	SELECT *
	FROM pawl.hand
	WHERE namespace = $1 AND consumer_group = $2
	OFFSET 0
) AS h
CROSS JOIN LATERAL (
	SELECT *
	FROM pawl.hand_at AS a
	WHERE a.namespace = h.namespace AND a.hand = h.id
	ORDER BY a.namespace DESC, a.hand DESC, a.turn DESC
	LIMIT 1
) AS a
WHERE h.id > $3
ORDER BY h.id
LIMIT $4`

	// undoneRow is the first event of a group that was taken and is not done.
	//
	//   - shelf_member and retry_line; hand_member, hand_at_pkey backwards and retry_hand.
	undoneRow = `SELECT least((
		SELECT min(r.seq)
		FROM (SELECT namespace, id FROM pawl.shelf WHERE namespace = $1 AND consumer_group = $2 OFFSET 0) AS s
		CROSS JOIN LATERAL (
			SELECT seq
			FROM pawl.retry AS r
			WHERE r.namespace = s.namespace AND r.shelf = s.id AND r.hand = 0
			ORDER BY r.namespace, r.shelf, r.seq
			LIMIT 1
		) AS r
	), (
		SELECT min(least(o.seq, r.seq))
		FROM (SELECT namespace, id FROM pawl.hand WHERE namespace = $1 AND consumer_group = $2 OFFSET 0) AS h
		CROSS JOIN LATERAL (
			SELECT (SELECT min(n) FROM unnest(a.open) AS n) AS seq
			FROM pawl.hand_at AS a
			WHERE a.namespace = h.namespace AND a.hand = h.id
			ORDER BY a.namespace DESC, a.hand DESC, a.turn DESC
			LIMIT 1
		) AS o
		CROSS JOIN LATERAL (
			SELECT min(r.seq) AS seq
			FROM pawl.retry AS r
			WHERE r.namespace = h.namespace AND r.hand = h.id AND r.hand > 0
		) AS r
	))`

	// freePlaces is by stripe_pkey.
	freePlaces = `SELECT stripe, at
FROM pawl.stripe
WHERE namespace = $1 AND consumer_group = $2 AND hand = 0`

	// countAll counts events behind a number ($2) up to the head ($3), at most $4, that are
	// behind where their stripe was read ($5); countTopics those of some topics ($6).
	//
	//   - event_pkey; event_topic.
	countAll = `SELECT count(*), count(*) FILTER (WHERE e.seq > ($5::bigint[])[e.stripe + 1])
FROM (
	SELECT seq, stripe
	FROM pawl.event
	WHERE namespace = $1 AND seq > $2 AND seq <= $3
	ORDER BY namespace, seq
	LIMIT $4
) AS e`

	countTopics = `SELECT count(*), count(*) FILTER (WHERE e.seq > ($5::bigint[])[e.stripe + 1])
FROM (
	SELECT e.seq, e.stripe
	FROM (SELECT $1::int AS namespace, t.topic FROM unnest($6::int[]) AS t (topic) OFFSET 0) AS t
	CROSS JOIN LATERAL (
		SELECT seq, stripe
		FROM pawl.event
		WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0 AND seq > $2 AND seq <= $3
		ORDER BY event.namespace, event.topic, seq
		LIMIT $4
	) AS e
	LIMIT $4
) AS e`

	// listParked is by retry_parked, and event_pkey.
	listParked = `SELECT r.seq, r.failures, r.losses, r.due, r.reason, ` + entryColumns + `
FROM (
	SELECT *
	FROM pawl.retry
	WHERE namespace = $1 AND consumer_group = $2 AND hand = -1 AND (due, seq) > ($3, $4)
	ORDER BY namespace, consumer_group, due, seq
	LIMIT $5
) AS r
LEFT JOIN pawl.event AS e ON e.namespace = r.namespace AND e.seq = r.seq
ORDER BY r.due, r.seq`
)

// List lists groups by name, after one.
func (r *Room) List(ctx context.Context, after string, n int) ([]store.GroupInfo, error) {
	return r.infos(ctx, store.ListBehind, listGroups, after, n)
}

// Named is one of them.
func (r *Room) Named(ctx context.Context, name string) (store.GroupInfo, error) {
	list, err := r.infos(ctx, store.MaxGroupCount, oneGroup, name)
	if err == nil && len(list) == 0 {
		err = job.NotFound("group", name)
	}
	if err != nil {
		return store.GroupInfo{}, err
	}
	return list[0], nil
}

func (r *Room) infos(ctx context.Context, most int, text string, args ...any) (list []store.GroupInfo, err error) {
	if err := r.log.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	err = r.look(ctx, func() { list = nil }, &pg.Statement{Text: text, Args: append([]any{r.pg.Namespace}, args...),
		Each: func(scan pg.Scan) error {
			var g store.GroupInfo
			var mode int16
			var filter string
			if err := scan(&g.ID, &g.Name, &mode, &filter, &g.Made, &g.Paused); err != nil {
				return err
			}
			g.Mode, g.Made = stream.Mode(mode), g.Made.UTC()
			var err error
			if g.Filter, err = store.ParseFilter(filter); err != nil {
				return fmt.Errorf("%w: the filter of group %q: %w", store.ErrCorrupt, g.Name, err)
			}
			list = append(list, g)
			return nil
		}})
	for i := range list {
		if err == nil {
			err = r.measure(ctx, &list[i], most)
		}
	}
	return list, err
}

// look runs statements that only read.
func (r *Room) look(ctx context.Context, before func(), steps ...*pg.Statement) error {
	return r.pg.Retry(ctx, "read groups", pg.Reading, func(ctx context.Context, _ bool) error {
		before()
		return r.pg.Send(ctx, r.pg.Work, nil, steps...)
	})
}

// measure counts what a group has, and how far behind it is.
func (r *Room) measure(ctx context.Context, g *store.GroupInfo, most int) error {
	ns := r.pg.Namespace
	head, err := r.log.AskHead(ctx)
	if err != nil {
		return err
	}
	lowest := int64(store.NotRead)
	err = r.look(ctx, func() { lowest, g.Waiting = store.NotRead, 0 },
		&pg.Statement{Text: shelvesOf, Args: []any{ns, g.ID, store.MaxGroupCount}, Each: func(scan pg.Scan) error {
			var upto, waiting int64
			err := scan(&upto, &waiting)
			lowest, g.Waiting = min(lowest, upto), min(store.MaxGroupCount, g.Waiting+int(waiting))
			return err
		}},
		&pg.Statement{Text: countParked, Args: []any{ns, g.ID, store.MaxGroupCount}, Each: func(scan pg.Scan) error { return scan(&g.Parked) }})
	if err != nil {
		return err
	}
	members, places, err := r.members(ctx, g.ID, 0, store.MaxGroupCount, head.Epoch)
	if err != nil {
		return err
	}
	g.Members = len(members)
	for i := range members {
		g.Open += members[i].Open
	}
	if g.Mode == stream.Ordered {
		if err := r.freePlaces(ctx, g.ID, places); err != nil {
			return err
		}
		lowest = store.NotRead
		for _, at := range places {
			lowest = min(lowest, at)
		}
	} else {
		clear(places)
	}
	// Last: what is taken meanwhile lies behind the places that were read.
	err = r.look(ctx, func() {}, &pg.Statement{Text: undoneRow, Args: []any{ns, g.ID}, Each: func(scan pg.Scan) error {
		var seq pgtype.Int8
		err := scan(&seq)
		if g.Undone = (stream.Position{}); seq.Valid {
			g.Undone = stream.At(head.Epoch, seq.Int64)
		}
		return err
	}})
	if err != nil {
		return err
	}
	if lowest == store.NotRead {
		lowest = 0
	}
	if lowest > 0 {
		g.At = stream.At(head.Epoch, lowest)
	}
	m, err := g.Filter.Matcher()
	if err != nil {
		return fmt.Errorf("%w: the filter of group %q: %w", store.ErrCorrupt, g.Name, err)
	}
	topics, err := r.matching(ctx, m.Pattern, true)
	if err != nil {
		return err
	}
	text, args := countAll, []any{ns, lowest, head.Seq, most, places}
	if m.Pattern.String() != ">" {
		text, args = countTopics, append(args, topics.ids)
	}
	return r.look(ctx, func() {}, &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		looked := 0
		err := scan(&looked, &g.Behind)
		g.BehindMore = looked >= most
		return err
	}})
}

// freePlaces adds where the stripes are that nobody reads.
func (r *Room) freePlaces(ctx context.Context, group int64, places []int64) error {
	return r.look(ctx, func() {}, &pg.Statement{Text: freePlaces, Args: []any{r.pg.Namespace, group}, Each: func(scan pg.Scan) error {
		var stripe int16
		var at int64
		err := scan(&stripe, &at)
		if stripe >= 0 && int(stripe) < len(places) {
			places[stripe] = at
		}
		return err
	}})
}

// members lists members of a group, and where the stripes are that they read.
func (r *Room) members(ctx context.Context, group, after int64, n int, epoch uint32) (list []store.MemberInfo, places []int64, err error) {
	places = make([]int64, stream.Stripes)
	err = r.look(ctx, func() { list = nil },
		&pg.Statement{Text: listMembers, Args: []any{r.pg.Namespace, group, after, n}, Each: func(scan pg.Scan) error {
			var m store.MemberInfo
			var upto int64
			var behind, has []int16
			var at []int64
			if err := scan(&m.Hand, &m.Name, &m.Worker, &m.Joined, &m.Turned, &m.Turns, &m.Open, &upto, &behind, &at, &has); err != nil {
				return err
			}
			m.Joined, m.Turned, m.Turns, m.Stripes = m.Joined.UTC(), m.Turned.UTC(), m.Turns-1, len(has)
			m.At = stream.At(epoch, upto)
			for s, place := range store.StripesAt(has, upto, behind, at) {
				if s >= 0 && int(s) < len(places) {
					places[s] = place
				}
			}
			list = append(list, m)
			return nil
		}})
	return list, places, err
}

// Members lists members of a group by number, after one.
func (r *Room) Members(ctx context.Context, name string, after int64, n int) ([]store.MemberInfo, error) {
	if err := r.log.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	g, err := r.groupNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	head, err := r.log.Known(ctx, false)
	if err != nil {
		return nil, err
	}
	list, _, err := r.members(ctx, g.ID, after, n, head.Epoch)
	return list, err
}

func (r *Room) groupNamed(ctx context.Context, name string) (g store.GroupRow, err error) {
	var mode int16
	err = r.look(ctx, func() {}, &pg.Statement{Text: findGroup, Args: []any{r.pg.Namespace, name}, Each: func(scan pg.Scan) error {
		return scan(&g.ID, &mode, &g.Filter)
	}})
	if err == nil && g.ID == 0 {
		err = job.NotFound("group", name)
	}
	g.Name, g.Mode = name, stream.Mode(mode)
	return g, err
}

// findGroup is by consumer_group_name.
const findGroup = `SELECT id, mode, filter
FROM pawl.consumer_group
WHERE namespace = $1 AND name = $2`

// Parked lists what a group has given up and has no topic for.
func (r *Room) Parked(ctx context.Context, name string, after store.ParkedAfter, n int) (list []stream.Parked, err error) {
	if err := r.log.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	g, err := r.groupNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	head, err := r.log.Known(ctx, false)
	if err != nil {
		return nil, err
	}
	var topics []int32
	err = r.look(ctx, func() { list, topics = nil, nil },
		&pg.Statement{Text: listParked, Args: []any{r.pg.Namespace, g.ID, after.At, after.Seq, n}, Each: func(scan pg.Scan) error {
			p := stream.Parked{Group: name}
			var w log.Row
			if err := scan(append([]any{&p.Ref, &p.Failures, &p.Losses, &p.At, &p.Reason}, w.Dest()...)...); err != nil {
				return err
			}
			e := w.Entry(head.Epoch)
			p.At, p.Event, p.Bad = p.At.UTC(), &e.Event, e.Bad
			list, topics = append(list, p), append(topics, e.Number)
			return nil
		}})
	if err != nil {
		return nil, err
	}
	names, err := r.log.Names(ctx, topics)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Event.Topic = names[i]
	}
	return list, nil
}
