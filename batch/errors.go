package batch

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

var (
	// ErrInvalid is wrapped by every complaint about options or arguments.
	ErrInvalid = errors.New("batch: invalid")
	// ErrQueueFull refuses an item because a limit is reached; the error is a [*QueueFullError] that says which.
	ErrQueueFull = errors.New("batch: queue full")
	// ErrClosed refuses an item because [Batcher.Close] was called, or answers one that Close had to give up before it was processed.
	ErrClosed = errors.New("batch: closed")
	// ErrOutcomeUnknown answers a caller whose context ended after the processing of its item had begun.
	// Without it, a caller that left knows that its item was not processed and never will be.
	ErrOutcomeUnknown = errors.New("batch: outcome unknown, processing had begun")
	// ErrWrongOutputs answers every item of a batch whose process function returned more or fewer outputs than inputs.
	ErrWrongOutputs = errors.New("batch: wrong number of outputs")
	// ErrPanic answers every item of a batch whose functions panicked; the error is a [*PanicError].
	ErrPanic = errors.New("batch: panic")
)

// QueueFullError names the limit that refused an item. It is [ErrQueueFull].
type QueueFullError struct {
	Name  string // the batcher's Options.Name
	Limit string // the field of Options: "MaxWaiting", "TotalItems" or "TotalBytes"; "MaxBatch" with RejectWhenFull
	Max   int    // what the field allows: batches, items or bytes
	Held  int    // how much of it was taken at that moment
	Asked int    // how much more the item needed
}

// Error says which limit is reached and by how much.
func (e *QueueFullError) Error() string {
	return fmt.Sprintf("%s%v: Options.%s is %d; %d held and %d more asked", prefix(e.Name), ErrQueueFull, e.Limit, e.Max, e.Held, e.Asked)
}

// Unwrap makes errors.Is(err, ErrQueueFull) true.
func (e *QueueFullError) Unwrap() error { return ErrQueueFull }

// PanicError is a panic of a user's function, turned into an error for the batch it happened in. It is [ErrPanic], and
// the panic's value as well when that was an error.
type PanicError struct {
	Name  string // the batcher's Options.Name
	Value any    // what was passed to panic
	Stack []byte // where
}

func newPanicError(name string, value any) *PanicError {
	return &PanicError{Name: name, Value: value, Stack: debug.Stack()}
}

// errExited is the value of the PanicError of a function that left through runtime.Goexit, as testing.T.FailNow does.
var errExited = errors.New("runtime.Goexit was called")

// Error holds the value; the stack is too long for a message and stays in its field.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%s%v: %v", prefix(e.Name), ErrPanic, e.Value)
}

// Unwrap makes errors.Is find ErrPanic and an error that was panicked with.
func (e *PanicError) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{ErrPanic, err}
	}
	return []error{ErrPanic}
}

// Errors holds one error per input, nil where the item went well. A process function returns it, not wrapped, when its
// items had different fates; [Batcher.DoMany] returns it when at least one item failed.
type Errors []error

// Error tells how many failed and lists the first of them.
func (e Errors) Error() string {
	const shown = 3
	var text strings.Builder
	failed := 0
	for i, err := range e {
		if err == nil {
			continue
		}
		if failed++; failed <= shown {
			fmt.Fprintf(&text, "; item %d: %v", i, err)
		}
	}
	if failed > shown {
		text.WriteString("; ...")
	}
	return fmt.Sprintf("batch: %d of %d items failed%s", failed, len(e), text.String())
}

// Unwrap returns the errors that are not nil, for errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	failed := make([]error, 0, len(e))
	for _, err := range e {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func wrongOutputs(name string, outputs, inputs int) error {
	return fmt.Errorf("%s%w: %d for %d inputs", prefix(name), ErrWrongOutputs, outputs, inputs)
}

// prefix puts the name of a batcher in front of an error's text, for whoever reads it in a log.
func prefix(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}

// named is err with the batcher's name in front.
func named(name string, err error) error {
	if name == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
