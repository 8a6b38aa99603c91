package groups

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
)

const (
	readShelf = `SELECT upto
	FROM pawl_shelf
	WHERE namespace = ? AND id = ?`

	moveShelf = `UPDATE pawl_shelf
	SET upto = ?3
	WHERE namespace = ?1 AND id = ?2 AND upto < ?3`

	// dueRows are by pawl_retry_due.
	dueRows = `SELECT seq, stripe, failures, losses, wants
	FROM pawl_retry
	WHERE namespace = ? AND shelf = ? AND hand = 0 AND due <= ?
	ORDER BY due, seq
	LIMIT ?`

	// takeRow and wantRow are by primary key.
	takeRow = `UPDATE pawl_retry
	SET hand = ?4, alone = ?5, wants = 0
	WHERE namespace = ?1 AND shelf = ?2 AND seq = ?3`

	wantRow = `UPDATE pawl_retry
	SET wants = ?4
	WHERE namespace = ?1 AND shelf = ?2 AND seq = ?3`

	forgetRow = `DELETE FROM pawl_retry
	WHERE namespace = ? AND shelf = ? AND seq = ?`
)

// dueRow is one that waits and is due.
type dueRow struct {
	seq              int64
	stripe           int16
	failures, losses int
	wants            int64
}

// maxSuspects is how many due rows a turn looks through for one that must be alone.
const maxSuspects = 100

// fetchShared takes what was given back and is due, then new events behind the shelf.
func (u *turn) fetchShared() error {
	if u.Want.N < 1 || u.paused {
		return nil
	}
	rows, err := u.due(u.Want.N + maxSuspects)
	if err != nil {
		return err
	}
	if stop, err := u.suspect(rows); err != nil || stop {
		return err
	}
	for _, r := range rows {
		if len(u.reply.Given) == u.Want.N {
			return nil
		}
		if r.losses < store.SuspectAfter {
			if err := u.again(r, false); err != nil {
				return err
			}
		}
	}
	return u.fresh()
}

func (u *turn) due(limit int) (rows []dueRow, err error) {
	q := u.On(dueRows).Int(u.Hand.Shelf).Int(u.Now).Int(int64(limit))
	for q.Step() {
		rows = append(rows, dueRow{q.ColInt(0), int16(q.ColInt(1)), int(q.ColInt(2)), int(q.ColInt(3)), q.ColInt(4)})
	}
	return rows, q.Done()
}

// suspect gives one that must be alone, to a member that is idle; a busy one takes nothing
// else while it waits, unless another does that already.
func (u *turn) suspect(rows []dueRow) (stop bool, err error) {
	for _, r := range rows {
		if r.losses < store.SuspectAfter || !u.Want.Idle && r.wants != 0 && r.wants != u.Hand.ID {
			continue
		}
		if !u.Want.Idle {
			return true, u.On(wantRow).Int(u.Hand.Shelf).Int(r.seq).Int(u.Hand.ID).Exec()
		}
		u.news = u.news || r.wants != 0 && r.wants != u.Hand.ID // who waited for it may go on
		return true, u.again(r, true)
	}
	return false, nil
}

// again gives a row. One whose event is gone from the log goes, too.
func (u *turn) again(r dueRow, alone bool) error {
	e, found, err := log.One(&u.Snapshot, r.seq)
	if err != nil {
		return err
	}
	if !found {
		return u.On(forgetRow).Int(u.Hand.Shelf).Int(r.seq).Exec()
	}
	u.reply.Given = append(u.reply.Given, store.Given{
		Event: e.Event, Bad: e.Bad, Stripe: r.stripe, Failures: r.failures, Losses: r.losses, Alone: alone, Row: true,
	})
	return u.On(takeRow).Int(u.Hand.Shelf).Int(r.seq).Int(u.Hand.ID).Bool(alone).Exec()
}

// fresh takes new events behind the shelf.
func (u *turn) fresh() error {
	from, err := u.On(readShelf).Int(u.Hand.Shelf).One()
	if err != nil {
		return err
	}
	u.reply.From, u.reply.Upto = from, from
	upto := u.takeAhead(from)
	if u.reply.Taken == 0 {
		upto, err = u.read(log.Behind{From: from, Limit: visits(u.Match, u.Want.N-len(u.reply.Given))}, u.Want.N)
		if err != nil {
			return err
		}
		if !u.moved && len(u.reply.Given) == 0 {
			return nil // it is found as fast from where it was
		}
	}
	u.reply.Upto = max(from, upto)
	return u.On(moveShelf).Int(u.Hand.Shelf).Int(upto).Exec()
}

// read takes new events until there are n deliveries, and says how far it came.
func (u *turn) read(b log.Behind, n int) (upto int64, err error) {
	b.Pattern = u.Match.Pattern
	upto = b.From
	bytes, first, stopped := 0, true, false
	looked, err := log.Read(&u.Snapshot, b, func(at log.Number, e *log.Entry) bool {
		only := first // of any size
		first, u.moved = false, true
		if stopped = len(u.reply.Given) == n; stopped {
			return false
		}
		if at.Stripe != log.NotTaken {
			if bytes += len(e.Data); bytes > store.TurnBytes && !only {
				stopped = true
				return false
			}
			if e.Bad != nil || u.Match.Match(&e.Event) {
				if u.reply.Given == nil {
					u.reply.Given = make([]store.Given, 0, n)
				}
				u.reply.Given = append(u.reply.Given, store.Given{Event: e.Event, Bad: e.Bad, Stripe: at.Stripe})
			}
		}
		upto = at.Seq
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case stopped:
		u.reply.More = true
	case looked < b.Limit:
		return max(upto, u.reply.Head.Seq()), nil
	default:
		u.reply.More = len(u.reply.Given) < n
	}
	return upto, nil
}
