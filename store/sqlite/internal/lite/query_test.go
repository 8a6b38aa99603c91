package lite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// A statement is prepared once: what is bound to it does not change its plan. (SQLite
// looks at the value of LIMIT ? unless it is told not to, and prepares anew each time.)
func TestP10_StatementsArePreparedOnce(t *testing.T) {
	d := &Database{Path: filepath.Join(t.TempDir(), "pawl.db"), BusyLimit: time.Second, Synchronous: "normal"}
	c, err := d.Connect(t.Context(), SmallCache)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const text = "SELECT count(*) FROM (SELECT 1 FROM sqlite_schema WHERE name = ? LIMIT ?)"
	for n := range int64(5) {
		if _, err := c.Query(text).Text("x").Int(n).One(); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.queries[text].stmt.Status(sqlite3.STMTSTATUS_REPREPARE, false); n != 0 {
		t.Errorf("it was prepared %d times more", n)
	}
}
