package sqlite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A transaction that is missing, mostly after an error that nobody looked at, is
// refused with words at its first use.
func TestJ2_WithinNilIsRefused(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tx := sqlite.Within(e, nil)
	_, enqueue := tx.Enqueue(t.Context(), pawl.RawArgs("mail", nil))
	_, exec := tx.Exec(t.Context(), "select 1")
	_, query := tx.Query(t.Context(), "select 1")
	for call, err := range map[string]error{"enqueue": enqueue, "exec": exec, "query": query} {
		if !errors.Is(err, pawl.ErrForeignTx) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
