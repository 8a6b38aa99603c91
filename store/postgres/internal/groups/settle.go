package groups

import (
	"context"
	"slices"
	"strconv"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// parked is the hand of what is given up and has no topic to go to.
	parked = -1

	// putRows writes what waits ($8 is 0), is kept or parked, where the hand ($6) is at its
	// turn ($7), which it holds there.
	//
	//   - hand_at_pkey, retry_pkey.
	putRows = `WITH mine AS MATERIALIZED (
	SELECT 1 AS one
	FROM pawl.hand_at
	WHERE namespace = $1 AND hand = $6 AND turn = $7
	FOR UPDATE
)
INSERT INTO pawl.retry (namespace, shelf, consumer_group, seq, stripe, hand, failures, losses, due, reason)
SELECT $1, $2, $3, r.seq, r.stripe, r.hand, r.failures, r.losses, {now} + r.delay * interval '1 microsecond', r.reason
FROM mine
CROSS JOIN unnest($4::bigint[], $5::smallint[], $8::bigint[], $9::int[], $10::int[], $11::bigint[], $12::text[])
	AS r (seq, stripe, hand, failures, losses, delay, reason)
ORDER BY r.seq
ON CONFLICT (namespace, shelf, seq) DO UPDATE
SET hand = excluded.hand, wants = 0, alone = false, failures = excluded.failures, losses = excluded.losses,
	due = excluded.due, reason = excluded.reason`

	lockShelf = `SELECT pg_advisory_xact_lock($1)`

	// lockHand waits for users' transactions that acknowledge something of it.
	//
	//   - hand_pkey.
	lockHand = `SELECT 1
FROM pawl.hand
WHERE namespace = $1 AND id = $2
FOR UPDATE`

	// takeAcked is by acked_pkey.
	takeAcked = `DELETE FROM pawl.acked
WHERE namespace = $1 AND hand = $2 AND seq = ANY ($3::bigint[])
RETURNING seq`

	// lockTurn is by hand_at_pkey.
	lockTurn = `SELECT 1
FROM pawl.hand_at
WHERE namespace = $1 AND hand = $2 AND turn = $3
FOR UPDATE`

	// removeRows is by retry_pkey.
	removeRows = `DELETE FROM pawl.retry
WHERE namespace = $1 AND shelf = $2 AND seq = ANY ($3::bigint[]) AND hand = $4`
)

// row is what putRows writes.
type row struct {
	seq              int64
	stripe           int16
	hand             int64
	failures, losses int
	delay            int64 // microseconds
	reason           string
}

// rowsOf are the rows of what is given back or kept, and of what is parked.
func rowsOf(hand int64, back []store.Returned, dead []store.Buried) (list []row) {
	for i := range back {
		b := &back[i]
		w := row{seq: b.Seq, stripe: b.Stripe, failures: b.Failures, losses: b.Losses, delay: b.Delay.Microseconds(), reason: b.Reason}
		if b.Kept {
			w.hand = hand
		}
		list = append(list, w)
	}
	for i := range dead {
		d := &dead[i]
		list = append(list, row{seq: d.Seq, stripe: d.Stripe, hand: parked, failures: d.Failures, losses: d.Losses, reason: d.Reason})
	}
	return list
}

// put is the statement that writes rows for a hand.
func (u *turn) putRows(list []row) *pg.Statement {
	n := len(list)
	seq, stripe, hand, delay := make([]int64, n), make([]int16, n), make([]int64, n), make([]int64, n)
	failures, losses, reason := make([]int32, n), make([]int32, n), make([]string, n)
	for i, w := range list {
		seq[i], stripe[i], hand[i], delay[i] = w.seq, w.stripe, w.hand, w.delay
		failures[i], losses[i], reason[i] = int32(w.failures), int32(w.losses), w.reason
	}
	h := &u.t.Hand
	return &pg.Statement{Text: putRows, Args: []any{
		u.room.pg.Namespace, h.Shelf, h.Group, seq, stripe, h.ID, h.Number, hand, failures, losses, delay, reason,
	}}
}

// LockKey names a shelf to the server's advisory locks. Two that share one only take turns.
func (r *Room) LockKey(shelf int64) int64 { return r.pg.LockKey("shelf", strconv.FormatInt(shelf, 10)) }

// gate lets those who make, join, move and delete a group come one after the other: a member
// of a group that is deleted meanwhile would have none. A row would be locked out of turn.
func (r *Room) gate(group string) *pg.Statement {
	return &pg.Statement{Text: lockShelf, Args: []any{r.pg.LockKey("group", group)}}
}

// raised is the statement that says that there is news, and what it means for the member: what
// others have raised meanwhile it has not seen.
func (u *turn) raised(to *int64) *pg.Statement {
	return &pg.Statement{Text: raise, Args: []any{u.room.pg.Namespace, u.t.Hand.Group}, Each: func(scan pg.Scan) error { return scan(to) }}
}

// news reports whether a turn gives something back.
func (u *turn) news() bool {
	return slices.ContainsFunc(u.t.Back, func(b store.Returned) bool { return !b.Kept })
}

// needsTransaction reports whether a turn takes more than one round trip.
//
// A transaction that acknowledges and may be open still has to be waited for, and it holds the
// member's row: only where something depends on it, or handlers that acknowledge so would make
// each other wait.
func (u *turn) needsTransaction() bool { return len(u.t.Dead) > 0 || u.t.InDoubt() }

// forgetAcked removes what was acknowledged and is said to be done.
func (u *turn) forgetAcked() *pg.Statement {
	return &pg.Statement{Text: takeAcked, Args: []any{u.room.pg.Namespace, u.t.Hand.ID, u.t.AckedSeqs()},
		Each: func(pg.Scan) error { return nil }}
}

// settleIn writes what became of deliveries, in a transaction. It says what stays open and
// which rows are done.
func (u *turn) settleIn(ctx context.Context, s pg.Session) (open, done []int64, err error) {
	t, h, ns := u.t, &u.t.Hand, u.room.pg.Namespace
	var told []int64
	if len(t.Acked) > 0 {
		var steps []*pg.Statement
		if t.InDoubt() {
			steps = append(steps, &pg.Statement{Text: lockHand, Args: []any{ns, h.ID}})
		}
		steps = append(steps, &pg.Statement{Text: takeAcked, Args: []any{ns, h.ID, t.AckedSeqs()}, Each: func(scan pg.Scan) error {
			var seq int64
			err := scan(&seq)
			told = append(told, seq)
			return err
		}})
		if err := s.Run(ctx, steps...); err != nil {
			return nil, nil, err
		}
	}
	ours := &pg.Statement{Text: lockTurn, Args: []any{ns, h.ID, h.Number}, Each: func(pg.Scan) error { return nil }}
	if err := s.Run(ctx, ours); err != nil {
		return nil, nil, err
	}
	if ours.Hits == 0 {
		return nil, nil, stream.ErrFeedLost
	}
	open, done, back, dead := t.Settle(told)
	var steps []*pg.Statement
	var letters []stream.Publication
	if t.Letters != "" {
		var seqs []int64
		for i := range dead {
			letters, seqs = append(letters, dead[i].Letter), append(seqs, dead[i].Seq)
		}
		steps = append(steps, &pg.Statement{Text: removeRows, Args: []any{ns, h.Shelf, seqs, h.ID}})
		dead = nil
	}
	if list := rowsOf(h.ID, back, dead); len(list) > 0 {
		steps = append(steps, u.putRows(list))
	}
	if err := s.Run(ctx, steps...); err != nil {
		return nil, nil, err
	}
	if len(letters) > 0 {
		_, err = u.room.log.AppendIn(ctx, s, letters)
	}
	return open, done, err
}
