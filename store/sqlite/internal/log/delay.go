package log

import (
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

const (
	// findDue is by pawl_delayed_due, and topics by their number.
	findDue = `SELECT d.number, t.name, d.key, coalesce(length(d.data), 0), d.topic, t.versioned
	FROM pawl_delayed AS d
	JOIN pawl_topic AS t ON t.id = d.topic
	WHERE d.namespace = ? AND d.due <= ?
	ORDER BY d.due, d.number
	LIMIT ?`

	// appendDue moves one by its number.
	appendDue = `INSERT INTO pawl_event (namespace, topic, stripe, schema, appended, time, expires,
		id, key, type, source, content_type, version, rest, data)
	SELECT namespace, topic, stripe, schema, ?2, coalesce(time, ?2), coalesce(expires, ?2 + ttl),
		id, key, type, source, content_type, ?3, rest, data
	FROM pawl_delayed
	WHERE namespace = ?1 AND number = ?4
	RETURNING seq`

	dropDelayed = `DELETE FROM pawl_delayed
	WHERE namespace = ? AND number = ?`

	// fillDelayed is by pawl_seen_delayed.
	fillDelayed = `UPDATE pawl_seen
	SET seq = ?2, version = ?3
	WHERE namespace = ?1 AND seq = -?4 AND seq < 0`

	// nextDue is by pawl_delayed_due.
	nextDue = `SELECT due
	FROM pawl_delayed
	WHERE namespace = ?
	ORDER BY due
	LIMIT 1`
)

// dueEvent is one whose time has come.
type dueEvent struct {
	number int64
	topic  topicRow
	draft  stream.Publication // its topic and key
}

// AppendDue appends events whose time has come, in the order of their times.
func AppendDue(t *lite.Session, limit int) (reply store.AppendDueReply, err error) {
	list, err := dueNow(t, limit)
	if err != nil {
		return reply, err
	}
	topics, drafts := map[string]topicRow{}, make([]stream.Publication, len(list))
	for i := range list {
		drafts[i] = list[i].draft
		topics[drafts[i].Topic] = list[i].topic
	}
	versions, err := versionsOf(t, drafts, topics, func(i int) bool { return list[i].topic.versioned })
	if err != nil {
		return reply, err
	}
	for i := range list {
		number := list[i].number
		seq, err := t.On(appendDue).Int(t.Now).IntOrNull(versions[i]).Int(number).One()
		if err != nil {
			return reply, err
		}
		if err := t.On(dropDelayed).Int(number).Exec(); err != nil {
			return reply, err
		}
		if err := t.On(fillDelayed).Int(seq).Int(versions[i]).Int(number).Exec(); err != nil {
			return reply, err
		}
	}
	reply.Appended, reply.Now = len(list), lite.TimeOf(t.Now)
	reply.Next, err = NextDue(&t.Snapshot)
	return reply, err
}

// dueNow finds them, up to the bounds of one call.
func dueNow(t *lite.Session, limit int) (list []dueEvent, err error) {
	q := t.On(findDue).Int(t.Now).Int(int64(limit))
	bytes := int64(0)
	for bytes < store.MaxDueBytes && q.Step() {
		e := dueEvent{number: q.ColInt(0), topic: topicRow{q.ColInt(4), q.ColBool(5)}}
		e.draft.Topic, e.draft.Key = q.ColText(1), q.ColText(2)
		bytes += q.ColInt(3)
		list = append(list, e)
	}
	return list, q.Done()
}

// NextDue is when the next one is due; zero: none waits.
func NextDue(c *lite.Snapshot) (due time.Time, err error) {
	q := c.On(nextDue)
	if q.Step() {
		due = q.ColTime(0)
	}
	return due, q.Done()
}
