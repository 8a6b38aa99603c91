package lite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// WithMeaning joins the sentinel that fits to an error of SQLite.
func WithMeaning(err error) error {
	if m := meaning(err); m != nil {
		return fmt.Errorf("%w: %w", m, err)
	}
	return err
}

func meaning(err error) error {
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return nil
	}
	switch code {
	case sqlite3.FULL:
		return store.ErrFull
	case sqlite3.IOERR:
		// A full disk reports either of the two, depending on which write met it.
		return store.ErrFull
	case sqlite3.READONLY, sqlite3.PERM:
		return store.ErrReadOnly
	case sqlite3.BUSY, sqlite3.LOCKED, sqlite3.PROTOCOL:
		return store.ErrBusy
	case sqlite3.CORRUPT:
		return store.ErrCorrupt
	case sqlite3.NOTADB:
		return store.ErrForeign
	case sqlite3.CANTOPEN:
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return store.ErrReadOnly
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return store.ErrFull
		}
	}
	return nil
}

// meant reports whether an error says already what it means to the caller.
func meant(err error) bool {
	for _, m := range []error{
		store.ErrClosed, store.ErrTxTooLong, store.ErrForeignTx, store.ErrFull, store.ErrBusy, store.ErrReadOnly, store.ErrCorrupt, store.ErrInUse,
		job.ErrWorkerLost, job.ErrNotFound, job.ErrInvalid, job.ErrOutcomeUnknown,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, m) {
			return true
		}
	}
	return false
}

// Ambiguous reports whether a failed COMMIT may still be found on disk. The
// commit record is the last thing written to the log, so a write that failed
// left none; a flush that failed may have left it, and a crash before the next
// commit overwrites it would bring it back.
func Ambiguous(err error) bool {
	return errors.Is(err, sqlite3.IOERR_FSYNC) || errors.Is(err, sqlite3.IOERR_DIR_FSYNC)
}

// IsConstraint reports whether a row was refused because of those that are there.
func IsConstraint(err error) bool { return errors.Is(err, sqlite3.CONSTRAINT) }
