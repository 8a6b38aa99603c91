package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Cursors is a log that keeps how far named readers have come.
//
// A cursor has a turn, which every change raises: whoever moves it says which turn it
// knows, and one that somebody else has opened, moved or set since is lost to it. So a
// batch is committed as that batch or not at all, and a reader that was taken for dead
// commits nothing.
type Cursors interface {
	Log
	// OpenCursor makes the caller the holder of a cursor, which is made where there is
	// none. One that a worker holds under a lease is ErrCursorHeld until the lease is over.
	OpenCursor(ctx context.Context, o CursorOpen) (CursorState, error)
	// MoveCursor commits where a cursor is. It is ErrCursorLost when its turn is another.
	// The same move again, after an answer that was lost, is answered as the first was.
	MoveCursor(ctx context.Context, m CursorMove) (CursorState, error)
	// RenewCursor lengthens the lease of a holder. It moves nothing.
	RenewCursor(ctx context.Context, m CursorMove) error
	// FreeCursor ends the lease of a holder, so that nobody waits for it.
	FreeCursor(ctx context.Context, m CursorMove) error
	// ListCursors lists up to n cursors by name, after one.
	ListCursors(ctx context.Context, after string, n int) ([]CursorInfo, error)
	// CursorNamed is one of them. ErrNotFound where there is none.
	CursorNamed(ctx context.Context, name string) (CursorInfo, error)
	// SeekCursor puts a cursor somewhere else. Who reads with it starts anew from there.
	SeekCursor(ctx context.Context, name string, to stream.Position, op Operator) error
	// DeleteCursor forgets a cursor. ErrNotFound where there is none.
	DeleteCursor(ctx context.Context, name string, op Operator) error
}

// TxCursors is a transaction that moves cursors along: position and effects commit
// together.
type TxCursors interface {
	MoveCursor(ctx context.Context, m CursorMove) (CursorState, error)
}

// CursorOpen asks for a cursor.
type CursorOpen struct {
	Name   string
	Filter stream.Filter // what it reads; one that was made with another is ErrCursorFilter
	Start  stream.Position
	Holder uuid.UUID
	// Lease is for how long nobody else may open it; 0: until somebody does.
	Lease time.Duration
}

// Check refuses what cannot be asked.
func (o *CursorOpen) Check() error {
	_, err := o.Filter.Matcher()
	if o.Lease < 0 {
		err = errors.Join(err, job.Invalid("lease", o.Lease, "must be 0 or more"))
	}
	return errors.Join(CheckCursorName(o.Name), err)
}

// MaxCursorName bounds the name of a cursor, in bytes.
const MaxCursorName = 128

// CheckCursorName refuses what cannot be the name of a cursor.
func CheckCursorName(name string) error { return job.CheckText("cursor", name, 1, MaxCursorName) }

// CursorMove says where a cursor is now.
type CursorMove struct {
	Name   string
	Turn   int64 // as its holder knows it
	Holder uuid.UUID
	To     stream.Position
	Lease  time.Duration // as it was opened with
	// Losses is what is remembered of holders that were lost; 0 when what follows is not
	// suspected of it.
	Losses int
	// Trimmed says that events were removed before it read them (EventPage.Trimmed).
	Trimmed bool
}

// CursorState is a cursor as its holder needs it.
type CursorState struct {
	Turn int64
	At   stream.Position
	// Losses is how many holders in a row were lost with a lease, and moved nothing.
	Losses int
	// Made says that the cursor is new.
	Made bool
	// Anchored says that the log has begun another epoch since it was moved last: it goes
	// on where it was, and what was lost with the old one is not read again.
	Anchored bool
}

// CursorInfo is a cursor as others see it.
type CursorInfo struct {
	Name   string
	Filter stream.Filter
	At     stream.Position
	Turn   int64
	Losses int
	Made   time.Time
	Moved  time.Time // zero: never
	// Until is when the lease of its holder ends; zero: it has none.
	Until time.Time
	// Trimmed is when it last went past events that retention had removed before it could
	// read them; zero: never.
	Trimmed time.Time
}

var (
	// ErrCursorLost: somebody else has opened, moved or deleted the cursor since.
	ErrCursorLost = errors.New("pawl: cursor is held by another now")
	// ErrCursorHeld: a worker holds the cursor, and its lease is not over.
	ErrCursorHeld = errors.New("pawl: cursor is held by a worker")
	// ErrCursorFilter: the cursor was made with another filter.
	ErrCursorFilter = errors.New("pawl: cursor has another filter")
)

// OtherFilter is the error of a cursor that was made with another filter.
func OtherFilter(name, kept, asked string) error {
	return fmt.Errorf("%w: %q reads %s, and %s is asked for: give another name, or delete it", ErrCursorFilter, name, kept, asked)
}

// HeldUntil is the error of a cursor that a worker holds.
func HeldUntil(name string, until time.Time) error {
	return fmt.Errorf("%w: %q, until %s", ErrCursorHeld, name, until.UTC().Format(time.RFC3339))
}
