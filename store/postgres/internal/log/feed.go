package log

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

// Known is how far may be read, as this process has last heard of it. It holds until the
// server has crashed: Life says which of its lives it is of.
type Known struct {
	Seq   int64
	Epoch uint32
	Life  uuid.UUID
	// Low is the highest low mark of a topic: who reads behind it meets nothing that was trimmed.
	Low int64
}

// Position is that of the head.
func (k Known) Position() stream.Position { return stream.At(k.Epoch, k.Seq) }

// known is the head that readers of this process share.
type known struct {
	mu      sync.Mutex
	head    Known
	appends int64 // by this process
	covered int64 // of them, by what the server has said
}

// ask comes before the server is asked, and put has what it gave.
func (k *known) ask() (appends int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.appends
}

// put keeps a head that covers so many appends.
func (k *known) put(h head, appends int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.covered = max(k.covered, appends)
	same := k.head.Epoch == h.epoch && k.head.Life == h.life
	if !same || h.seq > k.head.Seq { // it may go back for a moment, and what was read stays right
		k.head = Known{h.seq, h.epoch, h.life, h.low}
	}
}

// appended says that this process has appended events: the head may be further.
func (k *known) appended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.appends++
}

// Enter begins a call of another room, whose statements read the log.
func (r *Room) Enter(ctx context.Context) error { return r.enter(ctx) }

// Known is the head that was last heard of; fresh asks the server where this process has
// appended since it last did. Where there is none it is asked, too.
func (r *Room) Known(ctx context.Context, fresh bool) (Known, error) {
	k := &r.known
	k.mu.Lock()
	head, ask := k.head, k.head.Epoch == 0 || fresh && k.covered < k.appends
	k.mu.Unlock()
	if !ask {
		return head, nil
	}
	return r.AskHead(ctx)
}

// AskHead asks the server for the head.
func (r *Room) AskHead(ctx context.Context) (Known, error) {
	h, err := r.head(ctx)
	return Known{h.seq, h.epoch, h.life, h.low}, err
}

// Matching are the topics that a pattern matches, and the newest topic that there was before
// they were read: as long as it is the newest, there are no others.
func (r *Room) Matching(ctx context.Context, p stream.TopicPattern) (ids []int32, newest int32, err error) {
	ask := &pg.Statement{Text: newestTopic, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error { return scan(&newest) }}
	err = r.pg.Retry(ctx, "read topics", pg.Reading, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Work, nil, ask)
	})
	if err != nil || p.String() == ">" {
		return nil, newest, err
	}
	ids, err = r.matching(ctx, p)
	return ids, newest, err
}

// newestTopic is by topic_id, backwards.
const newestTopic = `SELECT id
FROM pawl.topic
WHERE namespace = $1 AND id > 0
ORDER BY namespace DESC, id DESC
LIMIT 1`

// NewestTopic is newestTopic for statements of others.
const NewestTopic = newestTopic

// StillSo, with a parameter and a bracket behind it, says whether what a process knows of the
// head still holds: the server is the one that it was, and has not crashed since that life.
const StillSo = `EXISTS (
		SELECT
		FROM pawl.log_life AS l
		CROSS JOIN pawl.epoch AS e
		WHERE l.one AND ` + sameServer + ` AND l.life = `

// CheckPosition refuses positions that are not of this log.
func (r *Room) CheckPosition(ctx context.Context, p stream.Position) error {
	return r.checkPosition(ctx, p)
}

// Columns are those of an event, as Entry reads them.
const Columns = eventColumns

// Entry is a row of events, and why not all of it could be read.
type Entry struct {
	stream.Event
	Bad    error
	Number int32 // of its topic, whose name is not known here
}

// Row is where an entry's columns are scanned to. One is used for many: each scan sets all of
// it, and bytes are never those of the last.
type Row struct {
	seq                            pgtype.Int8
	topic, schema                  pgtype.Int4
	appended, when, expires        pgtype.Timestamptz
	id, key, kind, source, content text
	rest, data                     []byte
	version                        pgtype.Int8
}

// text is a column that mostly has what it had in the row before: that is kept, not made anew.
type text string

// ScanBytes implements pgtype.BytesScanner.
func (t *text) ScanBytes(v []byte) error {
	if string(*t) != string(v) {
		*t = text(v)
	}
	return nil
}

// Dest are the places of the columns.
func (w *Row) Dest() []any {
	return []any{&w.seq, &w.topic, &w.schema, &w.appended, &w.when, &w.expires,
		&w.id, &w.key, &w.kind, &w.source, &w.content, &w.rest, &w.data, &w.version}
}

// Entry makes an entry of the columns.
func (w *Row) Entry(epoch uint32) Entry {
	e := Entry{Number: w.topic.Int32, Event: stream.Event{
		Position: stream.At(epoch, w.seq.Int64), Schema: int(w.schema.Int32), Appended: w.appended.Time.UTC(), Time: w.when.Time.UTC(),
		ID: string(w.id), Key: string(w.key), Type: string(w.kind), Source: string(w.source), ContentType: string(w.content),
		Data: w.data, Version: w.version.Int64,
	}}
	if w.expires.Valid {
		e.Expires = w.expires.Time.UTC()
	}
	if err := e.SetRest(w.rest); err != nil {
		e.Bad = fmt.Errorf("event %s: %w", e.Position.Debug(), err)
	}
	return e
}

// Reader reads rows of entries as the server sends them, which costs a third of scanning them
// to a Row.
type Reader struct {
	pg.Columns
	key string // of the last, which mostly has the next
}

// Entry reads the columns of one, in their order.
func (r *Reader) Entry(epoch uint32) (e Entry) {
	e.Position, e.Number, e.Schema = stream.At(epoch, r.Int8()), int32(r.Int4()), r.Int4()
	e.Appended, e.Time, e.Expires = r.Time(), r.Time(), r.Time()
	e.ID = r.Text()
	if key := r.Next(); string(key) != r.key {
		r.key = string(key)
	}
	e.Key, e.Type, e.Source, e.ContentType = r.key, r.Name(), r.Name(), r.Name()
	rest := r.Bytes()
	e.Data, e.Version = r.Bytes(), r.Int8()
	if err := e.SetRest(rest); err != nil {
		e.Bad = fmt.Errorf("event %s: %w", e.Position.Debug(), err)
	}
	return e
}

// MakeTopics makes the topics of events that are about to be appended, on a connection of the
// store's own.
func (r *Room) MakeTopics(ctx context.Context, drafts []stream.Publication) error {
	_, err := r.numbers(ctx, drafts)
	return err
}

// topicsBetween reads the topics of events behind a number ($2) up to another ($3), at most $4
// of them, and how many there were.
//
//   - event_pkey.
const topicsBetween = `SELECT e.topic, count(*)
FROM (
	SELECT topic
	FROM pawl.event
	WHERE namespace = $1 AND seq > $2 AND seq <= $3
	ORDER BY namespace, seq
	LIMIT $4
) AS e
GROUP BY e.topic`

// TopicsBetween names the topics of events behind one position up to another.
func (r *Room) TopicsBetween(ctx context.Context, after, upto stream.Position, limit int) (names []string, all bool, err error) {
	if err := r.enter(ctx); err != nil {
		return nil, false, err
	}
	defer r.pg.Leave()
	var topics []int32
	rows := 0
	err = r.pg.Retry(ctx, "read topics", pg.Reading, func(ctx context.Context, _ bool) error {
		topics, rows = nil, 0
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{
			Text: topicsBetween, Args: []any{r.pg.Namespace, after.Seq(), upto.Seq(), limit}, Each: func(scan pg.Scan) error {
				var topic int32
				n := 0
				err := scan(&topic, &n)
				topics, rows = append(topics, topic), rows+n
				return err
			},
		})
	})
	if err != nil {
		return nil, false, err
	}
	events := make([]stream.Event, len(topics))
	if err := r.nameAll(ctx, events, topics); err != nil {
		return nil, false, err
	}
	for i := range events {
		names = append(names, events[i].Topic)
	}
	return names, rows < limit, nil
}
