package groups

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// newsOf says of hands ($2, with their groups $3 and shelves $4) which version their
	// group has, NULL for those that are gone, and in how long something of theirs is due.
	//
	//   - hand_pkey, consumer_group_pkey, retry_due.
	newsOf = `SELECT n.place, (
		SELECT g.version
		FROM pawl.hand AS h
		JOIN pawl.consumer_group AS g ON g.namespace = h.namespace AND g.id = n.consumer_group
		WHERE h.namespace = n.namespace AND h.id = n.hand
	), (
		SELECT (extract(epoch FROM r.due - {now}) * 1000000)::bigint
		FROM pawl.retry AS r
		WHERE r.namespace = n.namespace AND r.shelf = n.shelf AND r.hand = 0 AND r.due > {now}
		ORDER BY r.namespace, r.shelf, r.due
		LIMIT 1
	)
FROM (
	SELECT $1::int AS namespace, n.*
	FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS n (hand, consumer_group, shelf, place)
	OFFSET 0
) AS n`

	// addAcked acknowledges what a hand has ($2), where that is there, and keeps it there until
	// the transaction has ended.
	//
	//   - hand_pkey, acked_pkey.
	addAcked = `WITH mine AS MATERIALIZED (
	SELECT id
	FROM pawl.hand
	WHERE namespace = $1 AND id = $2
	FOR KEY SHARE
), added AS (
	INSERT INTO pawl.acked (namespace, hand, seq)
	SELECT $1, id, $3
	FROM mine
	ON CONFLICT DO NOTHING
	RETURNING 1 AS one
)
SELECT EXISTS (SELECT FROM mine), EXISTS (SELECT FROM added)`
)

// News says what has happened to hands since their last turns.
func (r *Room) News(ctx context.Context, hands []store.Hand) (list []store.HandNews, err error) {
	if err := r.log.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	n := len(hands)
	ids, groups, shelves := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range hands {
		ids[i], groups[i], shelves[i] = hands[i].ID, hands[i].Group, hands[i].Shelf
	}
	err = r.pg.Retry(ctx, "look for news of groups", pg.Reading, func(ctx context.Context, _ bool) error {
		list = make([]store.HandNews, n)
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: newsOf, Args: []any{r.pg.Namespace, ids, groups, shelves},
			Each: func(scan pg.Scan) error {
				var place int64
				var version, due pgtype.Int8
				if err := scan(&place, &version, &due); err != nil {
					return err
				}
				news := &list[place-1]
				news.Gone, news.Version, news.Next = !version.Valid, version.Int64, -1
				if due.Valid {
					news.Next = time.Duration(due.Int64) * time.Microsecond
				}
				return nil
			}})
	})
	return list, err
}

// AckIn acknowledges a delivery in a user's transaction. Who takes over from the member waits
// for its end.
func (r *Room) AckIn(ctx context.Context, in pg.Session, h *store.Hand, seq int64) error {
	lives, added := false, false
	err := in.Run(ctx, &pg.Statement{Text: addAcked, Args: []any{r.pg.Namespace, h.ID, seq}, Each: func(scan pg.Scan) error {
		return scan(&lives, &added)
	}})
	switch {
	case err != nil:
		return err
	case !lives:
		return stream.ErrFeedLost
	case !added:
		return fmt.Errorf("%w: in a transaction", stream.ErrSettled)
	}
	return nil
}
