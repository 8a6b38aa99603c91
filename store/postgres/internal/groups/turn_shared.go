package groups

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

// run makes one turn. When its answer is lost it finds out whether it has happened.
func (u *shared) run(ctx context.Context) error {
	t, r := u.t, u.room
	if err := u.prepare(ctx); err != nil {
		return err
	}
	raised := int64(0)
	err := r.pg.Retry(ctx, "take a turn", pg.Always, func(ctx context.Context, again bool) error {
		if again {
			happened, err := u.happened(ctx, u.head)
			if u.same, u.known, u.put, u.suspect = true, true, happened, -1; err != nil || happened {
				return err
			}
		}
		u.reset()
		u.picked, u.missing, u.suspect, u.put, raised = nil, nil, -1, false, 0
		if u.needsTransaction() {
			if err := u.slow(ctx, &raised); err != nil {
				return err
			}
			return u.givenAgain(ctx)
		}
		u.open = t.Open
		steps := []*pg.Statement{{Text: takeTurn, Args: []any{r.LockKey(t.Hand.Shelf)}}}
		if len(t.Back) > 0 {
			steps = append(steps, u.putRows(rowsOf(t.Hand.ID, t.Back, nil)))
		}
		if len(t.Acked) > 0 {
			steps = append(steps, u.forgetAcked())
		}
		steps = append(steps, u.statement(t.Open, t.Done))
		if t.Want.N > 0 && t.Ahead == nil {
			steps = append(steps, u.given(len(t.Open)))
		}
		if u.news() {
			steps = append(steps, u.raised(&raised))
		}
		if err := r.pg.Send(ctx, r.pg.Work, pg.SharedLimits, steps...); err != nil {
			return err
		}
		return u.givenAgain(ctx)
	})
	if err != nil {
		return err
	}
	if !u.found || t.Settles && !u.put {
		return stream.ErrFeedLost
	}
	u.reply.Head = u.head.Position()
	if u.put {
		u.reply.Hand.Number = t.Hand.Number + 1
		for i := range u.reply.Given {
			if g := &u.reply.Given[i]; !g.Row {
				u.open = append(u.open, g.Event.Position.Seq())
			}
		}
		u.takeAhead()
	}
	if raised == u.reply.Hand.Version+1 {
		u.reply.Hand.Version = raised
	}
	return u.after(ctx, raised != 0)
}

// prepare makes the topic of dead letters, on a connection of its own.
func (u *turn) prepare(ctx context.Context) error {
	if len(u.t.Dead) == 0 || u.t.Letters == "" {
		return nil
	}
	return u.room.log.MakeTopics(ctx, []stream.Publication{u.t.Dead[0].Letter})
}

// reset is before a try.
func (u *turn) reset() {
	u.reply = u.t.NoReply()
	u.open, u.topicOf, u.found = nil, nil, false
}

// slow is a turn that takes several round trips: it stores dead letters, or has to know what
// users' transactions have acknowledged. Its commit waits for the disk.
func (u *shared) slow(ctx context.Context, raised *int64) error {
	r := u.room
	return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(s *pg.Transaction) error {
		open, done, err := u.settleIn(ctx, s)
		if err != nil {
			return err
		}
		u.open = append([]int64(nil), open...)
		lock := &pg.Statement{Text: lockShelf, Args: []any{r.LockKey(u.t.Hand.Shelf)}}
		return s.Commit(ctx, lock, u.statement(open, done), u.given(len(open)), u.raised(raised))
	})
}

// after names the topics of what was given, and tells others.
func (u *shared) after(ctx context.Context, news bool) error {
	r, h := u.room, &u.t.Hand
	if len(u.missing) > 0 {
		gone := &pg.Statement{Text: forgetRows, Args: []any{r.pg.Namespace, h.Shelf, u.missing, h.ID}}
		if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, gone); err != nil {
			return err
		}
		u.reply.More = true // a suspect that is gone keeps nobody waiting
	}
	if u.suspect > 0 && u.suspect != h.ID && len(u.reply.Given) > 0 { // who waited for it may go on
		raise := &pg.Statement{Text: raise, Args: []any{r.pg.Namespace, h.Group}, Each: func(pg.Scan) error { return nil }}
		if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, raise); err != nil {
			return err
		}
		news = true
	}
	if err := u.name(ctx); err != nil {
		return err
	}
	if len(u.t.Dead) > 0 && u.t.Letters != "" {
		r.log.Appended()
	}
	if news {
		r.tell()
	}
	return nil
}

// name gives events the names of their topics.
func (u *turn) name(ctx context.Context) error {
	names, err := u.room.log.Names(ctx, u.topicOf)
	for i := range names {
		u.reply.Given[i].Event.Topic = names[i]
	}
	return err
}

const (
	// whereTurn reads where a hand is.
	//
	//   - hand_at_pkey, backwards.
	whereTurn = `SELECT turn, open
FROM pawl.hand_at
WHERE namespace = $1 AND hand = $2
ORDER BY namespace DESC, hand DESC, turn DESC
LIMIT 1`

	// heldRows reads what a hand ($2) has beside what it knows of ($3), and fresh events that
	// it has ($4).
	//
	//   - retry_hand, event_pkey.
	heldRows = `SELECT r.seq, r.stripe, r.failures, r.losses, r.alone, true, ` + entryColumns + `
FROM (
	SELECT *
	FROM pawl.retry
	WHERE namespace = $1 AND hand = $2 AND hand > 0 AND seq <> ALL ($3::bigint[])
	OFFSET 0
) AS r
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[r.namespace]) AND e.seq = r.seq
UNION ALL
SELECT e.seq, e.stripe, 0, 0, false, false, ` + entryColumns + `
FROM (SELECT $1::int AS namespace, n.seq FROM unnest($4::bigint[]) AS n (seq) OFFSET 0) AS n
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[n.namespace]) AND e.seq = n.seq`
)

// happened reads what a turn gave whose answer was lost, if it has happened.
func (u *turn) happened(ctx context.Context, head log.Known) (bool, error) {
	u.reset()
	r, h := u.room, &u.t.Hand
	var at int64
	var open []int64
	where := &pg.Statement{Text: whereTurn, Args: []any{r.pg.Namespace, h.ID}, Each: func(scan pg.Scan) error {
		u.found = true
		return scan(&at, &open)
	}}
	if err := r.pg.Send(ctx, r.pg.Work, nil, where); err != nil {
		return false, err
	}
	if !u.found || at < h.Number || at > h.Number+1 {
		return false, stream.ErrFeedLost
	}
	if at == h.Number {
		return false, nil
	}
	if h.Mode == stream.Ordered {
		return false, stream.ErrFeedLost // how far its stripes were read is not known here
	}
	knew := map[int64]bool{}
	for _, seq := range u.t.Open {
		knew[seq] = true
	}
	fresh, rows := []int64{}, append([]int64{}, u.t.Rows...)
	for _, seq := range open {
		if knew[seq] {
			u.open = append(u.open, seq)
		} else {
			fresh = append(fresh, seq)
		}
	}
	for i := range u.t.Back {
		if u.t.Back[i].Kept { // others went back, and the same turn may have given them again
			rows = append(rows, u.t.Back[i].Seq)
		}
	}
	err := r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: heldRows, Args: []any{r.pg.Namespace, h.ID, rows, fresh},
		Each: func(scan pg.Scan) error {
			return u.readGiven(scan, head.Epoch)
		}})
	u.reply.More = true // it was not told how far it came
	return true, err
}

// readGiven reads a row of heldRows.
func (u *turn) readGiven(scan pg.Scan, epoch uint32) error {
	var w log.Row
	var g store.Given
	var of int64
	var failures, losses int32
	if err := scan(append([]any{&of, &g.Stripe, &failures, &losses, &g.Alone, &g.Row}, w.Dest()...)...); err != nil {
		return err
	}
	g.Failures, g.Losses = int(failures), int(losses)
	e := w.Entry(epoch)
	g.Event, g.Bad = e.Event, e.Bad
	u.reply.Given, u.topicOf = append(u.reply.Given, g), append(u.topicOf, e.Number)
	return nil
}
