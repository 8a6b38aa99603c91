package groups

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

const (
	// takeAcked and the others are by primary key.
	takeAcked = `DELETE FROM pawl_acked
	WHERE namespace = ? AND hand = ? AND seq = ?`

	removeRow = `DELETE FROM pawl_retry
	WHERE namespace = ? AND shelf = ? AND seq = ? AND hand = ?`

	putRow = `INSERT INTO pawl_retry (namespace, shelf, seq, consumer_group, stripe, hand, wants, alone,
		failures, losses, due, reason)
	VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?)
	ON CONFLICT (namespace, shelf, seq) DO UPDATE
	SET hand = excluded.hand, wants = 0, alone = 0, failures = excluded.failures, losses = excluded.losses,
		due = excluded.due, reason = excluded.reason`
)

// parked is the hand of what is given up and has no topic to go to.
const parked = -1

// settle writes what became of deliveries.
func (u *turn) settle() error {
	var told []int64
	for _, a := range u.Acked {
		n, err := u.On(takeAcked).Int(u.Hand.ID).Int(a.Seq).Changes()
		if err != nil {
			return err
		}
		if n > 0 {
			told = append(told, a.Seq)
		}
	}
	open, done, back, dead := u.Settle(told)
	u.open = append([]int64(nil), open...)
	for _, seq := range done {
		if err := u.On(removeRow).Int(u.Hand.Shelf).Int(seq).Int(u.Hand.ID).Exec(); err != nil {
			return err
		}
	}
	for i := range back {
		r := &back[i]
		hand := int64(0)
		if r.Kept {
			hand = u.Hand.ID
		}
		if err := u.row(r.Seq, r.Stripe, hand, r.Failures, r.Losses, lite.Later(u.Now, r.Delay), r.Reason); err != nil {
			return err
		}
		u.news = u.news || !r.Kept
	}
	return u.bury(dead)
}

// row writes what waits, is kept or parked.
func (u *turn) row(seq int64, stripe int16, hand int64, failures, losses int, due int64, reason string) error {
	h := &u.Hand
	return u.On(putRow).Int(h.Shelf).Int(seq).Int(h.Group).Int(int64(stripe)).Int(hand).
		Int(int64(failures)).Int(int64(losses)).Int(due).Text(reason).Exec()
}

// bury stores dead letters, with the turn that settles them.
func (u *turn) bury(dead []store.Buried) error {
	var letters []stream.Publication
	for i := range dead {
		b := &dead[i]
		if u.Letters == "" {
			if err := u.row(b.Seq, b.Stripe, parked, b.Failures, b.Losses, u.Now, b.Reason); err != nil {
				return err
			}
			continue
		}
		letters = append(letters, b.Letter)
		if err := u.On(removeRow).Int(u.Hand.Shelf).Int(b.Seq).Int(u.Hand.ID).Exec(); err != nil {
			return err
		}
	}
	if len(letters) == 0 {
		return nil
	}
	_, err := log.Append(u.Session, letters)
	return err
}
