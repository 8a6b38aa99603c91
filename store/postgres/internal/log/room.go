package log

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "epoch", Key: []string{"one"}, Shared: true},
	{Name: "log_life", Key: []string{"one"}, Shared: true, Derived: true},
	{Name: "topic", Key: []string{"namespace", "name"}},
	{Name: "topic_trim", Key: []string{"namespace", "topic"}},
	{Name: "key_version", Key: []string{"namespace", "topic", "key"}},
	{
		Name: "delayed", Key: []string{"namespace", "due", "number"},
		Users: []string{"data", "rest"},
		Ours:  []string{"id", "key", "type", "source", "content_type"},
	},
	{
		Name: "event", Key: []string{"namespace", "seq"},
		Users:  []string{"data", "rest"},
		Ours:   []string{"id", "key", "type", "source", "content_type"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "event_expires", Own: "the round trim, which counts what is left"},
	},
	{
		Name: "event_writer", Key: []string{"namespace", "writer", "number"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "event_writer_expires"},
	},
	{
		Name: "seen", Key: []string{"namespace", "topic", "key", "name"}, Ours: []string{"event"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "seen_expires"},
	},
	{Name: "cursor", Key: []string{"namespace", "name"}, Ours: []string{"filter"}},
	{Name: "cursor_at", Key: []string{"namespace", "cursor", "turn"}},
}

// Plans are the statements of this room that find rows, with the indexes that must
// serve them.
var Plans = []pg.Plan{
	{Name: "readAll", Text: readAll, Indexes: []string{"event_pkey"}},
	{Name: "readTopics", Text: readTopics, Indexes: []string{"event_topic"}},
	{Name: "readLowTopics", Text: readLowTopics, Indexes: []string{"event_topic", "topic_trim_pkey"}},
	{Name: "findTrimmable", Text: findTrimmable, Indexes: []string{"event_topic", "topic_trim_pkey"}},
	{Name: "lockTrim", Text: lockTrim, Indexes: []string{"topic_trim_pkey"}},
	{Name: "lockTrims", Text: lockTrims, Indexes: []string{"topic_trim_pkey"}},
	{Name: "countEvents", Text: countEvents, Indexes: []string{"event_topic"}},
	{Name: "oldestEvents", Text: oldestEvents, Indexes: []string{"event_topic"}},
	{Name: "dropEvents", Text: dropEvents, Indexes: []string{"event_topic"}},
	{Name: "putTrim", Text: putTrim, Indexes: []string{"topic_trim_pkey"}},
	{Name: "findExpired", Text: findExpired, Indexes: []string{"event_expires"}},
	{Name: "dropExpired", Text: dropExpired, Indexes: []string{"event_pkey"}},
	{Name: "uncount", Text: uncount, Indexes: []string{"topic_trim_pkey"}},
	{Name: "readLost", Text: readLost, Indexes: []string{"topic_trim_pkey"}},
	{Name: "readAllBack", Text: readAllBack, Indexes: []string{"event_pkey"}},
	{Name: "readTopicsBack", Text: readTopicsBack, Indexes: []string{"event_topic"}},
	{Name: "readNewest", Text: readNewest, Indexes: []string{"event_topic"}},
	{Name: "readAgain", Text: readAgain, Indexes: []string{"event_pkey"}},
	{Name: "topicsBetween", Text: topicsBetween, Indexes: []string{"event_pkey"}},
	{Name: "newestTopic", Text: newestTopic, Indexes: []string{"topic_id"}},
	{Name: "nameTopics", Text: nameTopics, Indexes: []string{"topic_id"}},
	{Name: "findTopics", Text: findTopics, Indexes: []string{"topic_pkey"}},
	{Name: "listTopics", Text: listTopics, Indexes: []string{"topic_pkey"}},
	{Name: "readTopic", Text: readTopic, Indexes: []string{"topic_pkey", "topic_trim_pkey", "delayed_topic"}},
	{Name: "makeVersioned", Text: makeVersioned, Indexes: []string{"topic_pkey"}},
	{Name: "lockVersions", Text: lockVersions, Indexes: []string{"key_version_pkey"}},
	{Name: "lockDue", Text: lockDue, Indexes: []string{"delayed_pkey"}},
	{Name: "appendDue", Text: appendDue, Indexes: []string{"delayed_pkey"}},
	{Name: "fillDelayed", Text: fillDelayed, Indexes: []string{"seen_delayed"}},
	{Name: "nextDue", Text: nextDue, Indexes: []string{"delayed_pkey"}},
	{Name: "putVersions", Text: putVersions, Indexes: []string{"key_version_pkey"}},
	{Name: "findSeen", Text: findSeen, Indexes: []string{"seen_pkey"}},
	{Name: "fillSeen", Text: fillSeen, Indexes: []string{"seen_pkey"}},
	{Name: "lockCursor", Text: lockCursor, Indexes: []string{"cursor_pkey"}},
	{Name: "lockCursorAt", Text: lockCursorAt, Indexes: []string{"cursor_at_pkey"}},
	{Name: "putCursor", Text: putCursor, Indexes: []string{"cursor_at_pkey"}},
	{Name: "moveCursor", Text: moveCursor, Indexes: []string{"cursor_pkey", "cursor_at_pkey"}},
	{Name: "movedCursor", Text: movedCursor, Indexes: []string{"cursor_pkey", "cursor_at_pkey"}},
	{Name: "renewCursor", Text: renewCursor, Indexes: []string{"cursor_pkey", "cursor_at_pkey"}},
	{Name: "freeCursor", Text: freeCursor, Indexes: []string{"cursor_pkey", "cursor_at_pkey"}},
	{Name: "listCursors", Text: listCursors, Indexes: []string{"cursor_pkey", "cursor_at_pkey"}},
	{Name: "oneCursor", Text: oneCursor, Indexes: []string{"cursor_pkey", "cursor_at_pkey"}},
	{Name: "deleteCursor", Text: deleteCursor, Indexes: []string{"cursor_at_pkey"}},
}

// Room is the events of a namespace.
type Room struct {
	pg       *pg.DB
	settings *settings.Room
	hints    *hints.Room
	mark     int32 // the class of its marks, once it is prepared
	topics   topics
	writers  [writers]*writer
	newest   newest
	known    known

	preparing sync.Mutex
	prepared  atomic.Bool
}

func New(db *pg.DB, s *settings.Room, h *hints.Room) *Room {
	return &Room{pg: db, settings: s, hints: h}
}

// Appended tells other processes that events were committed.
func (r *Room) Appended() {
	r.known.appended()
	r.hints.Notifier.Say(store.Hint{Subject: store.SubjectTopic})
}

// prepare reads what is known of the log, once, and begins another life of it where the
// server is not the one that it was. It waits for the first use: who keeps no events needs
// no rights on the sequence.
func (r *Room) prepare(ctx context.Context) error {
	if r.prepared.Load() {
		return nil
	}
	r.preparing.Lock()
	defer r.preparing.Unlock()
	if r.prepared.Load() {
		return nil
	}
	err := r.pg.Retry(ctx, "open the log", pg.Always, func(ctx context.Context, _ bool) error {
		class := pg.Statement{Text: "SELECT mark FROM pawl.namespace WHERE id = $1", Args: []any{r.pg.Namespace},
			Each: func(scan pg.Scan) error { return scan(&r.mark) }}
		if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &class); err != nil {
			return err
		}
		return r.anchor(ctx)
	})
	r.prepared.Store(err == nil)
	return err
}

// enter begins a call.
func (r *Room) enter(ctx context.Context) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		r.pg.Leave()
		return err
	}
	return nil
}

// Start makes shared commits possible. The namespace is known.
func (r *Room) Start() {
	for i := range r.writers {
		r.writers[i] = startWriter(r)
	}
}

// Stop ends shared commits. No call is under way any more.
func (r *Room) Stop() {
	for _, w := range r.writers {
		if w != nil {
			w.gather.Close()
		}
	}
}
