package groups

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// addGroup makes one ($2), once, with its stripes where it is ordered ($3 is 1).
	//
	//   - consumer_group_name.
	addGroup = `WITH made AS (
	INSERT INTO pawl.consumer_group (namespace, name, mode, filter, made)
	VALUES ($1, $2, $3, $4, {now})
	ON CONFLICT DO NOTHING
	RETURNING id, mode
)
INSERT INTO pawl.stripe (namespace, consumer_group, stripe, at)
SELECT $1, made.id, s.stripe, $5
FROM made
CROSS JOIN generate_series(0, $6::int - 1) AS s (stripe)
WHERE made.mode = 1`

	// findMember finds the member of a name, and whether its worker lives.
	//
	//   - hand_member, worker_pkey.
	findMember = `SELECT h.id, EXISTS (
		SELECT
		FROM pawl.worker AS w
		WHERE w.namespace = h.namespace AND w.id = h.worker AND w.lost IS NULL
	)
FROM pawl.hand AS h
WHERE h.namespace = $1 AND h.consumer_group = $2 AND h.member = $3`

	// addShelf makes the shelf of a group or, in fan-out, of a member ($3), once, where it
	// begins ($4); one that is there stays.
	//
	//   - shelf_member.
	addShelf = `WITH made AS (
	INSERT INTO pawl.shelf (namespace, consumer_group, member)
	VALUES ($1, $2, $3)
	ON CONFLICT DO NOTHING
	RETURNING id
)
INSERT INTO pawl.shelf_at (namespace, shelf, turn, upto)
SELECT $1, id, 0, $4
FROM made`

	// keepShelf is by shelf_member.
	keepShelf = `UPDATE pawl.shelf
SET expires = NULL
WHERE namespace = $1 AND consumer_group = $2 AND member = $3
RETURNING id`

	// addHand makes a member. Its turns begin with 1.
	addHand = `WITH made AS (
	INSERT INTO pawl.hand (namespace, consumer_group, shelf, worker, member, joined)
	VALUES ($1, $2, $3, $4, $5, {now})
	RETURNING id
)
INSERT INTO pawl.hand_at (namespace, hand, turn, turned)
SELECT $1, id, 1, {now}
FROM made
RETURNING hand`
)

// Join makes a member of a group, which is made where it is new.
func (r *Room) Join(ctx context.Context, j *store.GroupJoin) (h store.Hand, err error) {
	if err := r.log.Enter(ctx); err != nil {
		return h, err
	}
	defer r.pg.Leave()
	if err := r.log.CheckPosition(ctx, j.Start); err != nil {
		return h, err
	}
	err = r.pg.Retry(ctx, "join a group", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(s *pg.Transaction) error {
			h, err = r.joinIn(ctx, s, j)
			return err
		})
	})
	if err == nil {
		r.tell()
	}
	return h, err
}

func (r *Room) joinIn(ctx context.Context, s *pg.Transaction, j *store.GroupJoin) (h store.Hand, err error) {
	ns := r.pg.Namespace
	g := store.GroupRow{Name: j.Group}
	var mode int16
	err = s.Run(ctx, r.gate(j.Group),
		&pg.Statement{Text: addGroup, Args: []any{ns, j.Group, int16(j.Mode), store.FilterText(j.Filter), j.Start.Seq(), stream.Stripes}},
		&pg.Statement{Text: findGroup, Args: []any{ns, j.Group}, Each: func(scan pg.Scan) error { return scan(&g.ID, &mode, &g.Filter) }})
	if err != nil {
		return h, err
	}
	g.Mode = stream.Mode(mode)
	if err := g.Same(j); err != nil {
		return h, err
	}
	was, lives := int64(0), false
	find := &pg.Statement{Text: findMember, Args: []any{ns, g.ID, j.Member}, Each: func(scan pg.Scan) error { return scan(&was, &lives) }}
	if err := s.Run(ctx, find); err != nil {
		return h, err
	}
	switch {
	case was != 0 && lives && was != j.Was:
		return h, store.MemberLives(j)
	case was != 0:
		if ended, err := r.end(ctx, s, was, was != j.Was); err != nil {
			return h, err
		} else if !ended {
			return h, store.MemberLives(j) // a transaction acknowledges something of it
		}
	}
	h = store.Hand{Number: 1, Group: g.ID, Mode: g.Mode, Stripes: map[int16]int64{}, Looked: -1}
	of := ""
	if g.Mode == stream.FanOut {
		of = j.Member
	}
	err = s.Run(ctx,
		&pg.Statement{Text: addShelf, Args: []any{ns, g.ID, of, j.Start.Seq()}},
		&pg.Statement{Text: keepShelf, Args: []any{ns, g.ID, of}, Each: func(scan pg.Scan) error { return scan(&h.Shelf) }})
	if err != nil {
		return h, err
	}
	return h, s.Commit(ctx,
		&pg.Statement{Text: addHand, Args: []any{ns, g.ID, h.Shelf, int64(j.Worker), j.Member},
			Each: func(scan pg.Scan) error { return scan(&h.ID) }},
		&pg.Statement{Text: raise, Args: []any{ns, g.ID}, Each: func(scan pg.Scan) error { return scan(&h.Version) }})
}
