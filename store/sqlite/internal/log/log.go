// Package log keeps the events of a namespace. It owns the tables pawl_event, pawl_topic,
// pawl_key_version, pawl_topic_trim, pawl_delayed, pawl_cursor and pawl_seen. There is one writer, so events are
// committed in the order of their numbers, and whoever reads sees all below the newest.
package log

import (
	"fmt"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "pawl_topic", Key: []string{"id"}, Ours: []string{"name"}, Except: "numbers of topics are those of all namespaces"},
	{
		Name: "pawl_event", Key: []string{"seq"},
		Users: []string{"data", "rest"},
		Ours:  []string{"id", "key", "type", "source", "content_type"}, Except: "numbers of events are those of all namespaces",
		Expiry: table.Expiry{Column: "expires", When: "expires IS NOT NULL", Index: "pawl_event_expires", Own: "the round trim, which counts what is left"},
	},
	{Name: "pawl_key_version", Key: []string{"namespace", "topic", "key"}},
	{Name: "pawl_topic_trim", Key: []string{"namespace", "topic"}},
	{
		Name: "pawl_delayed", Key: []string{"number"},
		Users: []string{"data", "rest"},
		Ours:  []string{"id", "key", "type", "source", "content_type"}, Except: "numbers of events are those of all namespaces",
	},
	{
		Name: "pawl_seen", Key: []string{"namespace", "topic", "key", "name"}, Ours: []string{"event"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_seen_expires"},
	},
	{Name: "pawl_cursor", Key: []string{"namespace", "name"}, Ours: []string{"filter", "holder"}},
}

// epoch is which life of the log this is: a file has one.
const epoch = 1

const (
	// findTopic is by pawl_topic_name.
	findTopic = `SELECT id, versioned
	FROM pawl_topic
	WHERE namespace = ? AND name = ?`

	addTopic = `INSERT INTO pawl_topic (namespace, name, versioned)
	VALUES (?, ?, ?)
	RETURNING id`

	setVersioned = `UPDATE pawl_topic
	SET versioned = 1
	WHERE namespace = ? AND id = ?`

	// listTopics is by pawl_topic_name.
	listTopics = `SELECT id, name, versioned
	FROM pawl_topic
	WHERE namespace = ? AND name >= ? AND name > ?
	ORDER BY name
	LIMIT ?`
)

// topicRow is what a transition knows of one.
type topicRow struct {
	number    int64
	versioned bool
}

// topicOf is a topic, which is made where it is new. One that is versioned once stays so.
func topicOf(t *lite.Session, known map[string]topicRow, name string, versioned bool) (found topicRow, err error) {
	found, ok := known[name]
	if !ok {
		q := t.On(findTopic).Text(name)
		if q.Step() {
			found = topicRow{q.ColInt(0), q.ColBool(1)}
		}
		if err := q.Done(); err != nil {
			return found, err
		}
	}
	switch {
	case found.number == 0:
		found.number, err = t.On(addTopic).Text(name).Bool(versioned).One()
		found.versioned = versioned
	case versioned && !found.versioned:
		err = t.On(setVersioned).Int(found.number).Exec()
		found.versioned = true
	}
	known[name] = found
	return found, err
}

// readHead reads the newest number, of all namespaces.
const readHead = `SELECT seq
	FROM sqlite_sequence
	WHERE ? > 0 AND name = 'pawl_event'`

// Head is how far may be read now.
func Head(c *lite.Snapshot) (stream.Position, error) {
	seq, err := c.On(readHead).One()
	return stream.At(epoch, seq), err
}

const eventColumns = `e.seq, t.name, e.schema, e.appended, e.time, e.expires, e.id, e.key, e.type, e.source, e.content_type, e.rest, e.data, e.version`

const (
	// readAll is by the number, and passes over other namespaces.
	readAll = `SELECT ` + eventColumns + `, e.namespace = ?
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.seq > ?
	ORDER BY e.seq
	LIMIT ?`

	// readTopic is by pawl_event_topic.
	readTopic = `SELECT ` + eventColumns + `, 1
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.namespace = ? AND e.topic = ? AND e.seq > ?
	ORDER BY e.seq
	LIMIT ?`
)

// Events reads what lies behind a position.
func Events(c *lite.Snapshot, q *store.EventQuery) (page store.EventPage, err error) {
	limit := q.Limit
	if limit == 0 {
		limit = store.MaxEventPage
	}
	if err := checkPosition(c, q.After); err != nil {
		return page, err
	}
	page.Next = q.After
	if page.Head, err = Head(c); err != nil {
		return page, err
	}
	var all []row
	if p := q.Match.Pattern; p.String() == ">" {
		all, err = rows(c.On(readAll).Int(q.After.Seq()).Int(int64(limit)))
	} else {
		all, err = some(c, p, q.After.Seq(), limit)
	}
	if err != nil {
		return page, err
	}
	now := lite.TimeOf(c.Clock.Now())
	for i := range all {
		r := &all[i]
		page.Next = r.event.Position
		if r.ours && !r.event.Expired(now) && q.Match.Match(&r.event) {
			page.Events = append(page.Events, r.event)
		}
	}
	page.Visited, page.More = len(all), len(all) == limit
	page.Trimmed, err = trimmedBehind(c, q.Match.Pattern, q.After)
	return page, err
}

// some are the first events of the topics that match: a seek for each.
func some(c *lite.Snapshot, p stream.TopicPattern, after int64, limit int) (all []row, err error) {
	for name := ""; ; {
		topics, err := Topics(c, p, name, store.MaxEventPage)
		if err != nil {
			return nil, err
		}
		for _, t := range topics {
			more, err := rows(c.On(readTopic).Int(int64(t.ID)).Int(after).Int(int64(limit)))
			if err != nil {
				return nil, err
			}
			all = merge(all, more, limit)
		}
		if len(topics) < store.MaxEventPage {
			return all, nil
		}
		name = topics[len(topics)-1].Name
	}
}

// merge are the first of two lists in order.
func merge(a, b []row, limit int) (all []row) {
	for len(all) < limit && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].event.Position.Seq() < b[0].event.Position.Seq() {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}

type row struct {
	event stream.Event
	ours  bool // of this namespace
}

func rows(q *lite.Query) (all []row, err error) {
	var last stream.Event
	for q.Step() {
		e, bad := event(q, &last)
		last = e
		if bad != nil {
			_ = q.Done()
			return nil, fmt.Errorf("event %s: %w", e.Position.Debug(), bad)
		}
		all = append(all, row{e, q.ColBool(14)})
	}
	return all, q.Done()
}

// event makes one of a row; bad is why not all of it could be read. What it says as the last one
// did is not made anew.
func event(q *lite.Query, last *stream.Event) (e stream.Event, bad error) {
	e = stream.Event{
		Position: stream.At(epoch, q.ColInt(0)), Topic: q.ColTextLike(1, last.Topic), Schema: int(q.ColInt(2)),
		Appended: lite.TimeOf(q.ColInt(3)), Time: lite.TimeOf(q.ColInt(4)), Expires: q.ColTime(5),
		ID: q.ColText(6), Key: q.ColTextLike(7, last.Key), Type: q.ColTextLike(8, last.Type), Source: q.ColTextLike(9, last.Source),
		ContentType: q.ColTextLike(10, last.ContentType), Data: q.ColBlob(12), Version: q.ColInt(13),
	}
	return e, e.SetRest(q.ColBlob(11))
}

// countDelayed is by pawl_delayed_topic.
const countDelayed = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_delayed
		WHERE namespace = ? AND topic = ?
		LIMIT ?
	)`

// TopicNamed is how a topic stands.
func TopicNamed(c *lite.Snapshot, name string) (s store.TopicState, err error) {
	q := c.On(findTopic).Text(name)
	if q.Step() {
		s.TopicInfo = store.TopicInfo{Name: name, ID: int32(q.ColInt(0)), Versioned: q.ColBool(1)}
	}
	if err := q.Done(); err != nil {
		return s, err
	}
	if s.ID == 0 {
		return s, job.NotFound("topic", name)
	}
	trim, err := trimOf(c, int64(s.ID))
	if err != nil {
		return s, err
	}
	if s.Kept = trim.Kept; trim.Low > 0 {
		s.Low = stream.At(epoch, trim.Low)
	}
	delayed, err := c.On(countDelayed).Int(int64(s.ID)).Int(store.MaxDelayedCount).One()
	if err != nil {
		return s, err
	}
	s.Delayed = int(delayed)
	newest, err := NewestEvents(c, []store.TopicInfo{s.TopicInfo})
	s.Newest = newest[s.ID]
	return s, err
}

// Topics lists up to n topics that match, by name, after one.
func Topics(c *lite.Snapshot, p stream.TopicPattern, after string, n int) (list []store.TopicInfo, err error) {
	prefix := p.Prefix()
	for {
		q := c.On(listTopics).Text(prefix).Text(after).Int(store.MaxEventPage)
		read, past := 0, false
		for q.Step() {
			t := store.TopicInfo{ID: int32(q.ColInt(0)), Name: q.ColText(1), Versioned: q.ColBool(2)}
			read++
			after = t.Name
			if past = past || !strings.HasPrefix(t.Name, prefix); !past && p.Match(t.Name) && len(list) < n {
				list = append(list, t)
			}
		}
		if err := q.Done(); err != nil || past || read < store.MaxEventPage || len(list) == n {
			return list, err
		}
	}
}
