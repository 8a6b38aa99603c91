package log

import (
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

const (
	// readAllBack is by the number, and passes over other namespaces.
	readAllBack = `SELECT ` + eventColumns + `, e.namespace = ?
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.seq <= ?
	ORDER BY e.seq DESC
	LIMIT ?`

	// readTopicBack is by pawl_event_topic.
	readTopicBack = `SELECT ` + eventColumns + `, 1
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.namespace = ? AND e.topic = ? AND e.seq <= ?
	ORDER BY e.seq DESC
	LIMIT ?`

	// readNewest is by pawl_event_topic.
	readNewest = `SELECT appended
	FROM pawl_event
	WHERE namespace = ? AND topic = ?
	ORDER BY seq DESC
	LIMIT 1`
)

// EventsBack reads what lies up to a position, the newest first.
func EventsBack(c *lite.Snapshot, q *store.EventQuery) (page store.EventPage, err error) {
	limit := q.Limit
	if limit == 0 {
		limit = store.MaxEventPage
	}
	if err := checkPosition(c, q.After); err != nil {
		return page, err
	}
	head, err := Head(c)
	if err != nil {
		return page, err
	}
	from := q.After.Seq()
	if q.After.IsZero() {
		from = head.Seq()
	}
	var all []row
	if p := q.Match.Pattern; p.String() == ">" {
		all, err = rows(c.On(readAllBack).Int(from).Int(int64(limit)))
	} else {
		all, err = someBack(c, p, from, limit)
	}
	if err != nil {
		return page, err
	}
	events := make([]stream.Event, len(all))
	for i := range all {
		events[i] = all[i].event
	}
	now := lite.TimeOf(c.Clock.Now())
	return store.BackPage(q, head, limit, events, func(i int) bool { return all[i].ours && !events[i].Expired(now) }), nil
}

// someBack are the last events of the topics that match: a seek for each.
func someBack(c *lite.Snapshot, p stream.TopicPattern, from int64, limit int) (all []row, err error) {
	for name := ""; ; {
		topics, err := Topics(c, p, name, store.MaxEventPage)
		if err != nil {
			return nil, err
		}
		for _, t := range topics {
			more, err := rows(c.On(readTopicBack).Int(int64(t.ID)).Int(from).Int(int64(limit)))
			if err != nil {
				return nil, err
			}
			all = mergeBack(all, more, limit)
		}
		if len(topics) < store.MaxEventPage {
			return all, nil
		}
		name = topics[len(topics)-1].Name
	}
}

// mergeBack are the first of two lists, the newest first.
func mergeBack(a, b []row, limit int) (all []row) {
	for len(all) < limit && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].event.Position.Seq() > b[0].event.Position.Seq() {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}

// NewestEvents says when the newest event of each topic was appended.
func NewestEvents(c *lite.Snapshot, topics []store.TopicInfo) (map[int32]time.Time, error) {
	newest := map[int32]time.Time{}
	for _, t := range topics {
		q := c.On(readNewest).Int(int64(t.ID))
		for q.Step() {
			newest[t.ID] = q.ColTime(0)
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
	return newest, nil
}
