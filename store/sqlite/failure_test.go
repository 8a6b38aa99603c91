package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func faulty(t *testing.T) (*Store, *disk) {
	t.Helper()
	d, name := newDisk(t)
	o := newFile(t).(opener)
	o.vfs = name
	return open(t, o), d
}

func TestFull_EveryCallerIsToldAndNothingIsHalfDone(t *testing.T) {
	s, d := faulty(t)
	w := s.mustRegister(t)
	s.mustEnqueue(t, drafts(3)...)
	held := s.mustClaim(t, claimOf(w, 1, 1)).Jobs[0]

	for room := range int64(4) {
		d.room.Store(room)
		d.full.Store(true)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := s.Enqueue(context.Background(), drafts(50))
				wantErr(t, "enqueue on a full disk", err, store.ErrFull)
			})
		}
		wg.Wait()
		_, err := s.Finish(t.Context(), w, []job.End{{ID: held.ID, Run: held.Run, To: job.Done}})
		wantErr(t, "finish on a full disk", err, store.ErrFull)
		if n := s.mustCount(t); n != 3 {
			t.Fatalf("%d jobs after the disk was full, want the 3 from before", n)
		}
		d.full.Store(false)
		report, err := s.Check(t.Context(), store.Check{})
		if err != nil || len(report.Faults) > 0 {
			t.Fatalf("check after the disk was full: %v %v", report.Faults, err)
		}
	}
	// There is room again: everything goes on as if nothing had been.
	if v, err := s.Finish(t.Context(), w, []job.End{{ID: held.ID, Run: held.Run, To: job.Done}}); err != nil || v[0] != job.Applied {
		t.Errorf("finish when there is room again: %v %v", v, err)
	}
	s.mustEnqueue(t, drafts(50)...)
	if n := s.mustCount(t, job.Waiting); n != 52 {
		t.Errorf("%d jobs wait, want 52", n)
	}
}

// A commit that is small enough for the room that is left is not refused for
// the sake of a large one beside it.
func TestFull_TheSmallCallGoesThrough(t *testing.T) {
	s, _ := faulty(t)
	pages, err := s.writer.conn.Query("PRAGMA page_count").One()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.writer.conn.Raw.Exec(fmt.Sprintf("PRAGMA max_page_count=%d", pages+4)); err != nil {
		t.Fatal(err)
	}
	if err := s.lock.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Enqueue(context.Background(), drafts(1000))
		wantErr(t, "the large call", err, store.ErrFull)
	})
	wg.Go(func() {
		if _, err := s.Enqueue(context.Background(), drafts(1)); err != nil {
			t.Errorf("the small call: %v", err)
		}
	})
	s.lock.Release()
	wg.Wait()
	if n := s.mustCount(t); n != 1 {
		t.Errorf("%d jobs, want that of the small call", n)
	}
}

func TestFull_AUsersTransactionIsToldToo(t *testing.T) {
	s, d := faulty(t)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Enqueue(t.Context(), drafts(1)); err != nil {
		t.Fatal(err)
	}
	d.full.Store(true)
	wantErr(t, "commit on a full disk", tx.Commit(t.Context()), store.ErrFull)
	d.full.Store(false)
	if n := s.mustCount(t); n != 0 {
		t.Errorf("%d jobs, want none", n)
	}
	s.mustEnqueue(t, draft()) // the lock is free
}

// A flush that fails leaves the one outcome that nobody knows: the commit may
// be found after a crash. Repeating the send under its id is safe.
func TestP1_AFailedFlushIsAnUnknownOutcome(t *testing.T) {
	s, d := faulty(t)
	d.noFlush.Store(true)
	sent := draft()
	_, err := s.Enqueue(t.Context(), []job.Draft{sent})
	wantErr(t, "enqueue without a flush", err, job.ErrOutcomeUnknown, store.ErrFull)
	d.noFlush.Store(false)
	sent.Resend = true
	r := s.mustEnqueue(t, sent)
	if r[0].ID != sent.ID {
		t.Errorf("resend answered %v, want its own id", r[0])
	}
	if n := s.mustCount(t); n != 1 {
		t.Errorf("%d jobs after the resend, want 1", n)
	}
}

// When the file itself cannot grow, commits go on into the log.
func TestFull_ACheckpointThatFailsHarmsNobody(t *testing.T) {
	s, d := faulty(t)
	d.noRoomDB.Store(true)
	for range 30 {
		s.mustEnqueue(t, drafts(500)...)
	}
	if n := s.mustCount(t); n != 15_000 {
		t.Errorf("%d jobs, want 15000", n)
	}
	d.noRoomDB.Store(false)
	s.mustEnqueue(t, draft())
}

func TestBusy_AnotherProcessHoldsTheLockTooLong(t *testing.T) {
	o := newFile(t, Options{BusyLimit: 1e6})
	s, other := open(t, o), open(t, o)
	if err := other.writer.conn.Raw.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Enqueue(t.Context(), drafts(1))
	wantErr(t, "enqueue behind another's lock", err, store.ErrBusy)
	_, err = s.Begin(t.Context())
	wantErr(t, "begin behind another's lock", err, store.ErrBusy)
	if n := s.mustCount(t); n != 0 { // reading needs no lock
		t.Errorf("%d jobs, want none", n)
	}
	if err := other.writer.conn.Raw.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	s.mustEnqueue(t, draft())
}

func TestCorrupt_IsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	first := open(t, File(path))
	first.mustEnqueue(t, drafts(2000)...)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ { // all but the first page, which says that it is a database
		data[i] = byte(i * 7)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := File(path).Open(t.Context(), store.Settings{})
	if err == nil {
		_, err = s.Enqueue(t.Context(), drafts(1))
		s.Close()
	}
	wantErr(t, "a damaged file", err, store.ErrCorrupt)
}
