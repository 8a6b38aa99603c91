//go:build fault

package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlwork/pawl/internal/need/pgserver"
	"github.com/pawlwork/pawl/store/postgres"
)

// TestFault_P7_P8_IdleInTransaction shuts things down while transactions sit open and do nothing: those of handlers, and
// one of a user's own that holds a job. Whoever goes goes in time, a run that was cut off says why in the store's words,
// what was not committed has not happened, and in the end everything accepted has run once.
func TestFault_P7_P8_IdleInTransaction(t *testing.T) {
	t.Run("engine", engineStops)
	t.Run("server smart", serverDismissed)
	t.Run("server fast", func(t *testing.T) { serverEnds(t, (*pgserver.Server).Stop) })
	t.Run("server immediate", func(t *testing.T) { serverEnds(t, (*pgserver.Server).Abort) })
	t.Run("server, then engine", serverThenEngine)
}

// The engine stops: its handlers are told after the grace period, and their transactions are undone. Nobody is blamed.
// The user's transaction is not the engine's, and commits later.
func engineStops(t *testing.T) {
	t.Parallel()
	s := newSitting(t)
	s.heard.finish(s.sitter)
	s.failedWith("stopping")
	s.user.commit()
	s.goOn(s.last)
	if burned, lost := s.g.blamed(); burned+lost > 0 {
		t.Errorf("%d attempts were burned and %d runs lost by a stop", burned, lost)
	}
}

// The server is told to go when everybody has left: nobody new comes in, and who is inside works on.
func serverDismissed(t *testing.T) {
	t.Parallel()
	s := newSitting(t)
	if _, err := s.server.Dismiss(); err != nil {
		t.Fatal(err)
	}
	until(t, "the server takes nobody in", func() bool {
		c, err := pgx.Connect(t.Context(), s.server.URL())
		if err == nil {
			_ = c.Close(t.Context())
		}
		var refused *pgconn.PgError
		return errors.As(err, &refused) && refused.Code == "57P03"
	})
	s.sitter.tell("go on")
	s.g.ended(slots, awaitLimit)
	s.heard.finish(s.sitter)
	s.failedWith()
	s.user.commit()
	if err := errors.Join(s.server.Stop(), s.server.Start()); err != nil {
		t.Fatal(err)
	}
	s.goOn(s.last)
}

// The server ends every session, in order or not. A sitting handler learns of it when it goes on.
func serverEnds(t *testing.T, end func(*pgserver.Server) error) {
	t.Parallel()
	s := newSitting(t)
	if err := errors.Join(end(s.server), s.server.Start()); err != nil {
		t.Fatal(err)
	}
	if err := s.user.tx.Commit(t.Context()); err == nil {
		t.Error("a transaction outlived its server")
	}
	s.sitter.tell("go on")
	s.goOn(s.last - 1)
	s.heard.finish(s.sitter)
	s.failedWith("unavailable", "unknown", "lost")
}

// The engine stops when its server is gone: it cannot say goodbye, ends in time all the same, and says what it left. Its
// jobs are missed and run elsewhere.
func serverThenEngine(t *testing.T) {
	t.Parallel()
	s := newSitting(t)
	if err := s.server.Abort(); err != nil {
		t.Fatal(err)
	}
	_ = s.sitter.input.Close()
	<-s.sitter.Done()
	if log := lastLines(s.sitter.log); s.sitter.Wait() == nil || !strings.Contains(log, "outcomes were not stored") || !strings.Contains(log, "store is unavailable") {
		t.Errorf("it ended with %v, and did not say that outcomes were not stored because the store is unavailable:\n%s", s.sitter.Wait(), log)
	}
	if err := s.server.Start(); err != nil {
		t.Fatal(err)
	}
	s.goOn(s.last - 1)
}

// sitting is a server with handlers that sit in their transactions, and a user who does.
type sitting struct {
	t      *testing.T
	g      *ground
	server *pgserver.Server
	f      *fleet
	heard  *chorus
	sitter *process
	user   *userTx
	last   int // the highest number: the user's
}

// userTx is a transaction of a user's own session that holds a job.
type userTx struct {
	t  *testing.T
	tx pgx.Tx
}

func newSitting(t *testing.T) *sitting {
	s := &sitting{t: t, last: slots + 50}
	s.g, s.server = onServer(t)
	s.f = newFleet(t, s.g.address)
	s.heard = s.f.chorus()
	s.sitter = s.f.start("sitter")
	for n := range slots {
		if _, err := s.g.Enqueue(t.Context(), Sit{n}); err != nil {
			t.Fatal(err)
		}
	}
	s.heard.awaitTimes(s.sitter, "sits", slots)
	s.g.enqueue(slots, s.last-slots) // nobody runs them yet
	c, err := pgx.Connect(t.Context(), s.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Within(s.g.Engine, tx).Enqueue(t.Context(), Effect{s.last}); err != nil {
		t.Fatal(err)
	}
	s.user = &userTx{t, tx}
	return s
}

func (u *userTx) commit() {
	u.t.Helper()
	if err := u.tx.Commit(u.t.Context()); err != nil {
		u.t.Errorf("a user's transaction that nobody had a reason to end: %v", err)
	}
}

// failedWith demands that runs failed with these words only.
func (s *sitting) failedWith(words ...string) {
	s.t.Helper()
	s.heard.mu.Lock()
	defer s.heard.mu.Unlock()
	for _, meant := range s.heard.failures {
		if !slices.Contains(words, meant) {
			s.t.Errorf("a run failed with %q, want none but %q", meant, words)
		}
	}
	if len(words) > 0 && len(s.heard.failures) == 0 {
		s.t.Error("no run was cut off: the test proves nothing")
	}
}

// goOn lets everybody run, and demands that exactly the numbers up to the last one have run, once.
func (s *sitting) goOn(last int) {
	s.t.Helper()
	defer s.g.watch()()
	sitter, worker := s.f.start("sitter"), s.f.start("worker")
	sitter.tell("go on")
	s.g.drained(awaitLimit)
	s.heard.finish(sitter)
	s.heard.finish(worker)
	numbers := make([]int, last+1)
	for n := range numbers {
		numbers[n] = n
	}
	s.g.expectOnce(numbers)
}
