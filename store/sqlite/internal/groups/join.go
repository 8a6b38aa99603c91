package groups

import (
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

const (
	// findGroup is by pawl_consumer_group_name.
	findGroup = `SELECT id, mode, filter
	FROM pawl_consumer_group
	WHERE namespace = ? AND name = ?`

	addGroup = `INSERT INTO pawl_consumer_group (namespace, name, mode, filter, made, version, paused)
	VALUES (?, ?, ?, ?, ?, 0, 0)
	RETURNING id`

	// raise says that there may be news for other members. By primary key.
	raise = `UPDATE pawl_consumer_group
	SET version = version + 1
	WHERE namespace = ? AND id = ?
	RETURNING version`

	// tell lets other processes hear of it: whoever listens reads this row anyway. By primary key.
	tell = `UPDATE pawl_namespace
	SET group_news = group_news + 1
	WHERE id = ?`

	// newsNow is by primary key.
	newsNow = `SELECT group_news
	FROM pawl_namespace
	WHERE id = ?`

	// findShelf is by pawl_shelf_member.
	findShelf = `SELECT id
	FROM pawl_shelf
	WHERE namespace = ? AND consumer_group = ? AND member = ?`

	addShelf = `INSERT INTO pawl_shelf (namespace, consumer_group, member, upto)
	VALUES (?, ?, ?, ?)
	RETURNING id`

	// keepShelf is by primary key.
	keepShelf = `UPDATE pawl_shelf
	SET expires = NULL
	WHERE namespace = ? AND id = ?`

	addStripe = `INSERT INTO pawl_stripe (namespace, consumer_group, stripe, hand, at)
	VALUES (?, ?, ?, 0, ?)`

	// findMember is by pawl_hand_member; that its worker lives, by primary key.
	findMember = `SELECT h.id, EXISTS (
		SELECT 1
		FROM pawl_worker AS w
		WHERE w.namespace = h.namespace AND w.id = h.worker AND w.lost IS NULL
	)
	FROM pawl_hand AS h
	WHERE h.namespace = ? AND h.consumer_group = ? AND h.member = ?`

	addHand = `INSERT INTO pawl_hand (namespace, consumer_group, shelf, worker, turn, upto, joined, turned, member)
	VALUES (?, ?, ?, ?, 1, 0, ?6, ?6, ?5)
	RETURNING id`
)

// raised says that there may be news for the other members of a group, and returns its version.
func raised(t *lite.Session, group int64) (version int64, err error) {
	if version, err = t.On(raise).Int(group).One(); err != nil {
		return 0, err
	}
	return version, t.On(tell).Exec()
}

// CountNews is how often any group of the namespace had news: who listens compares it with what it was.
func CountNews(c *lite.Snapshot) (int64, error) { return c.On(newsNow).One() }

// Join makes a member of a group, which is made where it is new.
func Join(t *lite.Session, j *store.GroupJoin) (h store.Hand, err error) {
	if err := log.CheckPosition(&t.Snapshot, j.Start); err != nil {
		return h, err
	}
	g, err := groupFor(t, j)
	if err != nil {
		return h, err
	}
	if err := g.Same(j); err != nil {
		return h, err
	}
	id, lives, err := memberNamed(t, g.ID, j.Member)
	switch {
	case err != nil:
		return h, err
	case id != 0 && lives && id != j.Was:
		return h, store.MemberLives(j)
	case id != 0:
		if err := end(t, id, id != j.Was); err != nil {
			return h, err
		}
	}
	h = store.Hand{Number: 1, Group: g.ID, Mode: g.Mode, Stripes: map[int16]int64{}, Looked: -1}
	of := ""
	if g.Mode == stream.FanOut {
		of = j.Member
	}
	if h.Shelf, err = t.On(findShelf).Int(g.ID).Text(of).One(); err != nil {
		return h, err
	}
	if h.Shelf == 0 {
		h.Shelf, err = t.On(addShelf).Int(g.ID).Text(of).Int(j.Start.Seq()).One()
	} else {
		err = t.On(keepShelf).Int(h.Shelf).Exec()
	}
	if err != nil {
		return h, err
	}
	if h.ID, err = t.On(addHand).Int(g.ID).Int(h.Shelf).Int(int64(j.Worker)).Text(j.Member).Int(t.Now).One(); err != nil {
		return h, err
	}
	h.Version, err = raised(t, g.ID)
	return h, err
}

// groupFor finds the group, or makes it.
func groupFor(t *lite.Session, j *store.GroupJoin) (g store.GroupRow, err error) {
	if g, err = groupNamed(&t.Snapshot, j.Group); err != nil || g.ID != 0 {
		return g, err
	}
	g = store.GroupRow{Name: j.Group, Mode: j.Mode, Filter: store.FilterText(j.Filter)}
	if g.ID, err = t.On(addGroup).Text(g.Name).Int(int64(g.Mode)).Text(g.Filter).Int(t.Now).One(); err != nil {
		return g, err
	}
	if g.Mode == stream.Ordered {
		for s := range int64(stream.Stripes) {
			if err := t.On(addStripe).Int(g.ID).Int(s).Int(j.Start.Seq()).Exec(); err != nil {
				return g, err
			}
		}
	}
	return g, nil
}

func groupNamed(c *lite.Snapshot, name string) (g store.GroupRow, err error) {
	q := c.On(findGroup).Text(name)
	if q.Step() {
		g = store.GroupRow{ID: q.ColInt(0), Name: name, Mode: stream.Mode(q.ColInt(1)), Filter: q.ColText(2)}
		if g.Mode > stream.FanOut {
			err = fmt.Errorf("%w: group %q has the mode %d", store.ErrCorrupt, name, g.Mode)
		}
	}
	if done := q.Done(); err == nil {
		err = done
	}
	return g, err
}

func memberNamed(t *lite.Session, group int64, name string) (id int64, lives bool, err error) {
	q := t.On(findMember).Int(group).Text(name)
	if q.Step() {
		id, lives = q.ColInt(0), q.ColBool(1)
	}
	return id, lives, q.Done()
}
