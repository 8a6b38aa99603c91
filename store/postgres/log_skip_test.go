package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// published is what writers have committed, with the event that each answers.
type published struct {
	mu    sync.Mutex
	cause map[string]string
	last  []string // some that can be seen
}

func (p *published) add(made map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cause := range made {
		p.cause[id] = cause
		if p.last = append(p.last, id); len(p.last) > 20 {
			p.last = p.last[1:]
		}
	}
}

// some is an event that another writer has committed, or none.
func (p *published) some(r *rand.Rand) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == 0 || r.IntN(2) == 0 {
		return ""
	}
	return p.last[r.IntN(len(p.last))]
}

func eventOf(id, cause, topic string) stream.Publication {
	return stream.Publication{Event: stream.Event{ID: id, Topic: topic, Key: id, Causation: cause}}
}

// Writers append in transactions of random lengths and isolation, some of which are rolled
// back, in whole or to a savepoint, and readers go from position to position meanwhile. Each
// reader sees each committed event once, in order, and none before the one that it answers.
func TestE5_NobodySkipsAnEvent(t *testing.T) {
	const writers, readers, events = 16, 4, 3_000
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	users := newPool(t, db.URL)
	var all published
	all.cause = map[string]string{}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	var working, reading sync.WaitGroup
	for w := range writers {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		working.Go(func() {
			for n := 0; n < events/writers; {
				n += writeSome(t, s, users.BeginTx, &all, r, fmt.Sprintf("%d-%d", w, n))
			}
		})
	}
	ended := make(chan struct{})
	for i := range readers {
		reading.Go(func() {
			topic := []string{">", "orders.*", ">", "orders.1"}[i]
			m, err := stream.Filter{Topic: topic}.Matcher()
			if err != nil {
				t.Error(err)
				return
			}
			seen, at, over := map[string]stream.Position{}, stream.Position{}, false
			for {
				select {
				case <-ended:
					over = true
				default:
				}
				page, err := s.Events(t.Context(), store.EventQuery{Match: m, After: at, Limit: 64})
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range page.Events {
					if _, twice := seen[e.ID]; twice {
						t.Errorf("%s: event %s came twice", topic, e.ID)
					}
					if order, ok := e.Position.Compare(at); !ok || order <= 0 {
						t.Errorf("%s: %s came after %s", topic, e.Position.Debug(), at.Debug())
					}
					if at = e.Position; e.Causation != "" && topic == ">" {
						if _, known := seen[e.Causation]; !known {
							t.Errorf("%s: event %s came before %s, which it answers", topic, e.ID, e.Causation)
						}
					}
					seen[e.ID] = e.Position
				}
				at = page.Next
				if over && !page.More {
					break
				}
			}
			all.mu.Lock()
			defer all.mu.Unlock()
			for id := range all.cause {
				if _, ok := seen[id]; !ok && m.Pattern.Match(topicOf(id)) {
					t.Errorf("%s: event %s was skipped", topic, id)
				}
			}
			for id := range seen {
				if _, ok := all.cause[id]; !ok {
					t.Errorf("%s: event %s was never committed", topic, id)
				}
			}
		})
	}
	working.Wait()
	close(ended)
	reading.Wait()
	if len(all.cause) < events/2 {
		t.Errorf("only %d events", len(all.cause))
	}
}

func topicOf(id string) string { return fmt.Sprintf("orders.%d", len(id)%3) }

// writeSome appends a few events in one transaction, in one of many ways, and says how many.
func writeSome(
	t *testing.T, s *Store, begin func(context.Context, pgx.TxOptions) (pgx.Tx, error), all *published, r *rand.Rand, name string,
) int {
	ctx := t.Context()
	made := map[string]string{}
	n := 1 + r.IntN(4)
	draft := func(i int) stream.Publication {
		id := fmt.Sprintf("%s-%d", name, i)
		made[id] = all.some(r)
		return eventOf(id, made[id], topicOf(id))
	}
	if r.IntN(3) == 0 { // in a transaction of the store's own
		var drafts []stream.Publication
		for i := range n {
			drafts = append(drafts, draft(i))
		}
		if _, err := s.Append(ctx, drafts); err != nil {
			t.Error(err)
		}
		all.add(made)
		return n
	}
	level := []pgx.TxIsoLevel{"", "", pgx.RepeatableRead, pgx.Serializable}[r.IntN(4)]
	tx, err := begin(ctx, pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Error(err)
		return n
	}
	defer tx.Rollback(context.Background())
	if r.IntN(3) == 0 { // its snapshot and its number are old
		if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
			t.Error(err)
		}
		nap(r)
	}
	in := s.Within(tx).(store.TxLog)
	for i := range n {
		kept := map[string]string{}
		for id, cause := range made {
			kept[id] = cause
		}
		undone := r.IntN(5) == 0
		if undone {
			_, err = tx.Exec(ctx, "SAVEPOINT a")
		}
		if _, appended := in.Append(ctx, []stream.Publication{draft(i)}); err != nil || appended != nil {
			t.Error(errors.Join(err, appended))
			return n
		}
		if undone { // with it goes the mark, if it was the first
			if _, err := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT a"); err != nil {
				t.Error(err)
			}
			made = kept
		}
		nap(r)
	}
	if r.IntN(10) == 0 {
		return n
	}
	if err := tx.Commit(ctx); err != nil {
		var serial interface{ SQLState() string }
		if !errors.As(err, &serial) || serial.SQLState() != "40001" {
			t.Error(err)
		}
		return n
	}
	all.add(made)
	return n
}

// nap makes transactions of different lengths.
func nap(r *rand.Rand) {
	switch r.IntN(12) {
	case 0:
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond) // stimulus: a long transaction
	case 1, 2, 3:
		time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond) // stimulus: a short one
	}
}
