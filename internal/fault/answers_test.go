//go:build fault

package fault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// TestFault_J32_LostAnswers lets two engines work behind a proxy that loses the answers of commits: of every kind the
// first one, and then one in ten, after the commit, before it, or before a commit that comes in late. Nothing is lost,
// doubled or stranded by it, and no lease is.
func TestFault_J32_LostAnswers(t *testing.T) {
	g := onPostgres(t)
	l := &loser{chance: seeded(t), seen: map[string]int{}, lost: map[string]int{}}
	proxy := need.Proxy(t, g.address)
	proxy.Judge(l.judge)
	over := make(chan struct{})
	var releasing sync.WaitGroup
	defer releasing.Wait()
	defer close(over)
	releasing.Go(func() { // late commits come in a moment later, also those of engines that stop
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				proxy.Release()
			case <-over:
				tick.Stop()
				return
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	var engines []*pawl.Engine
	for n := range 2 {
		e := l.engine(t, proxy.URL(), n)
		engines = append(engines, e)
		background.Go(func() {
			if err := e.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	senders := 4
	each := 60
	if long() {
		each = 2_000
	}
	var mu sync.Mutex
	var accepted []int
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			m := &sender{t: t, e: engines[s%2]}
			for n := range each {
				m.send(s*1_000_000 + 10*n)
			}
			if s == 0 {
				m.bulk(10_000_000, 2_000)
			}
			mu.Lock()
			defer mu.Unlock()
			accepted = append(accepted, m.accepted...)
		})
	}
	sending.Wait()
	g.drained(2 * awaitLimit)
	stop()
	background.Wait()
	for _, e := range engines {
		if s := e.Stats(); s.LeasesLost != 0 || s.Registered != 1 {
			t.Errorf("%d leases were lost, %d times registered; want none, once", s.LeasesLost, s.Registered)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	g.expectOnce(accepted)
	if _, lost := g.blamed(); lost != 0 {
		t.Errorf("%d runs count as lost with their process, want none", lost)
	}
	t.Logf("%d jobs; answers lost: %v", len(accepted), l.lost)
	for _, kind := range []string{"enqueue", "unique enqueue", "bulk", "claim", "finish", "other finish", "beat", "register", "transaction", "operator"} {
		if l.lost[kind] == 0 {
			t.Errorf("no answer of kind %q was lost, only of %v", kind, slices.Sorted(maps.Keys(l.lost)))
		}
	}
}

// loser decides which answers get lost. The proxy calls it from one goroutine at a time.
type loser struct {
	chance     *rand.Rand
	seen, lost map[string]int
}

func (l *loser) judge(c pgproxy.Commit) pgproxy.Fate {
	kind := kindOf(c.Statements)
	l.seen[kind]++
	if kind == "" || l.seen[kind] > 1 && l.chance.IntN(10) > 0 {
		return pgproxy.Deliver
	}
	l.lost[kind]++
	if l.seen[kind] == 1 {
		return pgproxy.Cut
	}
	return []pgproxy.Fate{pgproxy.Cut, pgproxy.Cut, pgproxy.Drop, pgproxy.Late}[l.chance.IntN(4)]
}

// kindOf tells commits apart by what their statements say. Hints, reads and upkeep that found nothing are all "".
func kindOf(statements []string) string {
	all := strings.Join(statements, "\n")
	for _, k := range []struct{ kind, words string }{
		{"claim", "run = run + 1"},
		{"finish", "5::smallint AS final"},
		{"operator", "a.unique_hash, a.queue, a.priority"},
		{"other finish", "job.worker = e.worker AND job.state = e.running ORDER BY job.id FOR UPDATE OF job"},
		{"bulk", "COPY "},
		{"unique enqueue", ".job_unique (namespace, hash, job)"},
		{"enqueue", ".job (namespace, state, due, created"},
		{"beat", "WITH beaten AS"},
		{"register", ".worker ( namespace, id, label"},
	} {
		if strings.Contains(all, k.words) {
			if strings.HasPrefix(statements[0], "BEGIN;") {
				break
			}
			return k.kind
		}
	}
	if strings.HasPrefix(statements[0], "BEGIN;") { // of Engine.Tx
		return "transaction"
	}
	return ""
}

// engine is one that works behind the proxy.
func (l *loser) engine(t *testing.T, address string, n int) *pawl.Engine {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprintf("log%d", n)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = log.Close()
		if t.Failed() {
			t.Logf("log of engine %d:\n%s", n, lastLines(log.Name()))
		}
	})
	c := config()
	c.Logger = slog.New(slog.NewTextHandler(log, nil))
	c.Worker.ID = fmt.Sprint("engine", n)
	c.LostAfter = 30 * time.Second // nobody is to be lost, not by a machine that stands still either
	e, err := pawl.Open(t.Context(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Effect]) error {
		switch {
		case j.Args.N%70 == 0 && j.Run == 1:
			return errors.New("not this time")
		case j.Args.N%20 == 0: // it leaves its row, and then ends in the ordinary way
			return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
				// A commit of the run before may still be late: its row counts.
				if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", j.Args.N); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "insert into effect (n, run) select $1, $2 where not exists (select from effect where n = $1)", j.Args.N, j.Run)
				return err
			})
		}
		return leaveRow(ctx, e, j.Args.N, j.Run, j)
	})
	return e
}

// sender hands in jobs in every way, and again when it does not know what became of them.
type sender struct {
	t        *testing.T
	e        *pawl.Engine
	accepted []int
}

// insist repeats a call until its outcome is known.
func (s *sender) insist(call func() error) {
	for {
		err := call()
		switch {
		case err == nil:
			return
		case !errors.Is(err, pawl.ErrOutcomeUnknown) && !errors.Is(err, store.ErrUnavailable):
			s.t.Error(err)
			return
		}
	}
}

// send hands in a few jobs: alone, unique, several, in a transaction, by way of an operator.
func (s *sender) send(n int) {
	ctx := s.t.Context()
	var chosen []pawl.EnqueueOption
	s.insist(func() error {
		r, err := s.e.Enqueue(ctx, Effect{n}, chosen...)
		chosen = []pawl.EnqueueOption{pawl.WithID(r.ID)} // of what was sent, also when its outcome is unknown
		return err
	})
	chosen = nil
	s.insist(func() error {
		r, err := s.e.Enqueue(ctx, Effect{n + 1}, append(chosen, pawl.Unique())...)
		chosen = []pawl.EnqueueOption{pawl.WithID(r.ID)}
		return err
	})
	ids := []job.ID{job.NewID(), job.NewID(), job.NewID()}
	s.insist(func() error {
		_, err := s.e.EnqueueMany(ctx, pawl.NewItem(Effect{n + 2}, pawl.WithID(ids[0])), pawl.NewItem(Effect{n + 3}, pawl.WithID(ids[1])))
		return err
	})
	s.insist(func() error {
		return s.e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			_, err := tx.Enqueue(ctx, Effect{n + 4}, pawl.WithID(ids[2]))
			return err
		})
	})
	s.accepted = append(s.accepted, n, n+1, n+2, n+3, n+4)
	if n%200 == 0 {
		s.operate(n + 5)
	}
}

// operate cancels a job and brings it back, and deletes another.
func (s *sender) operate(n int) {
	ctx := s.t.Context()
	ids := []job.ID{job.NewID(), job.NewID()}
	s.insist(func() error {
		_, err := s.e.EnqueueMany(ctx, pawl.NewItem(Effect{n}, pawl.WithID(ids[0]), pawl.In(time.Hour)), pawl.NewItem(Effect{n + 1}, pawl.WithID(ids[1]), pawl.In(time.Hour)))
		return err
	})
	free := func(c pawl.Change, err error) error {
		if err == nil && c == pawl.Busy { // a late commit holds it
			err = store.ErrUnavailable
		}
		return err
	}
	s.insist(func() error { return free(s.e.Cancel(ctx, ids[0])) })
	s.insist(func() error { return free(s.e.Retry(ctx, ids[0])) })
	s.insist(func() error { return free(s.e.Delete(ctx, ids[1])) })
	s.accepted = append(s.accepted, n)
}

// bulk hands in many jobs at once.
func (s *sender) bulk(from, n int) {
	var items []pawl.Item
	for i := range n {
		items = append(items, pawl.NewItem(Effect{from + i}))
		s.accepted = append(s.accepted, from+i)
	}
	receipts, err := s.e.EnqueueMany(s.t.Context(), items...)
	if err != nil || len(receipts) != n {
		s.t.Errorf("%d receipts for %d jobs: %v", len(receipts), n, err)
	}
}
