package log

import (
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

const (
	addEvent = `INSERT INTO pawl_event (namespace, topic, stripe, schema, appended, time, expires,
		id, key, type, source, content_type, version, rest, data)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	RETURNING seq`

	addDelayed = `INSERT INTO pawl_delayed (namespace, topic, stripe, schema, due, time, expires, ttl,
		id, key, type, source, content_type, rest, data)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	RETURNING number`
)

// Append puts events in, in order: those that are not due yet where they wait.
func Append(t *lite.Session, drafts []stream.Publication) ([]stream.PublishReply, error) {
	topics := map[string]topicRow{}
	for i := range drafts {
		if _, err := topicOf(t, topics, drafts[i].Topic, drafts[i].Versioned); err != nil {
			return nil, err
		}
	}
	if err := stream.CheckExpects(drafts, func(name string) bool { return topics[name].versioned }); err != nil {
		return nil, err
	}
	named := stream.AnyNames(drafts)
	sifted, err := sift(t, drafts, topics)
	if err != nil {
		return nil, err
	}
	now := lite.TimeOf(t.Now)
	versions, err := versionsOf(t, drafts, topics, func(i int) bool {
		return sifted[i].Fresh && topics[drafts[i].Topic].versioned && drafts[i].Due(now).IsZero()
	})
	if err != nil {
		return nil, err
	}
	fresh := make([]stream.SeenEvent, len(drafts))
	for i := range drafts {
		if !sifted[i].Fresh {
			continue
		}
		if fresh[i], err = put(t, &drafts[i], topics[drafts[i].Topic].number, versions[i]); err != nil {
			return nil, err
		}
	}
	of := stream.Resolve(drafts, sifted, fresh)
	list := make([]stream.PublishReply, len(drafts))
	for i := range of {
		list[i] = of[i].Reply(epoch, !sifted[i].Fresh)
	}
	if !named {
		return list, nil
	}
	return list, remember(t, drafts, of, topics)
}

// put appends an event, or keeps it until it is due.
func put(t *lite.Session, d *stream.Publication, topic, version int64) (e stream.SeenEvent, err error) {
	rest, err := d.Rest()
	if err != nil {
		return e, fmt.Errorf("%w event: %w", job.ErrInvalid, err)
	}
	stripe := int64(stream.Stripe(d.Topic, d.Key))
	if due := d.Due(lite.TimeOf(t.Now)); !due.IsZero() {
		number, err := t.On(addDelayed).Int(topic).Int(stripe).Int(int64(d.Schema)).Int(lite.Micros(due)).TimeOrNull(d.Time).TimeOrNull(d.Expires).
			IntOrNull(d.TTL.Microseconds()).Text(d.ID).Text(d.Key).Text(d.Type).Text(d.Source).Text(d.ContentType).
			BlobOrNull(rest).BlobOrNull(d.Data).One()
		return stream.SeenEvent{Seq: -number}, err
	}
	when := t.Now
	if !d.Time.IsZero() {
		when = lite.Micros(d.Time)
	}
	expires := d.Expires
	if expires.IsZero() && d.TTL > 0 {
		expires = lite.TimeOf(lite.Later(t.Now, d.TTL))
	}
	seq, err := t.On(addEvent).Int(topic).Int(stripe).Int(int64(d.Schema)).Int(t.Now).Int(when).TimeOrNull(expires).
		Text(d.ID).Text(d.Key).Text(d.Type).Text(d.Source).Text(d.ContentType).IntOrNull(version).BlobOrNull(rest).BlobOrNull(d.Data).One()
	return stream.SeenEvent{Seq: seq, Version: version}, err
}
