package log

import (
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

// Behind asks for the numbers of events behind one.
type Behind struct {
	Pattern stream.TopicPattern
	From    int64
	Limit   int // rows that are looked at
	// Places, where it is given, is behind which number events of each stripe are taken.
	Places *[stream.Stripes]int64
}

// Number is an event's, and its stripe.
type Number struct {
	Seq    int64
	Stripe int16
}

const (
	// numbersAll is by the number, and passes over other namespaces.
	numbersAll = `SELECT seq, stripe, namespace = ?
	FROM pawl_event
	WHERE seq > ?
	ORDER BY seq
	LIMIT ?`

	// numbersOf is by pawl_event_topic, which has all of it.
	numbersOf = `SELECT seq, stripe, 1
	FROM pawl_event
	WHERE namespace = ? AND topic = ? AND seq > ?
	ORDER BY seq
	LIMIT ?`

	// eventsAll is numbersAll with the events, eventsOf numbersOf, of a topic whose name is known.
	eventsAll = `SELECT ` + eventColumns + `, e.stripe, e.namespace = ?
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.seq > ?
	ORDER BY e.seq
	LIMIT ?`

	eventsOf = `SELECT seq, '', schema, appended, time, expires,
		id, key, type, source, content_type, rest, data, version, stripe, 1
	FROM pawl_event
	WHERE namespace = ? AND topic = ? AND seq > ?
	ORDER BY seq
	LIMIT ?`

	// oneEvent is by primary key.
	oneEvent = `SELECT ` + eventColumns + `, e.namespace = ?
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.seq = ?`
)

// Numbers are those of the events behind one, in order: at most the limit, counting those
// that are looked at and not taken.
func Numbers(c *lite.Snapshot, b Behind) (all []Number, err error) {
	if b.Pattern.String() == ">" {
		return numbers(c.On(numbersAll).Int(b.From).Int(int64(b.Limit)), b)
	}
	for name := ""; ; {
		topics, err := Topics(c, b.Pattern, name, store.MaxEventPage)
		if err != nil {
			return nil, err
		}
		for _, t := range topics {
			more, err := numbers(c.On(numbersOf).Int(int64(t.ID)).Int(b.From).Int(int64(b.Limit)), b)
			if err != nil {
				return nil, err
			}
			all = mergeNumbers(all, more, b.Limit)
		}
		if len(topics) < store.MaxEventPage {
			return all, nil
		}
		name = topics[len(topics)-1].Name
	}
}

// Read hands over the events behind a number as Numbers does, until it is told to stop, and says
// how many it has looked at. The event of one that is not taken is empty. It is one statement
// where there is one topic, or all.
func Read(c *lite.Snapshot, b Behind, hand func(Number, *Entry) (goOn bool)) (looked int, err error) {
	if b.Pattern.String() == ">" {
		return readEach(c.On(eventsAll).Int(b.From).Int(int64(b.Limit)), b, "", hand)
	}
	topics, err := Topics(c, b.Pattern, "", 2)
	if err != nil || len(topics) == 0 {
		return 0, err
	}
	if len(topics) == 1 {
		t := topics[0]
		return readEach(c.On(eventsOf).Int(int64(t.ID)).Int(b.From).Int(int64(b.Limit)), b, t.Name, hand)
	}
	list, err := Numbers(c, b)
	if err != nil {
		return 0, err
	}
	for i, n := range list {
		var e Entry
		if n.Stripe != NotTaken {
			var found bool
			if e, found, err = One(c, n.Seq); err != nil {
				return i, err
			} else if !found {
				n.Stripe = NotTaken
			}
		}
		if !hand(n, &e) {
			return i + 1, nil
		}
	}
	return len(list), nil
}

// readEach hands over what a statement finds, of a topic where one is named.
func readEach(q *lite.Query, b Behind, topic string, hand func(Number, *Entry) bool) (looked int, err error) {
	var e, none Entry // one for all rows
	for q.Step() {
		looked++
		n := b.number(q, 0, 14, 15)
		this := &none
		if n.Stripe != NotTaken {
			if e.Event, e.Bad = event(q, &e.Event); topic != "" {
				e.Topic = topic
			}
			this = &e
		}
		if !hand(n, this) {
			break
		}
	}
	return looked, q.Done()
}

// number reads one, of columns for the number, the stripe, and whether it is of this namespace.
func (b *Behind) number(q *lite.Query, seq, stripe, ours int) Number {
	n := Number{q.ColInt(seq), int16(q.ColInt(stripe))}
	if !q.ColBool(ours) || b.Places != nil && (n.Stripe < 0 || n.Stripe >= stream.Stripes || n.Seq <= b.Places[n.Stripe]) {
		n.Stripe = NotTaken
	}
	return n
}

// NotTaken is the stripe of a number that was looked at only.
const NotTaken = -1

func numbers(q *lite.Query, b Behind) (list []Number, err error) {
	for q.Step() {
		list = append(list, b.number(q, 0, 1, 2))
	}
	return list, q.Done()
}

func mergeNumbers(a, b []Number, limit int) (all []Number) {
	for len(all) < limit && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].Seq < b[0].Seq {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}

// Entry is an event, or what is left of one that cannot be read.
type Entry struct {
	stream.Event
	Bad error
}

// One reads the event of a number.
func One(c *lite.Snapshot, seq int64) (e Entry, found bool, err error) {
	q := c.On(oneEvent).Int(seq)
	if q.Step() && q.ColBool(14) {
		found = true
		e.Event, e.Bad = event(q, &stream.Event{})
	}
	return e, found, q.Done()
}

// At is the position of a number.
func At(seq int64) stream.Position { return stream.At(epoch, seq) }

// Knows reports whether a position is of this log.
func Knows(p stream.Position) bool { return p.Epoch() == epoch }

// CheckPosition refuses positions that are not of this log.
func CheckPosition(c *lite.Snapshot, p stream.Position) error { return checkPosition(c, p) }

const (
	// newestEvent is by the number.
	newestEvent = `SELECT coalesce(max(seq), 0)
	FROM pawl_event`

	// anyBehind is by the number, and passes over other namespaces.
	anyBehind = `SELECT 1
	FROM pawl_event NOT INDEXED
	WHERE namespace = ? AND seq > ?
	LIMIT 1`
)

// fewBehind is how many events are looked at to know whether one is of this namespace.
const fewBehind = 100

// NewerThan is the newest event's number, and whether there may be one of this namespace behind
// another number.
func NewerThan(c *lite.Snapshot, after int64) (newest int64, ours bool, err error) {
	newest, err = c.Query(newestEvent).One()
	if err != nil || newest <= after || newest-after > fewBehind {
		return newest, newest > after, err
	}
	ours, err = c.On(anyBehind).Int(after).Found()
	return newest, ours, err
}

// topicsBetween is by the number, and passes over other namespaces.
const topicsBetween = `SELECT e.namespace = ?, t.name
	FROM pawl_event AS e
	JOIN pawl_topic AS t ON t.id = e.topic
	WHERE e.seq > ? AND e.seq <= ?
	ORDER BY e.seq
	LIMIT ?`

// TopicsBetween names the topics of events behind one number up to another.
func TopicsBetween(c *lite.Snapshot, after, upto int64, limit int) (names []string, all bool, err error) {
	n := 0
	q := c.On(topicsBetween).Int(after).Int(upto).Int(int64(limit))
	for q.Step() {
		n++
		if name := q.ColText(1); q.ColBool(0) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, n < limit, q.Done()
}
