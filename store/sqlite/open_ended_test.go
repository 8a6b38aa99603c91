package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

func TestOpen_ThatIsNotWaitedForSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	why := errors.New("the user went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := sqlite.File(path).Open(ctx, store.Settings{}); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}
