package supervise

import (
	"fmt"
	"runtime/debug"
)

// PanicError is the failure of a service's function that panicked. Wait's error holds it when the
// panic used up the restart budget; errors.As finds it.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // the stack at the panic, as debug.Stack formats it
}

// Error says what was passed to panic, without the stack: that goes to the log as its own field.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the panic's value if it is an error, so that errors.Is sees through a panic.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// call runs f and always comes back: a panic returns as *PanicError, runtime.Goexit as errGoexit.
// f gets a goroutine of its own because Goexit cannot be recovered from; on the supervising
// goroutine it would end the supervision and leave Stop waiting for nobody.
func call(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if value := recover(); value != nil {
				err = &PanicError{Value: value, Stack: debug.Stack()}
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}
