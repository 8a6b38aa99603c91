package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/stream/streamtest"
)

func spoilNewest(t testing.TB, s store.Store) {
	t.Helper()
	feedtest.Exec(t, s, "UPDATE pawl_event SET rest = x'01' WHERE seq = (SELECT max(seq) FROM pawl_event)")
}

func TestStreams_File(t *testing.T) {
	streamtest.RunVirtual(t, func(t *testing.T) streamtest.Fixture { return feedtest.Fixture(t, file(t), spoilNewest) })
}

func TestStreams_Memory(t *testing.T) {
	streamtest.RunVirtual(t, func(t *testing.T) streamtest.Fixture { return feedtest.Fixture(t, memory(t), spoilNewest) })
}

// Two stores on one file know nothing of each other, as two processes do.
func TestStreams_TwoProcesses(t *testing.T) {
	streamtest.RunVirtual(t, func(t *testing.T) streamtest.Fixture {
		path := filepath.Join(t.TempDir(), "work.db")
		return feedtest.Shared(t, spoilNewest, sqlite.File(path), sqlite.File(path))
	})
}

func TestStreams_Spaces(t *testing.T) {
	streamtest.RunVirtual(t, func(t *testing.T) streamtest.Fixture {
		spaces := sqlite.NewSpaces(filepath.Join(t.TempDir(), "work.db"))
		t.Cleanup(func() {
			if err := spaces.Close(); err != nil {
				t.Error(err)
			}
		})
		return feedtest.Fixture(t, within{spaces, "one-of-many"}, spoilNewest)
	})
}

// within opens one namespace of those that share an opener.
type within struct {
	store.Opener
	namespace string
}

func (w within) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	s.Namespace = w.namespace
	return w.Opener.Open(ctx, s)
}

func TestE8_GroupsAgreeWithAModel(t *testing.T) {
	feedtest.RunModel(t, 150, memory, func(t *testing.T, program func(*testing.T)) { synctest.Test(t, program) })
}

func TestReadAhead(t *testing.T) {
	feedtest.RunAhead(t, func(t *testing.T) (one, other store.Opener) {
		path := filepath.Join(t.TempDir(), "work.db")
		return sqlite.File(path), sqlite.File(path)
	})
}
