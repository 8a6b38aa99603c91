package log

import (
	"context"
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
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
	findTopics = `SELECT topic.name, topic.id
FROM (SELECT $1::int AS namespace, t.name FROM unnest($2::text[]) AS t (name) OFFSET 0) AS t
JOIN pawl.topic ON topic.namespace = ANY (ARRAY[t.namespace]) AND topic.name = t.name`

	// nameTopics reads the names of topics by their numbers ($2).
	//
	//   - topic_id.
	nameTopics = `SELECT topic.name, topic.id
FROM (SELECT $1::int AS namespace, t.id FROM unnest($2::int[]) AS t (id) OFFSET 0) AS t
JOIN pawl.topic ON topic.namespace = ANY (ARRAY[t.namespace]) AND topic.id = t.id AND topic.id > 0`

	// listTopics reads topics that begin with a prefix ($2), after one ($3).
	//
	//   - topic_pkey.
	listTopics = `SELECT name, id
FROM pawl.topic
WHERE namespace = $1 AND name >= $2 AND name > $3
ORDER BY name
LIMIT $4`
)

// numbers are those of topics, which are made where they are new: on a connection of the
// store's own, so that no open transaction keeps one from others.
func (r *Room) numbers(ctx context.Context, drafts []stream.Publication) (map[string]int32, error) {
	found := map[string]int32{}
	var missing []string
	r.topics.mu.RLock()
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
		return found, nil
	}
	err := r.pg.Retry(ctx, "make topics", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits,
			&pg.Statement{Text: addTopics, Args: []any{r.pg.Namespace, missing}}, r.find(findTopics, missing))
	})
	if err != nil {
		return nil, err
	}
	r.topics.mu.RLock()
	defer r.topics.mu.RUnlock()
	for _, name := range missing {
		found[name] = r.topics.numbers[name]
	}
	return found, nil
}

// find is a statement by which topics become known.
func (r *Room) find(text string, list any) *pg.Statement {
	return &pg.Statement{Text: text, Args: []any{r.pg.Namespace, list}, Each: func(scan pg.Scan) error {
		var name string
		var n int32
		if err := scan(&name, &n); err != nil {
			return err
		}
		r.topics.learn(name, n)
		return nil
	}}
}

// nameAll gives events the names of their topics.
func (r *Room) nameAll(ctx context.Context, events []stream.Event, of []int32) error {
	var missing []int32
	r.topics.mu.RLock()
	for _, n := range of {
		if _, ok := r.topics.names[n]; !ok && !slices.Contains(missing, n) {
			missing = append(missing, n)
		}
	}
	r.topics.mu.RUnlock()
	if missing != nil {
		if err := r.pg.Send(ctx, r.pg.Work, nil, r.find(nameTopics, missing)); err != nil {
			return err
		}
	}
	r.topics.mu.RLock()
	defer r.topics.mu.RUnlock()
	for i, n := range of {
		events[i].Topic = r.topics.names[n]
	}
	return nil
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
					err := scan(&t.Name, &t.ID)
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
