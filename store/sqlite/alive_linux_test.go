package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Workers of two containers of one machine: the kernel is the same, and neither can see the other's processes.
const (
	oneContainer     = "kernel pid:[1] one"
	anotherContainer = "kernel pid:[2] another"
)

// aliveFile is a database with a worker that looks for the dead.
type aliveFile struct {
	t     *testing.T
	path  string
	store store.Store
	own   job.WorkerID
}

func newAliveFile(t *testing.T) *aliveFile {
	f := &aliveFile{t: t, path: filepath.Join(t.TempDir(), "work.db")}
	f.store = f.open()
	f.own = f.register(f.store, oneContainer)
	return f
}

func (f *aliveFile) open() store.Store {
	f.t.Helper()
	s, err := sqlite.File(f.path).Open(f.t.Context(), store.Settings{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

func at(machine string) store.Worker {
	return store.Worker{Label: "w", Machine: machine, Process: 1, Start: "1 time", Queues: []string{"q"}, LostAfter: time.Minute}
}

func (f *aliveFile) register(s store.Store, machine string) job.WorkerID {
	f.t.Helper()
	w, err := s.Register(f.t.Context(), at(machine))
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

// dead lists the neighbours that are proven dead.
func (f *aliveFile) dead(by job.WorkerID, s store.Store, machine string) (ids []job.WorkerID) {
	f.t.Helper()
	lost, err := s.MarkLost(f.t.Context(), store.MarkLostRequest{By: by, Machine: machine})
	if err != nil {
		f.t.Fatal(err)
	}
	if lost.Workers != 0 {
		f.t.Errorf("%d workers were declared lost for silence", lost.Workers)
	}
	for _, n := range lost.Neighbours {
		if n.Dead {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func (f *aliveFile) expect(when string, got []job.WorkerID, want ...job.WorkerID) {
	f.t.Helper()
	if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
		f.t.Errorf("%s: workers %v are proven dead, want %v", when, got, want)
	}
}

func TestJ12_AKilledProcessHoldsItsByteNoMore(t *testing.T) {
	f := newAliveFile(t)
	other := startOther(t)
	there := &remote{client: other.client}
	if err := there.open(Opening{Path: f.path}); err != nil {
		t.Fatal(err)
	}
	w, err := call[job.WorkerID](there, "Register", at(anotherContainer))
	if err != nil {
		t.Fatal(err)
	}
	f.expect("while it lives", f.dead(f.own, f.store, oneContainer))
	lost, err := call[store.MarkLostReply](there, "MarkLost", store.MarkLostRequest{By: w, Machine: anotherContainer})
	if err != nil || len(lost.Neighbours) != 1 || lost.Neighbours[0].Dead {
		t.Errorf("seen from there: %+v, %v", lost, err)
	}
	if err := other.kill(); err != nil {
		t.Fatal(err)
	}
	f.expect("killed, seen from another machine", f.dead(f.own, f.store, "anotherkernel pid:[1] one"))
	f.expect("killed, seen from one that cannot tell", f.dead(f.own, f.store, ""))
	f.expect("killed", f.dead(f.own, f.store, oneContainer), w)
}

func TestJ12_StoresOfOneProcessHoldTheirOwnBytes(t *testing.T) {
	f := newAliveFile(t)
	second := f.register(f.store, oneContainer) // of the same store: its own lock does not look taken to it
	other := f.open()
	third := f.register(other, anotherContainer)
	f.expect("seen from the first", f.dead(f.own, f.store, oneContainer))
	f.expect("seen from the other", f.dead(third, other, anotherContainer))
	if err := f.store.Deregister(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	f.expect("after one left", f.dead(third, other, anotherContainer))
	if err := other.Close(); err != nil { // without a word
		t.Fatal(err)
	}
	f.expect("after a store was closed", f.dead(f.own, f.store, oneContainer), third)
}

// TestJ12_ARemovedFileProvesNothing removes the file in which a living worker holds its byte: in the new one it is free.
func TestJ12_ARemovedFileProvesNothing(t *testing.T) {
	f := newAliveFile(t)
	if err := os.Remove(f.path + "-alive"); err != nil {
		t.Fatal(err)
	}
	other := f.open()
	w := f.register(other, anotherContainer)
	f.expect("of a worker in the old file", f.dead(w, other, anotherContainer))
	f.expect("of a worker in the new file", f.dead(f.own, f.store, oneContainer))
}

// TestJ12_WithoutTheFileTheLeaseDecides makes a folder of its name.
func TestJ12_WithoutTheFileTheLeaseDecides(t *testing.T) {
	f := &aliveFile{t: t, path: filepath.Join(t.TempDir(), "work.db")}
	if err := os.Mkdir(f.path+"-alive", 0o755); err != nil {
		t.Fatal(err)
	}
	f.store = f.open()
	f.own = f.register(f.store, oneContainer)
	other := f.open()
	f.register(other, anotherContainer)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	f.expect("without proof", f.dead(f.own, f.store, oneContainer))
}
