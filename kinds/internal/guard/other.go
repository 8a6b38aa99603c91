//go:build !unix

package guard

// Main does nothing: there are no guards here.
func Main() { ready.Store(true) }

// Ready refuses.
func Ready() error { return ErrUnsupported }

// A Process is never made here.
type Process struct{}

// Start refuses.
func Start(Program) (*Process, error) { return nil, ErrUnsupported }

// PID is 0.
func (*Process) PID() int { return 0 }

// Exited never is closed.
func (*Process) Exited() <-chan struct{} { return nil }

// Done never is closed.
func (*Process) Done() <-chan struct{} { return nil }

// Exit is nothing.
func (*Process) Exit() Exit { return Exit{} }

// Err refuses.
func (*Process) Err() error { return ErrUnsupported }

// End does nothing.
func (*Process) End() {}

// Kill does nothing.
func (*Process) Kill() {}
