package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func refused(t *testing.T, what string, o store.Opener, want ...error) error {
	t.Helper()
	s, err := o.Open(t.Context(), store.Settings{})
	if err == nil {
		s.Close()
		t.Fatalf("%s: opened, want %v", what, want)
	}
	wantErr(t, what, err, want...)
	return err
}

func TestOpen_ForeignFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(text, bytes.Repeat([]byte("Dear all, "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	err := refused(t, "a text file", File(text), store.ErrForeign)
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%v does not name the file", err)
	}
	after, _ := os.ReadFile(text)
	if !bytes.HasPrefix(after, []byte("Dear all")) || len(after) != 10_000 {
		t.Error("the foreign file was written to")
	}
	refused(t, "a folder", File(dir), store.ErrForeign)
	refused(t, "no folder", File(filepath.Join(dir, "no", "such", "folder.db")), os.ErrNotExist)
	refused(t, "a file as a folder", File(filepath.Join(text, "work.db")))
	refused(t, "no path", File(""), job.ErrInvalid)
	refused(t, ":memory: as a path", File(":memory:"), job.ErrInvalid)
	refused(t, "a zero byte", File("a\x00b"), job.ErrInvalid)
}

func TestOpen_ATableOfThatNameIsForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "theirs.db")
	first := open(t, File(path))
	sqlOf(t, first, "DROP TABLE pawl_schema")
	first.Close()
	refused(t, "a file with a pawl_job of its own", File(path), store.ErrForeign)
}

func TestOpen_TheUsersTablesShareTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	first := open(t, File(path))
	sqlOf(t, first, "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (7)")
	first.Close()
	s := open(t, File(path))
	var id int
	if err := s.DB().QueryRow("SELECT id FROM orders").Scan(&id); err != nil || id != 7 {
		t.Errorf("order %d, %v", id, err)
	}
}

func TestOpen_PathsAreTakenAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "100%.db", "what?vfs=memdb.db", "file:x.db", "#1.db", "ü.db"} {
		s := open(t, File(filepath.Join(dir, name)))
		s.mustEnqueue(t, draft())
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
		s.Close()
	}
}

func TestOpen_BadOptionsAreAllNamedAtOnce(t *testing.T) {
	err := refused(t, "bad options", newFile(t, Options{TxLimit: -1, BusyLimit: 1e15, Synchronous: 9}), job.ErrInvalid)
	for _, field := range []string{"tx limit", "busy limit", "synchronous"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	refused(t, "two options", newFile(t, Options{}, Options{}), job.ErrInvalid)
	_, err = newFile(t).Open(t.Context(), store.Settings{Namespace: "a,b"})
	wantErr(t, "a bad namespace", err, job.ErrInvalid)
}

func TestOpen_Addresses(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"sqlite:" + filepath.Join(dir, "work.db"), "sqlite::memory:"} {
		o, err := store.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		open(t, o).mustEnqueue(t, draft())
	}
	_, err := store.Parse("sqlite:")
	wantErr(t, "no path", err, job.ErrInvalid)
}

func TestOpen_ManyAtOnceMakeOneSchema(t *testing.T) {
	o := newFile(t)
	errs := make(chan error)
	for i := range 8 {
		go func() {
			s, err := o.Open(context.Background(), store.Settings{Namespace: fmt.Sprintf("n%d", i%2)})
			if err == nil {
				_, err = s.Enqueue(context.Background(), drafts(1))
				s.Close()
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for i := range 2 {
		s, err := o.Open(t.Context(), store.Settings{Namespace: fmt.Sprintf("n%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Count(t.Context(), store.Filter{}, 0); n.Jobs != 4 || err != nil {
			t.Errorf("namespace n%d has %d jobs, want 4 (%v)", i, n.Jobs, err)
		}
		s.Close()
	}
}
