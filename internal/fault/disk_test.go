//go:build fault

package fault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
)

// TestFault_P1_FullDisk fills the disk in the middle of work. Everybody who writes gets a clear error, and that error
// means that nothing was done; what was accepted is kept. With room again everything accepted gets done.
func TestFault_P1_FullDisk(t *testing.T) {
	dir := need.SmallDisk(t, 64<<20)
	g := openGround(t, "sqlite:"+filepath.Join(dir, "work.db"))
	rounds := 3
	if long() {
		rounds = 30
	}

	var failed atomic.Int64 // runs that met the full disk
	pawl.Handle(g.Engine, func(ctx context.Context, j *pawl.Job[Effect]) error {
		err := leaveRow(ctx, g.Engine, j.Args.N, j.Run, j)
		switch {
		case errors.Is(err, store.ErrFull):
			failed.Add(1)
		case err != nil && !errors.Is(err, pawl.ErrLeaseLost): // a full disk takes no heartbeats either
			t.Errorf("a run failed with something else than ErrFull: %v", err)
		}
		return err
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()

	s := &senders{t: t, e: g.Engine}
	s.until(func(accepted, refused int) bool { return accepted >= 200 })
	for range rounds {
		before := len(s.refused)
		ballast := fill(t, dir)
		s.until(func(accepted, refused int) bool { return refused >= before+100 })
		g.live() // who reads needs no room
		if _, err := pawl.Open(t.Context(), "sqlite:"+filepath.Join(dir, "new.db"), config()); !errors.Is(err, store.ErrFull) {
			t.Errorf("a new store on a full disk: %v, want ErrFull", err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		room := len(s.accepted)
		s.until(func(accepted, refused int) bool { return accepted >= room+200 })
	}
	g.drained(awaitLimit)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	g.expectOnce(s.accepted)
	if failed.Load() == 0 {
		t.Error("no run met the full disk: the test proves nothing about them")
	}
	t.Logf("%d rounds: %d jobs accepted, %d refused, %d runs failed", rounds, len(s.accepted), len(s.refused), failed.Load())
}

// fill leaves no room on a disk and returns the file that took it.
func fill(t *testing.T, dir string) string {
	t.Helper()
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	for piece := make([]byte, 1<<20); len(piece) >= 1; {
		if _, err := ballast.Write(piece); errors.Is(err, syscall.ENOSPC) {
			piece = piece[:len(piece)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return ballast.Name()
}

// senders hand in numbered jobs and keep account of the answers.
type senders struct {
	t *testing.T
	e *pawl.Engine

	mu                sync.Mutex
	next              int
	accepted, refused []int // numbers
}

// until sends from several goroutines until the account says so.
func (s *senders) until(enough func(accepted, refused int) bool) {
	s.t.Helper()
	limit, cancel := context.WithTimeout(s.t.Context(), awaitLimit)
	defer cancel()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				s.mu.Lock()
				n := s.next
				s.next++
				over := enough(len(s.accepted), len(s.refused))
				s.mu.Unlock()
				if over || limit.Err() != nil {
					return
				}
				_, err := s.e.Enqueue(s.t.Context(), Effect{n})
				s.mu.Lock()
				switch {
				case err == nil:
					s.accepted = append(s.accepted, n)
				case errors.Is(err, store.ErrFull) && !errors.Is(err, pawl.ErrOutcomeUnknown):
					s.refused = append(s.refused, n)
				default:
					s.t.Errorf("sending failed with something else than ErrFull: %v", err)
				}
				s.mu.Unlock()
			}
		})
	}
	all.Wait()
	if limit.Err() != nil {
		s.t.Fatalf("after %v: %d accepted, %d refused", awaitLimit, len(s.accepted), len(s.refused))
	}
}
