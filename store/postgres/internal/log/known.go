package log

import (
	"context"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

// topics are those that this process knows, of one epoch: in another their numbers may stand
// for others.
type topics struct {
	mu      sync.RWMutex
	epoch   uint32
	numbers map[string]int32
	known   map[int32]knownTopic
	changes int32 // of what is remembered, as the namespace counts them
}

// knownTopic is what is remembered of one.
type knownTopic struct {
	name      string
	versioned bool      // it stays so
	asOf      int32     // changes, when it was read
	alone     *numbered // as a call has it that names no other
}

// maxTopics bounds what is remembered.
const maxTopics = 100_000

// enter forgets those of another epoch.
func (t *topics) enter(epoch uint32) {
	t.mu.RLock()
	same := t.epoch == epoch
	t.mu.RUnlock()
	if same {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		t.epoch, t.numbers, t.known, t.changes = epoch, nil, nil, 0
	}
}

// learn remembers a topic, unless what is remembered is of another epoch by now.
func (t *topics) learn(epoch uint32, name string, number int32, versioned bool, asOf int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return
	}
	if t.numbers == nil || len(t.numbers) >= maxTopics {
		t.numbers, t.known = map[string]int32{}, map[int32]knownTopic{}
	}
	t.numbers[name] = number
	known := t.known[number]
	known.name, known.versioned, known.asOf = name, versioned || known.versioned, asOf
	if known.alone == nil {
		known.alone = &numbered{t.epoch, map[string]int32{name: number}}
	}
	t.known[number] = known
}

// alone is one topic as a call has it that names no other; nil where it is not known.
func (t *topics) alone(name string) *numbered {
	t.mu.RLock()
	defer t.mu.RUnlock()
	number, ok := t.numbers[name]
	if !ok {
		return nil
	}
	return t.known[number].alone
}

// heard notes that something of what is known has changed: a topic that was not versioned may
// be so now. It rides in the answer of every append, so that a process misses one of its own
// at most.
func (t *topics) heard(changes int32) {
	if t.count() == changes {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes = max(t.changes, changes)
}

func (t *topics) count() int32 {
	_, changes := t.stand()
	return changes
}

// stand is of which epoch what is remembered is, and what topics have come to.
func (t *topics) stand() (epoch uint32, changes int32) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.epoch, t.changes
}

// readLife reads which life of the log this is, what topics have come to, and the time.
const readLife = `SELECT e.epoch, ` + sameServer + `, n.topic_changes, {now}
FROM pawl.epoch AS e
CROSS JOIN pawl.namespace AS n
WHERE n.id = $1`

// life reads the epoch with an append, whether its server is this one, and hears of changes. now
// may be nil.
func (r *Room) life(epoch *uint32, same *bool, now *time.Time) *pg.Statement {
	return &pg.Statement{Text: readLife, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
		var changes int32
		var at time.Time
		err := scan(epoch, same, &changes, &at)
		if err == nil {
			r.topics.heard(changes)
		}
		if now != nil {
			*now = at
		}
		return err
	}}
}

// makeVersioned makes topics versioned ($2), for good, and lets every process hear of it.
//
//   - topic_pkey.
const makeVersioned = `WITH made AS (
	UPDATE pawl.topic
	SET versioned = true
	FROM (SELECT $1::int AS namespace, t.name FROM unnest($2::text[]) AS t (name) OFFSET 0) AS t
	WHERE topic.namespace = ANY (ARRAY[t.namespace]) AND topic.name = t.name AND NOT topic.versioned
	RETURNING 1
)
UPDATE pawl.namespace
SET topic_changes = topic_changes + 1
WHERE id = $1 AND EXISTS (SELECT FROM made)`

// versionedOf finds out which topics of a call are versioned, and makes those so of which its
// publisher says it: on a connection of the store's own, so that no open transaction keeps
// one from others. It is nil where none is.
func (r *Room) versionedOf(ctx context.Context, drafts []stream.Publication, topics *numbered) (map[string]bool, error) {
	var versioned map[string]bool
	var made, asked []string
	var answered map[string]bool // versioned ones
	t := &r.topics
	sort := func(mayAsk bool) {
		t.mu.RLock()
		defer t.mu.RUnlock()
		for i := range drafts {
			d := &drafts[i]
			known, ok := t.known[topics.of[d.Topic]]
			switch {
			case known.versioned || answered[d.Topic]:
				if versioned == nil {
					versioned = map[string]bool{}
				}
				versioned[d.Topic] = true
			case !mayAsk:
			case d.Versioned:
				made = append(made, d.Topic)
			case !ok, known.asOf != t.changes, !d.Expect.IsAny():
				asked = append(asked, d.Topic) // it may be so since
			}
		}
	}
	sort(true)
	if made != nil || asked != nil {
		err := r.pg.Retry(ctx, "read topics", pg.Always, func(ctx context.Context, _ bool) error {
			answered = map[string]bool{}
			steps := []*pg.Statement{r.find(findTopics, append(asked, made...), func(name string, _ int32, is bool) { answered[name] = is })}
			if made != nil {
				steps = append([]*pg.Statement{{Text: makeVersioned, Args: []any{r.pg.Namespace, made}}}, steps...)
			}
			return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, steps...)
		})
		if err != nil {
			return nil, err
		}
		sort(false)
	}
	return versioned, stream.CheckExpects(drafts, func(name string) bool { return versioned[name] })
}
