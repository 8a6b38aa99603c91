package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Writers append in transactions of random lengths and isolation: some are rolled back, in
// whole or to a savepoint before their mark, some stay open while hundreds of others commit,
// some are prepared and committed later, and most answer an event that they have read on any
// connection. Readers go on meanwhile. Each sees each committed event once, in order, and none
// before the one that it answers.
func TestE5_NobodySkipsAnEvent(t *testing.T) { nobodySkips(t, 20_000, 0) }

// nobodySkips lets 16 writers append so many events beside 6 readers. Some transactions are
// held for a time beside those that are held until others have committed.
func nobodySkips(t *testing.T, events int, held time.Duration) {
	const writers, holders = 16, 3
	server := need.PostgresServer(t, "max_prepared_transactions=10", "max_connections=120")
	w := &writing{
		t: t, s: openOn(t, with(t, server.URL(), "pool_max_conns", "12"), Options{}, store.Settings{}),
		users: newPool(t, with(t, server.URL(), "pool_max_conns", "60")), held: held, log: newPublished(),
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	letGo := holdUnrelated(t, server.URL())

	var holding, working, reading sync.WaitGroup
	for n := range writers {
		own := &writer{writing: w, name: fmt.Sprint(n), r: rand.New(rand.NewPCG(seed, uint64(n))), holds: n < holders, prepares: n == holders}
		group := &working
		if own.holds || own.prepares { // they wait for those who do not
			group = &holding
		}
		group.Go(func() { own.write(events / writers) })
	}
	ended := make(chan struct{})
	for _, r := range readersOf(t, w.s) {
		reading.Go(func() { w.log.follow(t, r, ended) })
	}
	working.Wait()
	w.log.letAllGo()
	holding.Wait()
	close(ended)
	reading.Wait()
	letGo()
	if n := len(w.log.cause); n < events {
		t.Errorf("only %d events", n)
	}
	t.Logf("%d events, %d transactions, %d held, %d prepared", len(w.log.cause), w.log.commits, w.log.held, w.log.prepared)
}

// holdUnrelated begins transactions that write and append nothing, in the database and in
// another one of the server, which also holds a lock like a mark. Readers do not wait for them.
func holdUnrelated(t *testing.T, address string) (letGo func()) {
	t.Helper()
	here := newPool(t, address)
	run := func(in interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}, text string) {
		t.Helper()
		if _, err := in.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run(here, "CREATE DATABASE elsewhere")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/elsewhere"
	there := newPool(t, u.String())
	var open []pgx.Tx
	for _, pool := range []*pgxpool.Pool{here, there} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run(tx, "CREATE TABLE unrelated (n int)")
		open = append(open, tx)
	}
	var class int32
	if err := here.QueryRow(t.Context(), "SELECT mark FROM pawl.namespace").Scan(&class); err != nil {
		t.Fatal(err)
	}
	run(open[1], fmt.Sprintf("SELECT pg_advisory_xact_lock_shared(%d, 1)", class))
	return func() {
		for _, tx := range open {
			if err := tx.Rollback(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}

// writing is what writers share.
type writing struct {
	t     *testing.T
	s     *Store
	users *pgxpool.Pool
	held  time.Duration // also hold some for that long
	log   *published
}

// writer appends in transactions of its own.
type writer struct {
	*writing
	name      string
	r         *rand.Rand
	holds     bool              // some of its transactions stay open while others commit
	prepares  bool              // some are prepared
	made      map[string]string // in the transaction that is open
	n         int
	committed int
}

func (w *writer) write(events int) {
	for before := 0; w.committed < events && !w.t.Failed(); before = w.n {
		w.made = map[string]string{}
		if w.r.IntN(4) == 0 {
			w.own()
		} else if err := w.within(); err != nil && !isSerialization(err) {
			w.t.Error(err)
			return
		}
		if w.n == before {
			w.t.Error("a writer does nothing")
			return
		}
	}
}

func isSerialization(err error) bool {
	var state interface{ SQLState() string }
	return errors.As(err, &state) && state.SQLState() == "40001"
}

// drafts are the next few events. Those that answer one have read it before.
func (w *writer) drafts(in pgx.Tx) (list []stream.Publication, err error) {
	cause := ""
	switch w.r.IntN(4) {
	case 0: // an event that somebody was told of
		cause = w.log.some(w.r)
	case 1: // one that is read on another connection, past the head, too
		cause, err = w.read(w.users)
	case 2:
		if in != nil {
			cause, err = w.read(in)
		}
	}
	for range 1 + w.r.IntN(8) {
		id := fmt.Sprintf("%s-%d", w.name, w.n)
		w.n++
		w.made[id] = cause
		list = append(list, eventOf(id, cause, topicOf(id)))
	}
	return list, err
}

// read is one of the newest events that can be seen.
func (w *writer) read(in interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (id string, err error) {
	err = in.QueryRow(w.t.Context(), "SELECT id FROM pawl.event ORDER BY seq DESC OFFSET $1 LIMIT 1", w.r.IntN(5)).Scan(&id)
	if _, own := w.made[id]; own || errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// own appends in a transaction of the store's own.
func (w *writer) own() {
	drafts, err := w.drafts(nil)
	if err == nil {
		_, err = w.s.Append(w.t.Context(), drafts)
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.commit()
}

// within appends in a transaction of a user's, in one of many ways.
func (w *writer) within() error {
	ctx := w.t.Context()
	level := []pgx.TxIsoLevel{"", "", "", "", "", "", pgx.RepeatableRead, pgx.Serializable}[w.r.IntN(8)]
	tx, err := w.users.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if w.r.IntN(3) == 0 { // its snapshot and its number are old
		if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
			return err
		}
		nap(w.r)
	}
	in := w.s.Within(tx).(store.TxLog)
	for range 1 + w.r.IntN(4) {
		kept, undone := maps.Clone(w.made), w.r.IntN(5) == 0
		if undone {
			if _, err := tx.Exec(ctx, "SAVEPOINT a"); err != nil {
				return err
			}
		}
		drafts, err := w.drafts(tx)
		if err == nil {
			_, err = in.Append(ctx, drafts)
		}
		if err != nil {
			return err
		}
		nap(w.r)
		if undone { // with it goes the mark, if it was the first
			if _, err := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT a"); err != nil {
				return err
			}
			w.made = kept
		}
	}
	switch {
	case w.prepares && w.r.IntN(4) == 0:
		return w.prepare(tx)
	case w.holds && w.r.IntN(8) == 0:
		w.log.waitFor(300)
		if w.held > 0 && w.r.IntN(4) == 0 {
			time.Sleep(w.held) // stimulus: a transaction that is forgotten for a while
		}
	}
	if w.r.IntN(10) == 0 {
		return nil // it rolls back
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	w.commit()
	return nil
}

// commit notes what was committed.
func (w *writer) commit() {
	w.log.add(w.made)
	w.committed += len(w.made)
}

// prepare commits in two phases, with time for others between them.
func (w *writer) prepare(tx pgx.Tx) error {
	ctx, name := w.t.Context(), fmt.Sprintf("'writer %s %d'", w.name, w.n)
	if _, err := tx.Exec(ctx, "PREPARE TRANSACTION "+name); err != nil {
		return err
	}
	w.log.waitFor(200)
	end := "COMMIT"
	if w.r.IntN(4) == 0 {
		end = "ROLLBACK"
	}
	if _, err := w.users.Exec(ctx, end+" PREPARED "+name); err != nil {
		return err
	}
	w.log.mu.Lock()
	w.log.prepared++
	w.log.mu.Unlock()
	if end == "COMMIT" {
		w.commit()
	}
	return nil
}

// nap makes transactions of different lengths.
func nap(r *rand.Rand) {
	switch r.IntN(12) {
	case 0:
		time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond) // stimulus: a long transaction
	case 1, 2, 3:
		time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond) // stimulus: a short one
	}
}

func topicOf(id string) string { return fmt.Sprintf("orders.%d", len(id)%3) }

func eventOf(id, cause, topic string) stream.Publication {
	return stream.Publication{Event: stream.Event{ID: id, Topic: topic, Key: id, Causation: cause}}
}
