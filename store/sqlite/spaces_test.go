package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// openSpaces opens n namespaces of a new file.
func openSpaces(t *testing.T, n int) (*Spaces, []*Store) {
	t.Helper()
	spaces := NewSpaces(filepath.Join(t.TempDir(), "work.db"))
	t.Cleanup(func() {
		if err := spaces.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	list := make([]*Store, n)
	for i := range list {
		s, err := spaces.Open(t.Context(), store.Settings{Namespace: fmt.Sprintf("tenant-%03d", i)})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = s.(*Store)
	}
	return spaces, list
}

// countCommits counts those that write something from now on. Nothing may be written just now.
func countCommits(t *testing.T, s *Store) *int {
	t.Helper()
	if err := s.lock.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.lock.Release()
	commits, before := new(int), s.writer.conn.Raw.TotalChanges()
	s.writer.conn.Raw.CommitHook(func() bool {
		if now := s.writer.conn.Raw.TotalChanges(); now != before {
			before = now
			*commits++
		}
		return true
	})
	return commits
}

func TestF12_BeatsOfManyNamespacesShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, list := openSpaces(t, 100)
		for _, s := range list {
			s.mustRegister(t)
		}
		commits := countCommits(t, list[0])
		gather(t, list[0], len(list), func(i int) {
			if i%10 == 3 { // no worker of anybody
				_, err := list[i].Beat(t.Context(), store.Beat{Worker: 999})
				wantErr(t, "the beat of no worker", err, job.ErrWorkerLost)
				return
			}
			infos, err := list[i].Registry(t.Context())
			if err != nil || len(infos) != 1 {
				t.Errorf("%d workers in a namespace, %v, want its own", len(infos), err)
				return
			}
			if reply, err := list[i].Beat(t.Context(), store.Beat{Worker: infos[0].ID}); err != nil || !reply.Leader {
				t.Errorf("the beat is answered %+v, %v", reply, err)
			}
		})
		if *commits != 1 {
			t.Errorf("beats of %d namespaces took %d commits, want 1", len(list), *commits)
		}
	})
}

// A hundred engines in one process keep one file open as one of them does, and
// write as seldom.
func TestF12_AHundredIdleNamespacesWriteLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, periods = 100, 12
		path := filepath.Join(t.TempDir(), "work.db")
		spaces := NewSpaces(path)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var first *Store
		for i := range n {
			e, err := pawl.New(spaces, pawl.Config{
				Namespace: fmt.Sprintf("tenant-%03d", i), Queues: pawl.Queues{"default": {Workers: 2}}, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			pawl.Handle(e, func(context.Context, *pawl.Job[tenantArgs]) error { return nil })
			if first == nil {
				first = e.Store().(*Store)
			}
			running.Go(func() {
				if err := e.Run(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
			})
			time.Sleep(37 * time.Millisecond) // stimulus: they do not start at one moment
		}
		time.Sleep(10 * time.Second) // stimulus: they have started
		synctest.Wait()
		if files := openFiles(t, path); files > 8 {
			t.Errorf("the file is open %d times, want as for one store: to write, to read (4), to watch", files)
		}
		commits := countCommits(t, first)
		time.Sleep(periods * 5 * time.Second) // stimulus: beat periods pass
		synctest.Wait()
		if *commits > periods+1 {
			t.Errorf("%d commits in %d beat periods of %d namespaces, want one in each", *commits, periods, n)
		}
		cancel()
		running.Wait()
		if err := spaces.Close(); err != nil {
			t.Error(err)
		}
	})
}

type tenantArgs struct{}

func (tenantArgs) Kind() string { return "tenant" }

// openFiles is how often this process has a file open, where the system tells.
func openFiles(t *testing.T, path string) (n int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == path {
			n++
		}
	}
	return n
}

// A commit is heard of where there is something to do, and only there.
func TestF12_HintsReachTheNamespaceTheyAreFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spaces, list := openSpaces(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var listening sync.WaitGroup
		heard := make([]int, len(list))
		for i, s := range list {
			listening.Go(func() {
				err := s.Listen(ctx, func(store.Hint) { heard[i]++ })
				wantErr(t, "listen", err, context.Canceled)
			})
		}
		synctest.Wait()
		other, err := File(spaces.opener.path).Open(t.Context(), store.Settings{Namespace: "tenant-001"}) // as another process would
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Enqueue(t.Context(), drafts(1)); err != nil { // after the first commit each hears of its settings
			t.Fatal(err)
		}
		time.Sleep(time.Second) // stimulus: they look at the file
		synctest.Wait()
		for i := range heard {
			heard[i] = 0
		}
		if _, err := other.Enqueue(t.Context(), drafts(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // stimulus: they look at the file
		synctest.Wait()
		if heard[0] != 0 || heard[1] == 0 || heard[2] != 0 {
			t.Errorf("the namespaces heard %v hints, want that only the second hears", heard)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		listening.Wait()
	})
}

// Calls of several namespaces share a commit: one that fails after it has written
// costs the others nothing, and what each has written is its own.
func TestP8_OneNamespaceOfAFailedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, list := openSpaces(t, 6)
		broken := errors.New("broken")
		gather(t, list[0], len(list), func(i int) {
			if i == 2 {
				err := list[i].write(t.Context(), 1, func(tr *jobs.Transition) error {
					_, err := tr.Enqueue(drafts(1))
					return errors.Join(err, broken)
				})
				wantErr(t, "the failing call", err, broken)
				return
			}
			if _, err := list[i].Enqueue(t.Context(), drafts(i+1)); err != nil {
				t.Errorf("another namespace: %v", err)
			}
		})
		gather(t, list[0], len(list), func(i int) { // and none that fails
			if _, err := list[i].Enqueue(t.Context(), drafts(10)); err != nil {
				t.Errorf("a namespace: %v", err)
			}
		})
		for i, s := range list {
			want := 10 + i + 1
			if i == 2 {
				want = 10
			}
			if n := s.mustCount(t); n != want {
				t.Errorf("namespace %d has %d jobs, want %d", i, n, want)
			}
		}
	})
}

func TestF12_OneTransactionTakesJobsOfSeveralNamespacesAlong(t *testing.T) {
	_, list := openSpaces(t, 2)
	for _, commit := range []bool{false, true} {
		tx, err := list[0].DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range list {
			if _, err := s.Within(tx).Enqueue(t.Context(), drafts(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for i, s := range list {
			want := 0
			if commit {
				want = i + 1
			}
			if n := s.mustCount(t); n != want {
				t.Errorf("committed is %v, namespace %d has %d jobs, want %d", commit, i, n, want)
			}
		}
	}
	alone := open(t, newFile(t))
	tx, err := list[0].DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = alone.Within(tx).Enqueue(t.Context(), drafts(1))
	wantErr(t, "in a transaction of another file", err, store.ErrForeignTx)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// A call of another namespace inside a transaction would wait for itself.
func TestErrInsideTx_OfAnotherNamespaceOfTheFile(t *testing.T) {
	spaces := NewSpaces(filepath.Join(t.TempDir(), "work.db"))
	var engines []*pawl.Engine
	for _, tenant := range []string{"a", "b"} {
		e, err := pawl.New(spaces, pawl.Config{Namespace: tenant})
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	err := engines[0].Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		_, err := engines[1].Enqueue(ctx, tenantArgs{})
		wantErr(t, "enqueue of another namespace inside", err, pawl.ErrInsideTx)
		if _, err := engines[1].Count(ctx, pawl.Filter{}, 0); err != nil {
			t.Errorf("a read of another namespace inside: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := engines[1].Enqueue(t.Context(), tenantArgs{}); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := spaces.Close(); err != nil {
		t.Error(err)
	}
}

func TestF12_ClosingOneNamespaceLeavesTheOthersAndClosingSpacesClosesAll(t *testing.T) {
	spaces, list := openSpaces(t, 3)
	if err := list[0].Close(); err != nil {
		t.Fatal(err)
	}
	_, err := list[0].Enqueue(t.Context(), drafts(1))
	wantErr(t, "enqueue after Close", err, store.ErrClosed)
	if _, err = list[0].Registry(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a read after Close is answered %v", err)
	}
	for _, s := range list[1:] {
		s.mustEnqueue(t, drafts(1)...)
	}
	again, err := spaces.Open(t.Context(), store.Settings{Namespace: "tenant-000"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := spaces.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []store.Store{list[1], list[2], again} {
		_, err := s.Enqueue(t.Context(), drafts(1))
		wantErr(t, "enqueue after Close of all", err, store.ErrClosed)
	}
	_, err = spaces.Open(t.Context(), store.Settings{})
	wantErr(t, "open after Close", err, store.ErrClosed)
}

// What is wrong with a path or with options is said by the first Open, and the
// next one tries again.
func TestF12_SpacesThatCannotBeOpened(t *testing.T) {
	folder := t.TempDir()
	spaces := NewSpaces(filepath.Join(folder, "none", "work.db"))
	for range 2 {
		if _, err := spaces.Open(t.Context(), store.Settings{}); err == nil || !strings.Contains(err.Error(), "its folder") {
			t.Errorf("open in a folder that is not there: %v", err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := spaces.Open(t.Context(), store.Settings{}); err != nil {
		t.Errorf("open in a folder that is there now: %v", err)
	}
	if err := spaces.Close(); err != nil {
		t.Error(err)
	}
}
