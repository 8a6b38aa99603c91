package groups

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
)

const (
	// membersOf is by pawl_hand_member.
	membersOf = `SELECT id
	FROM pawl_hand
	WHERE namespace = ? AND consumer_group = ?`

	// freeStripe, freeStripes and takeStripe are by primary key.
	freeStripe = `UPDATE pawl_stripe
	SET hand = 0, at = ?4
	WHERE namespace = ?1 AND consumer_group = ?2 AND stripe = ?3`

	freeStripes = `SELECT stripe, at
	FROM pawl_stripe
	WHERE namespace = ? AND consumer_group = ? AND stripe >= ? AND stripe < ? AND hand = 0`

	takeStripe = `UPDATE pawl_stripe
	SET hand = ?4
	WHERE namespace = ?1 AND consumer_group = ?2 AND stripe = ?3`

	// waitingRows are by pawl_retry_line.
	waitingRows = `SELECT seq, stripe, failures, losses, due
	FROM pawl_retry INDEXED BY pawl_retry_line
	WHERE namespace = ? AND shelf = ? AND hand = 0
	ORDER BY seq
	LIMIT ?`
)

// fetchOrdered takes from the member's own stripes: what was given back, then new events.
func (u *turn) fetchOrdered() error {
	if err := u.share(); err != nil {
		return err
	}
	if u.Want.N < 1 || u.paused {
		return nil
	}
	h := &u.reply.Hand
	waiting, err := waitingOf(&u.Snapshot, h.Shelf)
	if err != nil {
		return err
	}
	ours := map[int16]int64{}
	for s, at := range h.Stripes {
		if s >= h.First && s < h.End {
			ours[s] = at
		}
	}
	p := store.PlanOrdered(u.Turn, ours, waiting, lite.TimeOf(u.Now))
	for _, w := range p.Again {
		if err := u.again(dueRow{seq: w.Seq, stripe: w.Stripe, failures: w.Failures, losses: w.Losses}, p.Alone); err != nil {
			return err
		}
	}
	if p.Low == store.NotRead {
		return nil
	}
	upto, err := u.read(log.Behind{From: p.Low, Limit: visits(u.Match, p.Visits), Places: &p.From}, len(u.reply.Given)+p.N)
	if err != nil {
		return err
	}
	p.Read(h.Stripes, upto)
	return nil
}

func waitingOf(c *lite.Snapshot, shelf int64) (list []store.Waiting, err error) {
	q := c.On(waitingRows).Int(shelf).Int(store.MaxWaiting)
	for q.Step() {
		list = append(list, store.Waiting{
			Seq: q.ColInt(0), Stripe: int16(q.ColInt(1)), Failures: int(q.ColInt(2)), Losses: int(q.ColInt(3)), Due: q.ColTime(4),
		})
	}
	return list, q.Done()
}

// share gives stripes back that are to be another's, when nothing of them is open, and takes
// those that are to be this member's and nobody's now.
func (u *turn) share() error {
	h := &u.reply.Hand
	look := h.Version != h.Looked
	if look {
		members, err := numbersOf(u.On(membersOf).Int(h.Group))
		if err != nil {
			return err
		}
		h.First, h.End = store.StripesOf(members, h.ID)
		h.Looked = h.Version
	}
	kept := map[int16]int64{}
	for s, at := range h.Stripes {
		if s >= h.First && s < h.End || u.Busy[s] {
			kept[s] = at
			continue
		}
		if err := u.On(freeStripe).Int(h.Group).Int(int64(s)).Int(at).Exec(); err != nil {
			return err
		}
		u.news, u.moved = true, true
	}
	h.Stripes = kept
	if !look {
		return nil
	}
	q := u.On(freeStripes).Int(h.Group).Int(int64(h.First)).Int(int64(h.End))
	var taken []int16
	for q.Step() {
		taken = append(taken, int16(q.ColInt(0)))
		kept[int16(q.ColInt(0))] = q.ColInt(1)
	}
	if err := q.Done(); err != nil {
		return err
	}
	u.moved = u.moved || len(taken) > 0
	for _, s := range taken {
		if err := u.On(takeStripe).Int(h.Group).Int(int64(s)).Int(h.ID).Exec(); err != nil {
			return err
		}
	}
	return nil
}

func numbersOf(q *lite.Query) (list []int64, err error) {
	for q.Step() {
		list = append(list, q.ColInt(0))
	}
	return list, q.Done()
}
