package log

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

const (
	// findTrim is by primary key.
	findTrim = `SELECT low, lost, counted, kept
	FROM pawl_topic_trim
	WHERE namespace = ? AND topic = ?`

	putTrim = `INSERT INTO pawl_topic_trim (namespace, topic, low, lost, counted, kept)
	VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT (namespace, topic) DO UPDATE
	SET low = excluded.low, lost = excluded.lost, counted = excluded.counted, kept = excluded.kept`

	// raiseTrim keeps the highest of all topics.
	raiseTrim = `INSERT INTO pawl_topic_trim (namespace, topic, low, lost, counted, kept)
	VALUES (?, 0, ?, ?, 0, 0)
	ON CONFLICT (namespace, topic) DO UPDATE
	SET low = max(low, excluded.low), lost = max(lost, excluded.lost)`

	// oldestEvents is by pawl_event_topic.
	oldestEvents = `SELECT seq, appended, expires, coalesce(length(data), 0) + coalesce(length(rest), 0)
	FROM pawl_event
	WHERE namespace = ? AND topic = ? AND seq > ?
	ORDER BY seq
	LIMIT ?`

	// countEvents is by pawl_event_topic, and reads no rows of the table.
	countEvents = `SELECT count(*), max(seq)
	FROM (
		SELECT seq
		FROM pawl_event
		WHERE namespace = ? AND topic = ? AND seq > ?
		ORDER BY seq
		LIMIT ?
	)`

	// dropEvents is by pawl_event_topic.
	dropEvents = `DELETE FROM pawl_event
	WHERE namespace = ? AND topic = ? AND seq > ? AND seq <= ?`

	// findExpired is by pawl_event_expires.
	findExpired = `SELECT seq, topic, coalesce(length(data), 0) + coalesce(length(rest), 0)
	FROM pawl_event
	WHERE namespace = ? AND expires IS NOT NULL AND expires <= ?
	ORDER BY expires
	LIMIT ?`

	// dropExpired is by primary key.
	dropExpired = `DELETE FROM pawl_event
	WHERE namespace = ? AND seq = ?`

	// uncount is by primary key.
	uncount = `UPDATE pawl_topic_trim
	SET kept = kept - 1
	WHERE namespace = ?1 AND topic = ?2 AND low < ?3 AND counted >= ?3`
)

func trimOf(c *lite.Snapshot, topic int64) (s store.TrimState, err error) {
	q := c.On(findTrim).Int(topic)
	if q.Step() {
		s = store.TrimState{Low: q.ColInt(0), Lost: q.ColInt(1), Counted: q.ColInt(2), Kept: q.ColInt(3)}
	}
	return s, q.Done()
}

// trimmedBehind reports whether retention has removed events of these topics behind a
// position.
func trimmedBehind(c *lite.Snapshot, p stream.TopicPattern, after stream.Position) (bool, error) {
	if after.IsZero() {
		return false, nil // it begins with the oldest that is kept
	}
	all, err := trimOf(c, 0)
	if err != nil || all.Lost <= after.Seq() || p.String() == ">" {
		return all.Lost > after.Seq(), err
	}
	for name := ""; ; {
		topics, err := Topics(c, p, name, store.MaxEventPage)
		if err != nil {
			return false, err
		}
		for _, t := range topics {
			if s, err := trimOf(c, int64(t.ID)); err != nil || s.Lost > after.Seq() {
				return err == nil, err
			}
		}
		if len(topics) < store.MaxEventPage {
			return false, nil
		}
		name = topics[len(topics)-1].Name
	}
}

// Trim removes events whose time is over.
func Trim(t *lite.Session, q *store.TrimRequest) (reply store.TrimReply, err error) {
	bytes := store.MaxTrimBytes
	if reply.Expired, err = trimExpired(t, q.Limit, &bytes); err != nil {
		return reply, err
	}
	left := q.Limit - reply.Expired
	reply.More = left <= 0 || bytes <= 0
	if q.Keep == nil || reply.More {
		reply.Next = q.After
		return reply, nil
	}
	all, err := stream.ParsePattern("topic", ">")
	if err != nil {
		return reply, err
	}
	topics, err := Topics(&t.Snapshot, all, q.After, store.MaxTrimTopics)
	if err != nil {
		return reply, err
	}
	counts := q.Limit * store.TrimCounts
	for _, of := range topics {
		if left <= 0 || bytes <= 0 || counts <= 0 {
			reply.More = true
			return reply, nil
		}
		if keep := q.Keep(of.Name); keep.Trims() {
			if err := trimTopic(t, int64(of.ID), keep, &left, &bytes, &counts); err != nil {
				return reply, err
			}
		}
		reply.Next, reply.Removed, reply.Counted = of.Name, q.Limit-reply.Expired-left, q.Limit*store.TrimCounts-counts
	}
	if len(topics) < store.MaxTrimTopics {
		reply.Next = ""
	}
	reply.More = left <= 0 || bytes <= 0 || counts <= 0
	return reply, nil
}

// trimTopic removes the oldest of one, and takes what it did from the bounds.
func trimTopic(t *lite.Session, topic int64, keep stream.TopicSettings, left, bytes, counts *int) error {
	s, err := trimOf(&t.Snapshot, topic)
	if err != nil {
		return err
	}
	was := s
	if keep.KeepCount > 0 {
		q := t.On(countEvents).Int(topic).Int(max(s.Counted, s.Low)).Int(int64(*counts))
		if q.Step() && q.ColInt(0) > 0 {
			s.Kept, s.Counted = s.Kept+q.ColInt(0), q.ColInt(1)
			*counts -= int(q.ColInt(0))
		}
		if err := q.Done(); err != nil {
			return err
		}
	}
	rows, err := oldest(t, topic, s.Low, *left)
	if err != nil {
		return err
	}
	n := s.Cut(rows, keep, lite.TimeOf(t.Now), bytes)
	if s == was {
		return nil
	}
	*left -= n
	if n > 0 {
		if err := t.On(dropEvents).Int(topic).Int(was.Low).Int(s.Low).Exec(); err != nil {
			return err
		}
		if err := t.On(raiseTrim).Int(s.Low).Int(s.Lost).Exec(); err != nil {
			return err
		}
	}
	return t.On(putTrim).Int(topic).Int(s.Low).Int(s.Lost).Int(s.Counted).Int(s.Kept).Exec()
}

func oldest(t *lite.Session, topic, low int64, limit int) (rows []store.TrimRow, err error) {
	q := t.On(oldestEvents).Int(topic).Int(low).Int(int64(limit))
	for q.Step() {
		rows = append(rows, store.TrimRow{Seq: q.ColInt(0), Appended: q.ColTime(1), Expires: q.ColTime(2), Bytes: int(q.ColInt(3))})
	}
	return rows, q.Done()
}

// trimExpired removes events that have expired, wherever they stand.
func trimExpired(t *lite.Session, limit int, bytes *int) (int, error) {
	var seqs, topics []int64
	q := t.On(findExpired).Int(t.Now).Int(int64(limit))
	for *bytes > 0 && q.Step() {
		seqs, topics = append(seqs, q.ColInt(0)), append(topics, q.ColInt(1))
		*bytes -= int(q.ColInt(2))
	}
	if err := q.Done(); err != nil {
		return 0, err
	}
	for i, seq := range seqs {
		if err := t.On(uncount).Int(topics[i]).Int(seq).Exec(); err != nil {
			return 0, err
		}
		if err := t.On(dropExpired).Int(seq).Exec(); err != nil {
			return 0, err
		}
	}
	return len(seqs), nil
}

// Trimmable says whether an event has expired: a look, which writes nothing.
func Trimmable(c *lite.Snapshot) (bool, error) {
	return c.On(findExpired).Int(c.Clock.Now()).Int(1).Found()
}
