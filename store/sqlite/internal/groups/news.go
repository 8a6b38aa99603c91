package groups

import (
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

// handVersion is by primary key.
const handVersion = `SELECT g.version
	FROM pawl_hand AS h
	JOIN pawl_consumer_group AS g ON g.id = h.consumer_group
	WHERE h.namespace = ? AND h.id = ?`

// News says what has happened to hands since their last turns.
func News(c *lite.Snapshot, now int64, hands []store.Hand) ([]store.HandNews, error) {
	list := make([]store.HandNews, len(hands))
	for i := range hands {
		q := c.On(handVersion).Int(hands[i].ID)
		n := &list[i]
		if n.Gone = !q.Step(); !n.Gone {
			n.Version = q.ColInt(0)
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
		var err error
		if n.Next, err = nextDue(c, now, hands[i].Shelf); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const (
	handLives = `SELECT 1
	FROM pawl_hand
	WHERE namespace = ? AND id = ?`

	addAcked = `INSERT INTO pawl_acked (namespace, hand, seq)
	VALUES (?, ?, ?)
	ON CONFLICT DO NOTHING`
)

// Ack acknowledges a delivery in a transaction: its member learns of it with its next turn, and
// one that takes over from it, too.
func Ack(t *lite.Session, h *store.Hand, seq int64) error {
	lives, err := t.On(handLives).Int(h.ID).Found()
	if err != nil {
		return err
	}
	if !lives {
		return stream.ErrFeedLost
	}
	n, err := t.On(addAcked).Int(h.ID).Int(seq).Changes()
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: in a transaction", stream.ErrSettled)
	}
	return err
}
