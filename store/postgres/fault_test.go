package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server speaks the language of its lc_messages. What it refused was rolled
// back in every language.
func TestP1_AServerOfAnotherLanguageIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		local, plain, code string
		unknown            bool
	}{
		{"ERROR", "ERROR", "23505", false},
		{"FEHLER", "ERROR", "23505", false},
		{"FATAL", "FATAL", "57P01", true},
		{"致命的エラー", "FATAL", "57P01", true},
		{"PANIK", "PANIC", "XX000", true},
	} {
		f := sent(&pgconn.PgError{Severity: c.local, SeverityUnlocalized: c.plain, Code: c.code})
		if f.unknown != c.unknown {
			t.Errorf("%s %s: unknown is %v", c.local, c.code, f.unknown)
		}
	}
}
