package log

import (
	"context"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// addVersions makes the rows of keys that have none ($2 topics, $3 keys), in one order for
	// all, and waits for transactions that make the same ones.
	//
	//   - key_version_pkey.
	addVersions = `INSERT INTO pawl.key_version (namespace, topic, key, version)
SELECT $1, k.topic, k.key, 0
FROM unnest($2::int[], $3::text[]) WITH ORDINALITY AS k (topic, key, place)
ORDER BY k.place
ON CONFLICT DO NOTHING`

	// lockVersions reads what keys have come to, with a later snapshot, in the same order.
	//
	//   - key_version_pkey.
	lockVersions = `SELECT k.place, v.version
FROM (
	SELECT $1::int AS namespace, k.*
	FROM unnest($2::int[], $3::text[]) WITH ORDINALITY AS k (topic, key, place)
	ORDER BY k.place
	OFFSET 0
) AS k
JOIN pawl.key_version AS v ON v.namespace = ANY (ARRAY[k.namespace]) AND v.topic = k.topic AND v.key = k.key
FOR UPDATE OF v`

	// putVersions writes it ($4).
	//
	//   - key_version_pkey.
	putVersions = `UPDATE pawl.key_version AS v
SET version = k.version
FROM (
	SELECT $1::int AS namespace, k.*
	FROM unnest($2::int[], $3::text[], $4::bigint[]) AS k (topic, key, version)
	OFFSET 0
) AS k
WHERE v.namespace = ANY (ARRAY[k.namespace]) AND v.topic = k.topic AND v.key = k.key`
)

// versions locks the keys of versioned events that are appended now, and gives these their
// versions, by place in the call. bump writes what keys have come to.
func (n *naming) versions(ctx context.Context) (list []int64, bump []*pg.Statement, err error) {
	return n.room.numberKeys(ctx, n.t, n.drafts, n.topics.of, func(i int) bool {
		d := &n.drafts[i]
		return n.sifted[i].Fresh && n.versioned[d.Topic] && d.Due(n.now).IsZero()
	})
}

// numberKeys is versions of any drafts of a transaction.
func (r *Room) numberKeys(ctx context.Context, t pg.Session, drafts []stream.Publication, topics map[string]int32,
	of func(i int) bool) (list []int64, bump []*pg.Statement, err error) {
	keys := stream.VersionKeys(drafts, of)
	if len(keys) == 0 {
		return make([]int64, len(drafts)), nil, nil
	}
	numbers, texts := make([]int32, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		numbers[i], texts[i] = topics[k.Topic], k.Key
	}
	last := make(map[stream.VersionKey]int64, len(keys))
	args := []any{r.pg.Namespace, numbers, texts}
	err = t.Run(ctx, &pg.Statement{Text: addVersions, Args: args}, &pg.Statement{Text: lockVersions, Args: args, Each: func(scan pg.Scan) error {
		var place, version int64
		err := scan(&place, &version)
		last[keys[place-1]] = version
		return err
	}})
	if err != nil {
		return nil, nil, err
	}
	if list, err = stream.Versions(drafts, of, last); err != nil {
		return nil, nil, err
	}
	versions := make([]int64, len(keys))
	for i, k := range keys {
		versions[i] = last[k]
	}
	return list, []*pg.Statement{{Text: putVersions, Args: append(args, versions)}}, nil
}
