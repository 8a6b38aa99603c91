package groups

import (
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

const (
	// readHand is by primary key.
	readHand = `SELECT g.version, g.paused
	FROM pawl_hand AS h
	JOIN pawl_consumer_group AS g ON g.id = h.consumer_group
	WHERE h.namespace = ? AND h.id = ? AND h.turn = ?`

	// putHand is by primary key.
	putHand = `UPDATE pawl_hand
	SET turn = turn + 1, open = ?3, upto = ?4, behind = ?5, turned = ?6
	WHERE namespace = ?1 AND id = ?2`
)

// turn is one under way.
type turn struct {
	*lite.Session
	*store.Turn
	reply  store.TurnReply
	open   []int64
	paused bool
	moved  bool // something other than its deliveries has changed
	news   bool // for other members
}

// Turn settles what a member says and gives it more.
func Turn(s *lite.Session, t *store.Turn) (store.TurnReply, error) {
	u := &turn{Session: s, Turn: t, reply: t.NoReply()}
	if err := u.enter(); err != nil {
		return u.reply, err
	}
	if err := u.settle(); err != nil {
		return u.reply, err
	}
	if err := u.fetch(); err != nil {
		return u.reply, err
	}
	return u.reply, u.put()
}

// enter finds the hand by the turn that its member knows.
func (u *turn) enter() error {
	q := u.On(readHand).Int(u.Hand.ID).Int(u.Hand.Number)
	found := q.Step()
	if found {
		u.reply.Hand.Version, u.paused = q.ColInt(0), q.ColBool(1)
	}
	if err := q.Done(); err != nil {
		return err
	}
	if !found {
		return stream.ErrFeedLost
	}
	return nil
}

// fetch takes more.
func (u *turn) fetch() error {
	head, err := log.Head(&u.Snapshot)
	if err != nil {
		return err
	}
	u.reply.Head = head
	if u.Hand.Mode == stream.Ordered {
		err = u.fetchOrdered()
	} else {
		err = u.fetchShared()
	}
	if err != nil {
		return err
	}
	u.reply.Next, err = nextDue(&u.Snapshot, u.Now, u.Hand.Shelf)
	return err
}

// put writes the hand, and raises the group's version where there is news. A turn in which
// nothing has happened writes nothing: the hand stays at its number.
func (u *turn) put() (err error) {
	if !u.Settles && !u.moved && len(u.reply.Given)+u.reply.Taken == 0 {
		return nil
	}
	for i := range u.reply.Given {
		if g := &u.reply.Given[i]; !g.Row {
			u.open = append(u.open, g.Event.Position.Seq())
		}
	}
	for i := range u.reply.Taken {
		u.open = append(u.open, u.Ahead.Given[i].Event.Position.Seq())
	}
	h := &u.reply.Hand
	upto, behind, at := store.Places(h.Stripes)
	if err := u.On(putHand).Int(h.ID).BlobOrNull(pack(u.open)).Int(upto).BlobOrNull(packPlaces(behind, at)).Int(u.Now).Exec(); err != nil {
		return err
	}
	h.Number++
	if u.news {
		before := h.Version
		if h.Version, err = raised(u.Session, h.Group); h.Looked == before {
			h.Looked = h.Version // it was this member's own news
		}
	}
	return err
}

func packPlaces(behind []int16, at []int64) []byte {
	var list []int64
	for i, s := range behind {
		list = append(list, int64(s), at[i])
	}
	return pack(list)
}

func unpackPlaces(b []byte) (behind []int16, at []int64) {
	list := unpack(b)
	for i := 0; i+1 < len(list); i += 2 {
		behind, at = append(behind, int16(list[i])), append(at, list[i+1])
	}
	return behind, at
}

// nextDueText is by pawl_retry_due: the next that is not due yet.
const nextDueText = `SELECT due
	FROM pawl_retry
	WHERE namespace = ? AND shelf = ? AND hand = 0 AND due > ?
	ORDER BY due
	LIMIT 1`

// nextDue is in how long the next of what waits is due; negative: nothing is.
func nextDue(c *lite.Snapshot, now, shelf int64) (time.Duration, error) {
	due, err := c.On(nextDueText).Int(shelf).Int(now).One()
	if err != nil || due == 0 {
		return -1, err
	}
	return lite.TimeOf(due).Sub(lite.TimeOf(now)), nil
}
