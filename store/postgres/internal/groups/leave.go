package groups

import (
	"context"
	"errors"
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// lockMember locks a member that is to end, unless a user's transaction acknowledges
	// something of it now.
	//
	//   - hand_pkey, consumer_group_pkey.
	lockMember = `SELECT h.consumer_group, h.shelf, g.mode
FROM pawl.hand AS h
JOIN pawl.consumer_group AS g ON g.namespace = h.namespace AND g.id = h.consumer_group
WHERE h.namespace = $1 AND h.id = $2
FOR UPDATE OF h SKIP LOCKED`

	// removeTurn is by hand_at_pkey.
	removeTurn = `DELETE FROM pawl.hand_at
WHERE namespace = $1 AND hand = $2
RETURNING upto, behind, behind_at, open`

	// ackedBy is by acked_pkey.
	ackedBy = `DELETE FROM pawl.acked
WHERE namespace = $1 AND hand = $2
RETURNING seq`

	// countRows is by retry_hand.
	countRows = `SELECT count(*)
FROM pawl.retry
WHERE namespace = $1 AND hand = $2 AND hand > 0`

	// giveBackFresh makes rows of what a member had open ($4) without one: they wait.
	//
	//   - event_pkey.
	giveBackFresh = `INSERT INTO pawl.retry (namespace, shelf, consumer_group, seq, stripe, hand, failures, losses, due)
SELECT e.namespace, $2, $3, e.seq, e.stripe, 0, $5, $6, {now}
FROM (SELECT $1::int AS namespace, n.seq FROM unnest($4::bigint[]) AS n (seq) OFFSET 0) AS n
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[n.namespace]) AND e.seq = n.seq
ON CONFLICT DO NOTHING`

	// giveBackRows lets what a member had wait for others.
	//
	//   - retry_hand.
	giveBackRows = `UPDATE pawl.retry
SET hand = 0, losses = losses + $4, alone = false, due = {now},
	failures = failures + CASE WHEN $4 > 0 AND alone THEN 1 ELSE $3 END
WHERE namespace = $1 AND hand = $2 AND hand > 0`

	// unwant is by retry_suspect.
	unwant = `UPDATE pawl.retry AS r
SET wants = 0
FROM (
	SELECT namespace, shelf, seq
	FROM pawl.retry
	WHERE namespace = $1 AND shelf = $2 AND hand = 0 AND losses >= 2 AND wants = $3
	ORDER BY namespace, shelf, due
	OFFSET 0
) AS s
WHERE r.namespace = ANY (ARRAY[s.namespace]) AND r.shelf = s.shelf AND r.seq = s.seq`

	// removeHand is by hand_pkey.
	removeHand = `DELETE FROM pawl.hand
WHERE namespace = $1 AND id = $2`

	// expireShelf is by shelf_pkey.
	expireShelf = `UPDATE pawl.shelf
SET expires = {now} + $3 * interval '1 microsecond'
WHERE namespace = $1 AND id = $2`

	// emptyShelf is by retry_pkey, removeShelf and removeShelfAt by their keys.
	emptyShelf = `DELETE FROM pawl.retry
WHERE namespace = $1 AND shelf = $2 AND hand >= 0`

	removeShelf = `DELETE FROM pawl.shelf
WHERE namespace = $1 AND id = $2`

	removeShelfAt = `DELETE FROM pawl.shelf_at
WHERE namespace = $1 AND shelf = $2`

	// orphans are members whose worker is lost or absent.
	//
	//   - hand_worker steps through the workers, worker_pkey tells which live.
	orphans = `SELECT h.id
FROM pawl.hand AS h
WHERE h.namespace = $1 AND NOT EXISTS (
		SELECT
		FROM pawl.worker AS w
		WHERE w.namespace = h.namespace AND w.id = h.worker AND w.lost IS NULL
	)
LIMIT $2`
)

// Leave makes a last turn, gives back what is open, and removes the member.
func (r *Room) Leave(ctx context.Context, t *store.Turn) error {
	if err := r.log.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	u := &turn{room: r, t: t}
	if err := u.prepare(ctx); err != nil {
		return err
	}
	err := r.pg.Retry(ctx, "leave a group", pg.Always, func(ctx context.Context, again bool) error {
		u.reset()
		err := r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(s *pg.Transaction) error { return u.leaveIn(ctx, s) })
		if again && errors.Is(err, stream.ErrFeedLost) {
			return nil // it has happened, or others have done it
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(t.Dead) > 0 && t.Letters != "" {
		r.log.Appended()
	}
	r.tell()
	return nil
}

func (u *turn) leaveIn(ctx context.Context, s *pg.Transaction) error {
	r, h := u.room, &u.t.Hand
	open, done, err := u.settleIn(ctx, s)
	if err != nil {
		return err
	}
	if open == nil {
		open = []int64{}
	}
	if done == nil {
		done = []int64{}
	}
	upto, behind, at := store.Places(h.Stripes)
	put := &pg.Statement{Text: putOrdered, Args: []any{
		r.pg.Namespace, h.ID, h.Number, open, upto, behind, at, h.Shelf, []int64{}, false, done,
	}, Each: func(pg.Scan) error { return nil }}
	if err := s.Run(ctx, put); err != nil {
		return err
	}
	ended, err := r.end(ctx, s, h.ID, false)
	if err == nil && !ended {
		err = pg.Fault{Err: errHeld, Passing: true}.AsError()
	}
	if err != nil || h.Mode != stream.FanOut {
		return err
	}
	shelf := []any{r.pg.Namespace, h.Shelf}
	return s.Run(ctx, &pg.Statement{Text: emptyShelf, Args: shelf}, &pg.Statement{Text: removeShelf, Args: shelf},
		&pg.Statement{Text: removeShelfAt, Args: shelf})
}

var errHeld = errors.New("a transaction acknowledges something of the member")

// Lose takes members for dead.
func (r *Room) Lose(ctx context.Context, l *store.LoseMembers) (n int, err error) {
	if err := r.log.Enter(ctx); err != nil {
		return 0, err
	}
	defer r.pg.Leave()
	list := l.Hands
	if list == nil {
		err := r.pg.Retry(ctx, "look for lost members", pg.Reading, func(ctx context.Context, _ bool) error {
			list = nil
			return r.pg.Send(ctx, r.pg.Reserved, nil, &pg.Statement{Text: orphans, Args: []any{r.pg.Namespace, l.Limit},
				Each: func(scan pg.Scan) error {
					var id int64
					err := scan(&id)
					list = append(list, id)
					return err
				}})
		})
		if err != nil {
			return 0, err
		}
	}
	for _, id := range list {
		ended := false
		err := r.pg.Retry(ctx, "lose a member", pg.Always, func(ctx context.Context, _ bool) error {
			return r.pg.Transact(ctx, r.pg.Reserved, pg.UpkeepLimits, func(s *pg.Transaction) (err error) {
				ended, err = r.end(ctx, s, id, true)
				return err
			})
		})
		if err != nil {
			return n, err
		}
		if ended {
			n++
		}
	}
	if n > 0 {
		r.tell()
	}
	return n, nil
}

// end removes a member. What it had open waits for others: with a loss when it was lost, and
// a failure too where it was the only one. It reports whether there was such a member, and
// no user's transaction holds it.
func (r *Room) end(ctx context.Context, s pg.Session, hand int64, lost bool) (bool, error) {
	ns := r.pg.Namespace
	var group, shelf, upto, rows int64
	var mode int16
	var open, at, acked []int64
	var behind []int16
	member := &pg.Statement{Text: lockMember, Args: []any{ns, hand}, Each: func(scan pg.Scan) error { return scan(&group, &shelf, &mode) }}
	if err := s.Run(ctx, member); err != nil || member.Hits == 0 {
		return false, err
	}
	err := s.Run(ctx,
		&pg.Statement{Text: removeTurn, Args: []any{ns, hand}, Each: func(scan pg.Scan) error { return scan(&upto, &behind, &at, &open) }},
		&pg.Statement{Text: ackedBy, Args: []any{ns, hand}, Each: func(scan pg.Scan) error {
			var seq int64
			err := scan(&seq)
			acked = append(acked, seq)
			return err
		}})
	if err != nil {
		return false, err
	}
	left := open[:0]
	for _, seq := range open {
		if !slices.Contains(acked, seq) {
			left = append(left, seq)
		}
	}
	if acked == nil {
		acked = []int64{}
	}
	err = s.Run(ctx, &pg.Statement{Text: removeRows, Args: []any{ns, shelf, acked, hand}},
		&pg.Statement{Text: countRows, Args: []any{ns, hand}, Each: func(scan pg.Scan) error { return scan(&rows) }})
	if err != nil {
		return false, err
	}
	only, losses := 0, 0
	if lost {
		losses = 1
		if int(rows)+len(left) == 1 {
			only = 1
		}
	}
	if left == nil {
		left = []int64{}
	}
	steps := []*pg.Statement{
		{Text: giveBackFresh, Args: []any{ns, shelf, group, left, only, losses}},
		{Text: giveBackRows, Args: []any{ns, hand, only, losses}},
		{Text: unwant, Args: []any{ns, shelf, hand}},
		{Text: removeHand, Args: []any{ns, hand}},
	}
	if stream.Mode(mode) == stream.Ordered {
		free, err := r.freeAll(ctx, s, group, hand, upto, behind, at)
		if err != nil {
			return false, err
		}
		steps = append(steps, free)
	}
	if lost && stream.Mode(mode) == stream.FanOut {
		steps = append(steps, &pg.Statement{Text: expireShelf, Args: []any{ns, shelf, store.KeepShelf.Microseconds()}})
	}
	steps = append(steps, &pg.Statement{Text: raise, Args: []any{ns, group}, Each: func(pg.Scan) error { return nil }})
	return true, s.Run(ctx, steps...)
}

// freeAll writes where the stripes of a hand are.
func (r *Room) freeAll(ctx context.Context, s pg.Session, group, hand, upto int64, behind []int16, at []int64) (*pg.Statement, error) {
	var has []int16
	err := s.Run(ctx, &pg.Statement{Text: stripesOf, Args: []any{r.pg.Namespace, group, hand}, Each: func(scan pg.Scan) error {
		var stripe int16
		err := scan(&stripe)
		has = append(has, stripe)
		return err
	}})
	stripes, places := []int16{}, []int64{}
	for stripe, place := range store.StripesAt(has, upto, behind, at) {
		stripes, places = append(stripes, stripe), append(places, place)
	}
	return &pg.Statement{Text: freeStripes, Args: []any{r.pg.Namespace, group, hand, stripes, places}}, err
}
