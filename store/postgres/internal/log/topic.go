package log

import (
	"context"
	"maps"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// orderTopics lets those who make topics come one after the other: a number that is seen
	// has no lower one that comes later, so that who knows the newest knows all.
	orderTopics = `SELECT pg_advisory_xact_lock($1)`

	// addTopics makes the numbers of new topics ($2).
	//
	//   - topic_pkey.
	addTopics = `INSERT INTO pawl.topic (namespace, name)
SELECT $1, t.name
FROM unnest($2::text[]) AS t (name)
ORDER BY t.name
ON CONFLICT DO NOTHING`

	// findTopics reads the numbers of topics ($2).
	//
	//   - topic_pkey.
	findTopics = `SELECT topic.name, topic.id, topic.versioned
FROM (SELECT $1::int AS namespace, t.name FROM unnest($2::text[]) AS t (name) OFFSET 0) AS t
JOIN pawl.topic ON topic.namespace = ANY (ARRAY[t.namespace]) AND topic.name = t.name`

	// nameTopics reads the names of topics by their numbers ($2).
	//
	//   - topic_id.
	nameTopics = `SELECT topic.name, topic.id, topic.versioned
FROM (SELECT $1::int AS namespace, t.id FROM unnest($2::int[]) AS t (id) OFFSET 0) AS t
JOIN pawl.topic ON topic.namespace = ANY (ARRAY[t.namespace]) AND topic.id = t.id AND topic.id > 0`

	// listTopics reads topics that begin with a prefix ($2), after one ($3).
	//
	//   - topic_pkey.
	listTopics = `SELECT name, id, versioned
FROM pawl.topic
WHERE namespace = $1 AND name >= $2 AND name > $3
ORDER BY name
LIMIT $4`
)

// numbered are the numbers of topics in an epoch. Calls share them: they are not changed.
type numbered struct {
	epoch uint32
	of    map[string]int32
}

// with adds those of another call. In two epochs a number may stand for two topics: then the epoch is none, and they are
// asked for anew.
func (t *numbered) with(other *numbered) *numbered {
	if other == t {
		return t
	}
	has := t.epoch == other.epoch
	for name := range other.of {
		_, ok := t.of[name]
		has = has && ok
	}
	if has {
		return t
	}
	both := &numbered{t.epoch, maps.Clone(t.of)}
	if maps.Copy(both.of, other.of); t.epoch != other.epoch {
		both.epoch = 0
	}
	return both
}

// readTopic reads how a topic ($2) stands; $3 bounds what is counted.
//
//   - topic_pkey, topic_trim_pkey, delayed_topic.
const readTopic = `SELECT t.id, t.versioned, coalesce(s.low, 0), coalesce(s.kept, 0), (
		SELECT count(*)
		FROM (
			SELECT 1
			FROM pawl.delayed AS d
			WHERE d.namespace = t.namespace AND d.topic = t.id AND d.topic > 0
			LIMIT $3
		) AS d
	), (SELECT epoch FROM pawl.epoch)
FROM pawl.topic AS t
LEFT JOIN pawl.topic_trim AS s ON s.namespace = t.namespace AND s.topic = t.id
WHERE t.namespace = $1 AND t.name = $2`

// TopicNamed is how a topic stands.
func (r *Room) TopicNamed(ctx context.Context, name string) (s store.TopicState, err error) {
	if err := r.enter(ctx); err != nil {
		return s, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "read a topic", pg.Reading, func(ctx context.Context, _ bool) error {
		s = store.TopicState{}
		return r.pg.Send(ctx, r.pg.Work, pg.SharedLimits, &pg.Statement{
			Text: readTopic, Args: []any{r.pg.Namespace, name, store.MaxDelayedCount}, Each: func(scan pg.Scan) error {
				var low int64
				var epoch uint32
				err := scan(&s.ID, &s.Versioned, &low, &s.Kept, &s.Delayed, &epoch)
				if s.Name = name; low > 0 {
					s.Low = stream.At(epoch, low)
				}
				return err
			},
		})
	})
	if err != nil {
		return s, err
	}
	if s.ID == 0 {
		return s, job.NotFound("topic", name)
	}
	newest, err := r.NewestEvents(ctx, []store.TopicInfo{s.TopicInfo})
	s.Newest = newest[s.ID]
	return s, err
}

// numbers are those of topics, which are made where they are new: on a connection of the
// store's own, so that no open transaction keeps one from others.
func (r *Room) numbers(ctx context.Context, drafts []stream.Publication) (*numbered, error) {
	if len(drafts) == 1 {
		if known := r.topics.alone(drafts[0].Topic); known != nil {
			return known, nil
		}
	}
	found := map[string]int32{}
	var missing []string
	r.topics.mu.RLock()
	epoch := r.topics.epoch
	for i := range drafts {
		name := drafts[i].Topic
		if _, ok := found[name]; ok {
			continue
		}
		n, ok := r.topics.numbers[name]
		if found[name] = n; !ok {
			missing = append(missing, name)
		}
	}
	r.topics.mu.RUnlock()
	if missing == nil {
		return &numbered{epoch, found}, nil
	}
	err := r.pg.Retry(ctx, "make topics", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits,
			&pg.Statement{Text: orderTopics, Args: []any{r.pg.LockKey("topics", "")}},
			&pg.Statement{Text: addTopics, Args: []any{r.pg.Namespace, missing}},
			r.find(findTopics, missing, func(name string, n int32, _ bool) { found[name] = n }))
	})
	if err != nil {
		return nil, err
	}
	return &numbered{epoch, found}, nil
}

// find is a statement by which topics become known. What is remembered may be forgotten at any time, so who needs
// the answer takes it as it comes.
func (r *Room) find(text string, list any, found func(name string, number int32, versioned bool)) *pg.Statement {
	epoch, asOf := r.topics.stand()
	return &pg.Statement{Text: text, Args: []any{r.pg.Namespace, list}, Each: func(scan pg.Scan) error {
		var name string
		var n int32
		var versioned bool
		if err := scan(&name, &n, &versioned); err != nil {
			return err
		}
		r.topics.learn(epoch, name, n, versioned, asOf)
		if found != nil {
			found(name, n, versioned)
		}
		return nil
	}}
}

// nameAll gives events the names of their topics.
func (r *Room) nameAll(ctx context.Context, events []stream.Event, of []int32) error {
	names, err := r.Names(ctx, of)
	for i := range names {
		events[i].Topic = names[i]
	}
	return err
}

// Names are those of topics, by their numbers.
func (r *Room) Names(ctx context.Context, of []int32) ([]string, error) {
	names := make([]string, len(of))
	var missing []int32
	r.topics.mu.RLock()
	for i, n := range of {
		known, ok := r.topics.known[n]
		if names[i] = known.name; !ok && !slices.Contains(missing, n) {
			missing = append(missing, n)
		}
	}
	r.topics.mu.RUnlock()
	if missing == nil {
		return names, nil
	}
	found := map[int32]string{}
	find := r.find(nameTopics, missing, func(name string, n int32, _ bool) { found[n] = name })
	if err := r.pg.Send(ctx, r.pg.Work, nil, find); err != nil {
		return nil, err
	}
	for i, n := range of {
		if name, ok := found[n]; ok {
			names[i] = name
		}
	}
	return names, nil
}

// Topics lists up to n topics that match, by name, after one.
func (r *Room) Topics(ctx context.Context, pattern stream.TopicPattern, after string, n int) ([]store.TopicInfo, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	if n <= 0 || n > store.MaxEventPage {
		n = store.MaxEventPage
	}
	prefix := pattern.Prefix()
	var list []store.TopicInfo
	for past := false; !past && len(list) < n; {
		rows := 0
		err := r.pg.Retry(ctx, "list topics", pg.Reading, func(ctx context.Context, _ bool) error {
			rows = 0
			from := after
			return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{
				Text: listTopics, Args: []any{r.pg.Namespace, prefix, from, store.MaxEventPage},
				Each: func(scan pg.Scan) error {
					var t store.TopicInfo
					err := scan(&t.Name, &t.ID, &t.Versioned)
					rows++
					after = t.Name
					switch {
					case len(t.Name) < len(prefix) || t.Name[:len(prefix)] != prefix:
						past = true
					case !past && pattern.Match(t.Name) && len(list) < n:
						list = append(list, t)
					}
					return err
				},
			})
		})
		if err != nil {
			return nil, err
		}
		past = past || rows < store.MaxEventPage
	}
	return list, nil
}
