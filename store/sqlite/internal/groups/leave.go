package groups

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

const (
	// oneHand is by primary key.
	oneHand = `SELECT h.consumer_group, h.shelf, h.upto, h.behind, h.open, g.mode
	FROM pawl_hand AS h
	JOIN pawl_consumer_group AS g ON g.id = h.consumer_group
	WHERE h.namespace = ? AND h.id = ?`

	// stripesOf is by primary key: a group has few.
	stripesOf = `SELECT stripe
	FROM pawl_stripe
	WHERE namespace = ? AND consumer_group = ? AND hand = ?`

	ackedBy = `SELECT seq
	FROM pawl_acked
	WHERE namespace = ? AND hand = ?`

	stripeOf = `SELECT stripe + 1
	FROM pawl_event
	WHERE namespace = ? AND seq = ?`

	// rowsOf, giveBackRows and loseRows are by pawl_retry_hand.
	rowsOf = `SELECT count(*)
	FROM pawl_retry
	WHERE namespace = ? AND hand = ?`

	giveBackRows = `UPDATE pawl_retry
	SET hand = 0, alone = 0, due = ?3
	WHERE namespace = ?1 AND hand = ?2`

	loseRows = `UPDATE pawl_retry
	SET hand = 0, losses = losses + 1, failures = failures + max(alone, ?4), alone = 0, due = ?3
	WHERE namespace = ?1 AND hand = ?2`

	// unwant is by pawl_retry_due.
	unwant = `UPDATE pawl_retry
	SET wants = 0
	WHERE namespace = ? AND shelf = ? AND hand = 0 AND wants = ?`

	removeHand = `DELETE FROM pawl_hand
	WHERE namespace = ? AND id = ?`

	removeAcked = `DELETE FROM pawl_acked
	WHERE namespace = ? AND hand = ?`

	// expireShelf and removeShelf are by primary key.
	expireShelf = `UPDATE pawl_shelf
	SET expires = ?3
	WHERE namespace = ?1 AND id = ?2`

	removeShelf = `DELETE FROM pawl_shelf
	WHERE namespace = ? AND id = ?`

	emptyShelf = `DELETE FROM pawl_retry
	WHERE namespace = ? AND shelf = ? AND hand >= 0`

	// orphans are by pawl_hand_worker and the primary key of workers.
	orphans = `SELECT h.id
	FROM pawl_hand AS h
	WHERE h.namespace = ?1 AND NOT EXISTS (
		SELECT 1
		FROM pawl_worker AS w
		WHERE w.namespace = h.namespace AND w.id = h.worker AND w.lost IS NULL
	)
	LIMIT ?2`
)

// Leave makes a last turn, gives back what is open, and removes the member.
func Leave(s *lite.Session, t *store.Turn) error {
	last := *t
	last.Want = stream.Want{}
	u := &turn{Session: s, Turn: &last, reply: store.TurnReply{Hand: t.Hand}}
	if err := u.enter(); err != nil {
		return err
	}
	if err := u.settle(); err != nil {
		return err
	}
	if err := u.put(); err != nil {
		return err
	}
	if err := end(s, t.Hand.ID, false); err != nil {
		return err
	}
	if t.Hand.Mode != stream.FanOut {
		return nil
	}
	if err := s.On(emptyShelf).Int(t.Hand.Shelf).Exec(); err != nil {
		return err
	}
	return s.On(removeShelf).Int(t.Hand.Shelf).Exec()
}

// Lose takes members for dead.
func Lose(t *lite.Session, l *store.LoseMembers) (n int, err error) {
	list := l.Hands
	if list == nil {
		if list, err = numbersOf(t.On(orphans).Int(int64(l.Limit))); err != nil {
			return 0, err
		}
	}
	for _, id := range list {
		if err := end(t, id, true); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// ending is a member that ends, as others see it.
type ending struct {
	group, shelf int64
	mode         stream.Mode
	open         []int64
	stripes      map[int16]int64
}

func memberOf(t *lite.Session, hand int64) (m ending, found bool, err error) {
	q := t.On(oneHand).Int(hand)
	var upto int64
	var behind, open []byte
	if found = q.Step(); found {
		m.group, m.shelf, upto, behind, open, m.mode = q.ColInt(0), q.ColInt(1), q.ColInt(2), q.ColBlob(3), q.ColBlob(4), stream.Mode(q.ColInt(5))
	}
	if err := q.Done(); err != nil || !found {
		return m, false, err
	}
	m.open = unpack(open)
	if m.mode == stream.Ordered {
		has, err := numbersOf(t.On(stripesOf).Int(m.group).Int(hand))
		if err != nil {
			return m, false, err
		}
		var list []int16
		for _, s := range has {
			list = append(list, int16(s))
		}
		places, at := unpackPlaces(behind)
		m.stripes = store.StripesAt(list, upto, places, at)
	}
	return m, true, nil
}

// end removes a member. What it had open waits for others: with a loss when it was lost, and
// a failure too where it was the only one.
func end(t *lite.Session, hand int64, lost bool) error {
	m, found, err := memberOf(t, hand)
	if err != nil || !found {
		return err
	}
	if err := giveBack(t, hand, &m, lost); err != nil {
		return err
	}
	for s, at := range m.stripes {
		if err := t.On(freeStripe).Int(m.group).Int(int64(s)).Int(at).Exec(); err != nil {
			return err
		}
	}
	if err := t.On(unwant).Int(m.shelf).Int(hand).Exec(); err != nil {
		return err
	}
	if lost && m.mode == stream.FanOut {
		if err := t.On(expireShelf).Int(m.shelf).Int(lite.Later(t.Now, store.KeepShelf)).Exec(); err != nil {
			return err
		}
	}
	if err := t.On(removeHand).Int(hand).Exec(); err != nil {
		return err
	}
	_, err = raised(t, m.group)
	return err
}

// giveBack makes what a member has open wait for others.
func giveBack(t *lite.Session, hand int64, m *ending, lost bool) error {
	acked, err := numbersOf(t.On(ackedBy).Int(hand))
	if err != nil {
		return err
	}
	open := map[int64]bool{}
	for _, seq := range m.open {
		open[seq] = true
	}
	for _, seq := range acked {
		delete(open, seq)
		if err := t.On(removeRow).Int(m.shelf).Int(seq).Int(hand).Exec(); err != nil {
			return err
		}
	}
	rows, err := t.On(rowsOf).Int(hand).One()
	if err != nil {
		return err
	}
	only, losses := int64(0), int64(0)
	if lost {
		losses = 1
		if int(rows)+len(open) == 1 {
			only = 1
		}
	}
	u := &turn{Session: t, Turn: &store.Turn{Hand: store.Hand{Shelf: m.shelf, Group: m.group}}}
	for _, seq := range m.open {
		if !open[seq] {
			continue
		}
		stripe, err := t.On(stripeOf).Int(seq).One()
		if err != nil {
			return err
		}
		if stripe == 0 {
			continue // its event is gone from the log
		}
		if err := u.row(seq, int16(stripe-1), 0, int(only), int(losses), t.Now, ""); err != nil {
			return err
		}
	}
	if lost {
		err = t.On(loseRows).Int(hand).Int(t.Now).Int(only).Exec()
	} else {
		err = t.On(giveBackRows).Int(hand).Int(t.Now).Exec()
	}
	if err != nil || len(acked) == 0 {
		return err
	}
	return t.On(removeAcked).Int(hand).Exec()
}
