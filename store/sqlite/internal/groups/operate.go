package groups

import (
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/stream"
)

const (
	// replayParked is by pawl_retry_parked, which finds the oldest.
	parkedNumbers = `SELECT shelf, seq
	FROM pawl_retry
	WHERE namespace = ? AND consumer_group = ? AND hand = -1
	ORDER BY due, seq
	LIMIT ?`

	parkedNumber = `SELECT shelf
	FROM pawl_retry
	WHERE namespace = ? AND consumer_group = ? AND hand = -1 AND seq = ?`

	replayRow = `UPDATE pawl_retry
	SET hand = 0, alone = 0, wants = 0, failures = 0, losses = 0, due = ?4, reason = ''
	WHERE namespace = ?1 AND shelf = ?2 AND seq = ?3 AND hand = -1`

	shelfLives = `SELECT 1
	FROM pawl_shelf
	WHERE namespace = ? AND id = ?`

	addRow = `INSERT INTO pawl_retry (namespace, shelf, seq, consumer_group, stripe, hand, wants, alone,
		failures, losses, due, reason)
	VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?, '')
	ON CONFLICT DO NOTHING`

	removeWaiting = `DELETE FROM pawl_retry
	WHERE namespace = ? AND consumer_group = ? AND hand <> -1`

	seekShelves = `UPDATE pawl_shelf
	SET upto = ?3
	WHERE namespace = ?1 AND consumer_group = ?2`

	seekStripes = `UPDATE pawl_stripe
	SET at = ?3, hand = 0
	WHERE namespace = ?1 AND consumer_group = ?2`

	removeHands = `DELETE FROM pawl_hand
	WHERE namespace = ? AND consumer_group = ?`

	removeAckedOf = `DELETE FROM pawl_acked
	WHERE namespace = ?1 AND hand IN (
		SELECT id
		FROM pawl_hand
		WHERE namespace = ?1 AND consumer_group = ?2
	)`

	pauseGroup = `UPDATE pawl_consumer_group
	SET paused = ?3
	WHERE namespace = ?1 AND id = ?2`
)

// deleteTexts remove a group with all that it has.
var deleteTexts = []string{
	removeAckedOf, removeHands,
	`DELETE FROM pawl_retry
	WHERE namespace = ? AND consumer_group = ?`,
	`DELETE FROM pawl_stripe
	WHERE namespace = ? AND consumer_group = ?`,
	`DELETE FROM pawl_shelf
	WHERE namespace = ? AND consumer_group = ?`,
	`DELETE FROM pawl_consumer_group
	WHERE namespace = ? AND id = ?`,
}

// Replay gives events again that were given up.
func Replay(t *lite.Session, r *store.GroupReplay, op store.Operator) (reply store.ReplayReply, err error) {
	g, err := GroupOf(&t.Snapshot, r.Group)
	if err != nil {
		return reply, err
	}
	var list [][2]int64 // shelf and number
	if r.All {
		q := t.On(parkedNumbers).Int(g.ID).Int(store.MaxReplay + 1)
		for q.Step() {
			list = append(list, [2]int64{q.ColInt(0), q.ColInt(1)})
		}
		if err := q.Done(); err != nil {
			return reply, err
		}
		if reply.More = len(list) > store.MaxReplay; reply.More {
			list = list[:store.MaxReplay]
		}
	}
	for _, seq := range r.Parked {
		shelf, err := t.On(parkedNumber).Int(g.ID).Int(seq).One()
		if err != nil {
			return reply, err
		}
		if shelf != 0 {
			list = append(list, [2]int64{shelf, seq})
		}
	}
	for _, p := range list {
		if err := replayParked(t, p[0], p[1], &reply); err != nil {
			return reply, err
		}
	}
	if err := replayLetters(t, &g, r.Letters, &reply); err != nil {
		return reply, err
	}
	if _, err := raised(t, g.ID); err != nil {
		return reply, err
	}
	return reply, settings.Audit(t, op, "replay group", r.Group, fmt.Sprintf("%d events", reply.Replayed))
}

func replayParked(t *lite.Session, shelf, seq int64, reply *store.ReplayReply) error {
	_, found, err := log.One(&t.Snapshot, seq)
	if err != nil {
		return err
	}
	lives, err := t.On(shelfLives).Int(shelf).Found()
	if err != nil {
		return err
	}
	if !found || !lives { // it can never be replayed
		reply.Gone++
		return t.On(forgetRow).Int(shelf).Int(seq).Exec()
	}
	n, err := t.On(replayRow).Int(shelf).Int(seq).Int(t.Now).Changes()
	reply.Replayed += int(n)
	return err
}

// replayLetters gives events again by the positions that their dead letters name.
func replayLetters(t *lite.Session, g *store.GroupRow, list []stream.Position, reply *store.ReplayReply) error {
	if len(list) == 0 {
		return nil
	}
	if err := g.Letters(); err != nil {
		return err
	}
	shelf, err := t.On(findShelf).Int(g.ID).Text("").One()
	if err != nil {
		return err
	}
	for _, p := range list {
		stripe, err := t.On(stripeOf).Int(p.Seq()).One()
		if err != nil {
			return err
		}
		if stripe == 0 || shelf == 0 || !log.Knows(p) {
			reply.Gone++
			continue
		}
		n, err := t.On(addRow).Int(shelf).Int(p.Seq()).Int(g.ID).Int(stripe - 1).Int(t.Now).Changes()
		if err != nil {
			return err
		}
		reply.Replayed += int(n)
	}
	return nil
}

// Seek puts a group somewhere else.
func Seek(t *lite.Session, name string, to stream.Position, op store.Operator) error {
	g, err := GroupOf(&t.Snapshot, name)
	if err != nil {
		return err
	}
	if err := log.CheckPosition(&t.Snapshot, to); err != nil {
		return err
	}
	for _, text := range []string{removeAckedOf, removeHands, removeWaiting} {
		if err := t.On(text).Int(g.ID).Exec(); err != nil {
			return err
		}
	}
	for _, text := range []string{seekShelves, seekStripes} {
		if err := t.On(text).Int(g.ID).Int(to.Seq()).Exec(); err != nil {
			return err
		}
	}
	if _, err := raised(t, g.ID); err != nil {
		return err
	}
	return settings.Audit(t, op, "seek group", name, to.String())
}

// Pause stops a group from taking events, or lets it go on.
func Pause(t *lite.Session, name string, paused bool, op store.Operator) error {
	g, err := GroupOf(&t.Snapshot, name)
	if err != nil {
		return err
	}
	if err := t.On(pauseGroup).Int(g.ID).Bool(paused).Exec(); err != nil {
		return err
	}
	if _, err := raised(t, g.ID); err != nil {
		return err
	}
	action := "resume group"
	if paused {
		action = "pause group"
	}
	return settings.Audit(t, op, action, name, "")
}

// Delete forgets a group.
func Delete(t *lite.Session, name string, op store.Operator) error {
	g, err := GroupOf(&t.Snapshot, name)
	if err != nil {
		return err
	}
	for _, text := range deleteTexts {
		if err := t.On(text).Int(g.ID).Exec(); err != nil {
			return err
		}
	}
	return settings.Audit(t, op, "delete group", name, "")
}
