package log

import (
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

// What finds and puts names, by primary key.
const (
	findSeen = `SELECT event, seq, version
	FROM pawl_seen
	WHERE namespace = ? AND topic = ? AND key = ? AND name = ? AND expires > ?`

	putSeen = `INSERT INTO pawl_seen (namespace, topic, key, name, event, seq, version, expires)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (namespace, topic, key, name) DO UPDATE
	SET event = excluded.event, seq = excluded.seq, version = excluded.version, expires = excluded.expires
	WHERE pawl_seen.expires <= ?9`
)

// sift says which events of a call are new.
func sift(t *lite.Session, drafts []stream.Publication, topics map[string]topicRow) ([]stream.Sifted, error) {
	found := map[stream.SeenName]stream.SeenEvent{}
	for i := range drafts {
		for _, n := range drafts[i].Names() {
			q := t.On(findSeen).Int(topics[n.Topic].number).Bool(n.Key).Text(n.Text).Int(t.Now)
			if q.Step() {
				found[n] = stream.SeenEvent{ID: q.ColText(0), Seq: q.ColInt(1), Version: q.ColInt(2)}
			}
			if err := q.Done(); err != nil {
				return nil, err
			}
		}
	}
	return stream.Sift(drafts, found), nil
}

// remember keeps what the names of events stand for. Those that are known stay as they are.
func remember(t *lite.Session, drafts []stream.Publication, of []stream.SeenEvent, topics map[string]topicRow) error {
	for i := range drafts {
		for _, n := range drafts[i].Names() {
			err := t.On(putSeen).Int(topics[n.Topic].number).Bool(n.Key).Text(n.Text).Text(of[i].ID).Int(of[i].Seq).Int(of[i].Version).
				Int(lite.Later(t.Now, stream.Window)).Int(t.Now).Exec()
			if err != nil {
				return err
			}
		}
	}
	return nil
}
