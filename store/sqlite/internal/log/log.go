// Package log keeps the events of a namespace. It owns the tables pawl_event,
// pawl_topic, pawl_cursor and pawl_seen. There is one writer, so events are committed in the order of their numbers,
// and whoever reads sees all below the newest.
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
	findTopic = `SELECT id
	FROM pawl_topic
	WHERE namespace = ? AND name = ?`

	addTopic = `INSERT INTO pawl_topic (namespace, name)
	VALUES (?, ?)
	RETURNING id`

	// listTopics is by pawl_topic_name.
	listTopics = `SELECT id, name
	FROM pawl_topic
	WHERE namespace = ? AND name >= ? AND name > ?
	ORDER BY name
	LIMIT ?`

	addEvent = `INSERT INTO pawl_event (namespace, topic, stripe, schema, appended, time, expires,
		id, key, type, source, content_type, rest, data)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	RETURNING seq`
)

// Append puts events in, in order.
func Append(t *lite.Session, drafts []stream.Publication) ([]stream.PublishReply, error) {
	topics := map[string]int64{}
	list, seqs := make([]stream.PublishReply, len(drafts)), make([]int64, len(drafts))
	var sifted []stream.Sifted
	named := stream.AnyNames(drafts)
	if named {
		var err error
		if sifted, err = sift(t, drafts, topics); err != nil {
			return nil, err
		}
	}
	for i := range drafts {
		if named && !sifted[i].Fresh {
			continue
		}
		d := &drafts[i]
		topic, err := number(t, topics, d.Topic)
		if err != nil {
			return nil, err
		}
		rest, err := d.Rest()
		if err != nil {
			return nil, fmt.Errorf("%w event: %w", job.ErrInvalid, err)
		}
		when := t.Now
		if !d.Time.IsZero() {
			when = lite.Micros(d.Time)
		}
		expires := d.Expires
		if expires.IsZero() && d.TTL > 0 {
			expires = lite.TimeOf(lite.Later(t.Now, d.TTL))
		}
		seq, err := t.On(addEvent).Int(topic).Int(int64(stream.Stripe(d.Topic, d.Key))).Int(int64(d.Schema)).Int(t.Now).Int(when).TimeOrNull(expires).
			Text(d.ID).Text(d.Key).Text(d.Type).Text(d.Source).Text(d.ContentType).BlobOrNull(rest).BlobOrNull(d.Data).One()
		if err != nil {
			return nil, err
		}
		seqs[i] = seq
		list[i] = stream.PublishReply{ID: d.ID, Position: stream.At(epoch, seq)}
	}
	if !named {
		return list, nil
	}
	of := stream.Resolve(drafts, sifted, seqs)
	for i, e := range of {
		list[i] = stream.PublishReply{ID: e.ID, Position: stream.At(epoch, e.Seq), Duplicate: !sifted[i].Fresh}
	}
	return list, remember(t, drafts, of, topics)
}

// number is that of a topic, which is made where it is new.
func number(t *lite.Session, known map[string]int64, name string) (int64, error) {
	if n, ok := known[name]; ok {
		return n, nil
	}
	n, err := t.On(findTopic).Text(name).One()
	if err == nil && n == 0 {
		n, err = t.On(addTopic).Text(name).One()
	}
	known[name] = n
	return n, err
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

const eventColumns = `e.seq, t.name, e.schema, e.appended, e.time, e.expires, e.id, e.key, e.type, e.source, e.content_type, e.rest, e.data`

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
	for i := range all {
		r := &all[i]
		page.Next = r.event.Position
		if r.ours && q.Match.Match(&r.event) {
			page.Events = append(page.Events, r.event)
		}
	}
	page.Visited, page.More = len(all), len(all) == limit
	return page, nil
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
	for q.Step() {
		e := stream.Event{
			Position: stream.At(epoch, q.ColInt(0)), Topic: q.ColText(1), Schema: int(q.ColInt(2)), Appended: q.ColTime(3), Time: q.ColTime(4), Expires: q.ColTime(5),
			ID: q.ColText(6), Key: q.ColText(7), Type: q.ColText(8), Source: q.ColText(9), ContentType: q.ColText(10), Data: q.ColBlob(12),
		}
		if err := e.SetRest(q.ColBlob(11)); err != nil {
			_ = q.Done()
			return nil, fmt.Errorf("event %s: %w", e.Position.Debug(), err)
		}
		all = append(all, row{e, q.ColBool(13)})
	}
	return all, q.Done()
}

// Topics lists up to n topics that match, by name, after one.
func Topics(c *lite.Snapshot, p stream.TopicPattern, after string, n int) (list []store.TopicInfo, err error) {
	prefix := p.Prefix()
	for {
		q := c.On(listTopics).Text(prefix).Text(after).Int(store.MaxEventPage)
		read, past := 0, false
		for q.Step() {
			t := store.TopicInfo{ID: int32(q.ColInt(0)), Name: q.ColText(1)}
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
