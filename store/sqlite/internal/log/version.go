package log

import (
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

// What reads and writes versions of keys, by primary key.
const (
	findVersion = `SELECT version
	FROM pawl_key_version
	WHERE namespace = ? AND topic = ? AND key = ?`

	putVersion = `INSERT INTO pawl_key_version (namespace, topic, key, version)
	VALUES (?, ?, ?, ?)
	ON CONFLICT (namespace, topic, key) DO UPDATE
	SET version = excluded.version`
)

// versionsOf gives those of the drafts their versions, and keeps what their keys have come to.
func versionsOf(t *lite.Session, drafts []stream.Publication, topics map[string]topicRow, of func(i int) bool) ([]int64, error) {
	keys := stream.VersionKeys(drafts, of)
	last := make(map[stream.VersionKey]int64, len(keys))
	for _, k := range keys {
		n, err := t.On(findVersion).Int(topics[k.Topic].number).Text(k.Key).One()
		if err != nil {
			return nil, err
		}
		last[k] = n
	}
	versions, err := stream.Versions(drafts, of, last)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := t.On(putVersion).Int(topics[k.Topic].number).Text(k.Key).Int(last[k]).Exec(); err != nil {
			return nil, err
		}
	}
	return versions, nil
}
