package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
)

// rawBatch is how many events the loop reads and commits at once: as many as Pawl's member.
const rawBatch = fetchSQLite

// rawStream is what one writes without Pawl, for one reader in one process, with the library that Pawl uses: a table of
// events, a row that says how far was read, and a loop. It knows no retries, members, filters or lost readers.
type rawStream struct {
	path string
	db   *sqlite3.Conn
}

const rawSchema = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA busy_timeout = 5000;
CREATE TABLE IF NOT EXISTS event (
	seq      INTEGER PRIMARY KEY,
	topic    TEXT NOT NULL,
	id       TEXT NOT NULL,
	type     TEXT NOT NULL,
	appended INTEGER NOT NULL,
	data     BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS event_topic ON event (topic, seq);
CREATE TABLE IF NOT EXISTS reader (name TEXT PRIMARY KEY, upto INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO reader (name, upto) VALUES ('` + streamGroup + `', 0) ON CONFLICT DO NOTHING;`

func openRawStream(_ context.Context, at place) (queue, error) {
	s := &rawStream{path: at.file()}
	var err error
	s.db, err = s.open()
	return s, err
}

func (s *rawStream) open() (*sqlite3.Conn, error) {
	db, err := sqlite3.Open("file:" + s.path)
	if err != nil {
		return nil, err
	}
	if err := db.Exec(rawSchema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (s *rawStream) Enqueue(ctx context.Context, p payload) error { return s.Fill(ctx, []payload{p}) }

func (s *rawStream) Fill(_ context.Context, ps []payload) (err error) {
	add, _, err := s.db.Prepare(`INSERT INTO event (topic, id, type, appended, data) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, add.Close()) }()
	if err := s.db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, p := range ps {
		data, err := json.Marshal(p)
		if err != nil {
			return err
		}
		err = errors.Join(add.BindText(1, streamTopic), add.BindText(2, uuid.NewString()), add.BindText(3, "payload"),
			add.BindInt64(4, time.Now().UnixMicro()), add.BindBlob(5, data))
		if err := errors.Join(err, add.Exec()); err != nil {
			return err
		}
	}
	return s.db.Exec("COMMIT")
}

// Work reads a batch, handles it, and commits how far it came with the next.
func (s *rawStream) Work(ctx context.Context, _ int, handle func(payload)) (func() error, error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(consumeRaw(ctx, db, handle), db.Close()) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// rawEvent is what the loop reads of an event.
type rawEvent struct {
	seq, appended int64
	id, kind      string
	data          []byte
}

func consumeRaw(ctx context.Context, db *sqlite3.Conn, handle func(payload)) (err error) {
	read, _, err := db.Prepare(`SELECT seq, id, type, appended, data FROM event WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, read.Close()) }()
	move, _, err := db.Prepare(`UPDATE reader SET upto = ? WHERE name = ?`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, move.Close()) }()
	batch := make([]rawEvent, 0, rawBatch)
	for upto := int64(0); ctx.Err() == nil; {
		if len(batch) > 0 {
			upto = batch[len(batch)-1].seq
			batch = batch[:0]
			err = errors.Join(db.Exec("BEGIN IMMEDIATE"), move.BindInt64(1, upto), move.BindText(2, streamGroup), move.Exec())
		} else {
			err = db.Exec("BEGIN")
		}
		err = errors.Join(err, read.BindText(1, streamTopic), read.BindInt64(2, upto), read.BindInt64(3, rawBatch))
		if err != nil {
			return err
		}
		for read.Step() {
			e := rawEvent{seq: read.ColumnInt64(0), id: read.ColumnText(1), kind: read.ColumnText(2), appended: read.ColumnInt64(3), data: read.ColumnBlob(4, nil)}
			batch = append(batch, e)
		}
		if err := errors.Join(read.Err(), read.Reset(), db.Exec("COMMIT")); err != nil {
			return err
		}
		for i := range batch {
			var p payload
			if err := json.Unmarshal(batch[i].data, &p); err != nil {
				return fmt.Errorf("event %d: %w", batch[i].seq, err)
			}
			handle(p)
		}
		if len(batch) == 0 {
			if err := pause(ctx, time.Millisecond); err != nil {
				return nil
			}
		}
	}
	return nil
}

func (s *rawStream) Left(context.Context) (left int, err error) {
	count, _, err := s.db.Prepare(`SELECT coalesce((SELECT max(seq) FROM event), 0) - upto FROM reader`)
	if err != nil {
		return 0, err
	}
	if count.Step() {
		left = count.ColumnInt(0)
	}
	return left, errors.Join(count.Err(), count.Close())
}

func (s *rawStream) Close() error { return s.db.Close() }
