package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Fault is an error of a transition with what it means for trying again.
type Fault struct {
	Err error
	// Unknown: the commit may have happened, its answer was lost.
	Unknown bool
	// Passing: the same call may well succeed a moment later.
	Passing bool
	// Blocked: it waited for a lock that somebody else holds, or the server
	// ended it to resolve a deadlock.
	Blocked bool
}

// Sent judges an error of statements that were sent with their commit. What the
// server answers with ERROR was rolled back. Everything else, a FATAL of a
// shutdown included, may have hit the connection after the commit.
func Sent(err error) Fault {
	f := Fault{Err: err}
	var server *pgconn.PgError
	var before pgx.ErrPreprocessingBatch
	switch {
	case errors.As(err, &server):
		// The other severity is in the server's language. A session that was ended
		// because it was idle has not read what was sent.
		f.Unknown = server.SeverityUnlocalized != "ERROR" && server.Code != "57P05"
		f.Passing, f.Blocked = passing(server.Code), blocking(server.Code)
	case errors.Is(err, pgconn.ErrConnClosed):
		// pgx says so, and that it is safe to try again, also when the connection
		// broke while it waited for the answer of a simple query.
		f.Unknown = true
	case errors.As(err, &before), pgconn.SafeToRetry(err):
		f.Passing = true
	case errors.Is(err, errUnreadable):
	default:
		f.Unknown, f.Passing = true, true
	}
	if f.Unknown {
		f.Passing = true
	}
	return f
}

// errUnreadable marks an answer that arrived and could not be read: a fault of
// this package, not of the connection.
var errUnreadable = errors.New("pawl: the server's answer cannot be read")

// passing reports whether an error of the server is gone on a second try.
func passing(code string) bool {
	switch code {
	case "40001", // serialization
		"40P01",                            // deadlock
		"55P03",                            // lock timeout
		"57P01", "57P02", "57P03", "57P05", // shutdown, crash, starting up, idle for too long
		"53300", // too many connections
		"26000", // prepared statement is gone: a pooler, or a reset session
		"0A000": // cached plan, after a migration
		return true
	}
	return strings.HasPrefix(code, "08") // connection
}

func blocking(code string) bool { return code == "55P03" || code == "40P01" }

// codeOf is the server's code of an error, empty if it is none of the server's.
func codeOf(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

// HasCode reports whether the server answered with one of the codes.
func HasCode(err error, codes ...string) bool { return slices.Contains(codes, codeOf(err)) }

// Meaning is the sentinel that fits an error, nil if none does.
func Meaning(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		var connect *pgconn.ConnectError
		if errors.As(err, &connect) || pgconn.SafeToRetry(err) || disconnected(err) {
			return store.ErrUnavailable
		}
		return nil
	}
	switch server.Code {
	case "53100", "58030": // disk full, I/O error
		return store.ErrFull
	case "25006", "57P04": // read-only transaction: a standby; database dropped
		return store.ErrReadOnly
	case "XX001", "XX002":
		return store.ErrCorrupt
	case "3F000", "42P01", "42703": // no such schema, table, column
		return store.ErrSchemaOlder
	case "55P03", "40P01", "40001":
		return store.ErrBusy
	case "25P03":
		return store.ErrTxTooLong
	case "57P01", "57P02", "57P03", "57P05", "53300":
		return store.ErrUnavailable
	}
	if strings.HasPrefix(server.Code, "08") {
		return store.ErrUnavailable
	}
	return nil
}

// disconnected reports whether an error is what the network said when the
// connection broke. With a commit under way it does not tell the outcome: sent
// judges that before.
func disconnected(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Explain gives an error its meaning for a caller. Errors that have one already
// are left alone.
func Explain(doing string, err error) error {
	if err == nil || Meant(err) {
		return err
	}
	if HasCode(err, "26000", "42P05") {
		err = fmt.Errorf("%w (behind a pooler in transaction mode the store needs Options.PollOnly)", err)
	}
	if m := Meaning(err); m != nil {
		return fmt.Errorf("%s: %w: %w", doing, m, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Meant reports whether an error says already what it means to the caller.
func Meant(err error) bool {
	for _, m := range []error{
		store.ErrClosed, store.ErrTxTooLong, store.ErrForeignTx, store.ErrFull, store.ErrBusy, store.ErrReadOnly, store.ErrCorrupt,
		store.ErrUnavailable, store.ErrInUse, store.ErrSchemaNewer, store.ErrSchemaOlder, store.ErrForeign,
		job.ErrWorkerLost, job.ErrNotFound, job.ErrInvalid, job.ErrOutcomeUnknown, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, m) {
			return true
		}
	}
	return false
}

// Unavailable is an error from before anything was sent.
func Unavailable(err error) error {
	if Meant(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}
