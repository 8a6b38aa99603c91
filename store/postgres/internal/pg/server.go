package pg

import (
	"context"
	"log/slog"

	"github.com/pawlwork/pawl/job"
)

// BeginText: every transaction of the store is READ COMMITTED, whatever the default of
// the role or the database. A statement has to see what was committed while the
// one before it waited for a lock. With one snapshot for all of them a resend
// would not see that its job has ended, and two processes would make the same
// schema. Where sessions are the store's own it is their default (session.go);
// elsewhere, if need be, each transaction says it (Link.explicit).
const BeginText = "BEGIN ISOLATION LEVEL READ COMMITTED"

// examine looks at what the store finds itself in.
func (s *Link) examine(ctx context.Context, logger *slog.Logger) error {
	var encoding, isolation string
	err := s.Retry(ctx, "open", Reading, func(ctx context.Context, _ bool) error {
		return s.Send(ctx, s.Work, nil, &Statement{
			Text: "SELECT current_setting('server_encoding'), current_setting('default_transaction_isolation')",
			Each: func(scan Scan) error { return scan(&encoding, &isolation) },
		})
	})
	if err != nil {
		return err
	}
	if s.pooled.Load() {
		s.Settled = false
		logger.Warn("there is a pooler in front of the database; if it is in transaction mode, the store needs PollOnly (pawl_poll_only=true)")
	}
	s.explicit = isolation != "read committed" || !s.Settled && !s.PollOnly // hooks may reset a session
	if encoding != "UTF8" && encoding != "SQL_ASCII" {
		// Names and messages are any text, and the end of a job must not fail because of a letter.
		return job.Invalid("database encoding", encoding, "must be UTF8 (or SQL_ASCII)")
	}
	return nil
}
