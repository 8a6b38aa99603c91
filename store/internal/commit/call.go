package commit

import "sync/atomic"

// Shareable is a call that can share a commit: it embeds a [Call] and says how
// many rows it counts for.
type Shareable interface {
	Rows() int
	shared() *Call
}

// Call is the part of a call that the committer and its caller share.
type Call struct {
	place progress      // guarded by the committer's lock until the answer is there
	gone  atomic.Bool   // its caller is gone
	err   error         // the answer
	done  chan struct{} // holds a token when the answer is there
}

// progress is how far a call has come.
type progress uint8

const (
	fresh progress = iota
	waiting
	left // its caller is gone, and it was not taken
	taken
	answered // and its caller has the answer
)

// NewCall is a call to embed.
func NewCall() Call { return Call{done: make(chan struct{}, 1)} }

func (c *Call) shared() *Call { return c }

// Answer ends a call. Whoever answers it does not touch it any more.
func (c *Call) Answer(err error) {
	c.err = err
	select {
	case c.done <- struct{}{}:
	default:
		panic("pawl: a call was answered twice")
	}
}

// Wait returns the answer when it is there. Do waits by itself; this is for a call
// that was committed without it.
func (c *Call) Wait() error {
	<-c.done
	return c.answer()
}

// answer is for who has the token.
func (c *Call) answer() error {
	c.place = answered
	return c.err
}

// Answered reports, when Do has returned, whether it returned the call's answer.
// Then nobody else knows the call any more, and it may be used again.
func (c *Call) Answered() bool { return c.place == answered }

// Taken reports, when Do has returned, whether the call was taken into a batch. If it
// was, and is not Answered, it is answered later.
func (c *Call) Taken() bool { return c.place == taken || c.place == answered }

// Gone reports whether the caller has given up: nobody hears the answer, unless it
// comes at the same moment.
func (c *Call) Gone() bool { return c.gone.Load() }
