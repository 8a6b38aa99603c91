package groups

import (
	"context"
	"sync"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/stream"
)

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "consumer_group", Key: []string{"namespace", "id"}, Ours: []string{"name", "filter"}},
	{
		Name: "shelf", Key: []string{"namespace", "id"}, Ours: []string{"member"},
		Expiry: table.Expiry{Column: "expires", When: "expires IS NOT NULL", Index: "shelf_expires"},
	},
	{Name: "shelf_at", Key: []string{"namespace", "shelf", "turn"}},
	{Name: "hand", Key: []string{"namespace", "id"}, Ours: []string{"member"}},
	{Name: "hand_at", Key: []string{"namespace", "hand", "turn"}},
	{Name: "retry", Key: []string{"namespace", "shelf", "seq"}, Ours: []string{"reason"}},
	{Name: "stripe", Key: []string{"namespace", "consumer_group", "stripe"}},
	{Name: "acked", Key: []string{"namespace", "hand", "seq"}},
}

// Room is the groups of a namespace.
type Room struct {
	pg       *pg.DB
	settings *settings.Room
	hints    *hints.Room
	log      *log.Room

	mu     sync.Mutex
	topics map[string]matched // by pattern
}

// matched are the topics of a pattern, as long as newest is the newest topic.
type matched struct {
	ids    []int32
	newest int32
}

// maxPatterns bounds what is remembered.
const maxPatterns = 10_000

func New(db *pg.DB, s *settings.Room, h *hints.Room, l *log.Room) *Room {
	return &Room{pg: db, settings: s, hints: h, log: l, topics: map[string]matched{}}
}

// matching are the topics of a pattern; anew reads them again.
func (r *Room) matching(ctx context.Context, p stream.TopicPattern, anew bool) (matched, error) {
	r.mu.Lock()
	m, ok := r.topics[p.String()]
	r.mu.Unlock()
	if ok && !anew {
		return m, nil
	}
	ids, newest, err := r.log.Matching(ctx, p)
	if err != nil {
		return m, err
	}
	m = matched{ids, newest}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.topics) >= maxPatterns {
		clear(r.topics)
	}
	r.topics[p.String()] = m
	return m, nil
}

// tell says that a group has news.
func (r *Room) tell() { r.hints.Notifier.Say(store.Hint{Subject: store.SubjectGroup}) }
