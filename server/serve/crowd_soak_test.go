//go:build soak

package serve_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	_ "github.com/pawlwork/pawl/store/postgres" // for its scheme
)

// size is how much of something a soak has: less with its variable, to try it out.
func size(t *testing.T, variable string, full int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return full
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, must be a number above 0", variable, text)
	}
	t.Logf("%s=%d, not %d", variable, n, full)
	return n
}

// onStores runs a test on a SQLite file and on a Postgres of its own.
func onStores(t *testing.T, run func(t *testing.T, address string)) {
	t.Run("SQLite", func(t *testing.T) { run(t, "sqlite:"+filepath.Join(t.TempDir(), "work.db")) })
	t.Run("Postgres", func(t *testing.T) {
		run(t, need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB").URL())
	})
}
