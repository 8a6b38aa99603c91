package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
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
		{"FATAL", "FATAL", "57P05", false}, // it was idle, and has done nothing
	} {
		f := pg.Sent(&pgconn.PgError{Severity: c.local, SeverityUnlocalized: c.plain, Code: c.code})
		if f.Unknown != c.unknown {
			t.Errorf("%s %s: unknown is %v", c.local, c.code, f.Unknown)
		}
	}
}

// A read that fails has no outcome, and its caller nothing to send again.
func TestP1_AReadHasNoUnknownOutcome(t *testing.T) {
	s := openInternal(t)
	broken := func() []*pg.Statement {
		return []*pg.Statement{{Text: "SELECT pg_terminate_backend(pg_backend_pid())"}}
	}
	err := s.pg.Read(t.Context(), broken)
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, job.ErrOutcomeUnknown) {
		t.Errorf("a read that broke off each time: %v", err)
	}
	err = s.pg.Retry(t.Context(), "write", pg.Always, func(ctx context.Context, _ bool) error {
		return s.pg.Send(ctx, s.pg.Work, pg.SharedLimits, broken()...)
	})
	if !errors.Is(err, job.ErrOutcomeUnknown) {
		t.Errorf("a write that broke off each time: %v", err)
	}
}

// Who waits for a lock waits often.
func TestP8_APauseHasNoLastTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 200 {
		if pg.Pause(ctx, n+1) {
			t.Errorf("pause %d did not see the end", n+1)
		}
	}
}
