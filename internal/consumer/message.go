package consumer

import (
	"fmt"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Message is a delivery as its handler sees it. What it says of it counts once, and takes
// effect when the handler returns; then it is too late to say something (stream.ErrSettled).
type Message struct {
	Event    *stream.Event // to read only, until the handler returns: another try may get the same
	Feed     stream.Feed   // whose it is, for an acknowledgement in a transaction ...
	Ref      int64         // ... which knows it by this
	Failures int           // deliveries before this one that failed
	Losses   int

	id       string    // of the event
	consumer *Consumer // counts a second verdict
	life     *life     // knows why nothing that is said counts any more

	mu     sync.Mutex
	said   ruling
	closed bool
}

// ruling is what a handler said.
type ruling struct {
	what   word
	reason string
	delay  time.Duration
}

type word uint8

const (
	nothing word = iota
	ack
	retry
	reject
)

// Ack says that it is done.
func (m *Message) Ack() error { return m.say(ruling{what: ack}) }

// Retry says that it failed, and when it comes again; 0 means at once. It counts as every
// failure does: the last one is dead.
func (m *Message) Retry(reason string, delay time.Duration) error {
	if delay < 0 {
		return job.Invalid("delay", delay, "must be 0 or more")
	}
	return m.say(ruling{retry, reason, delay})
}

// Reject says that it will never succeed: it goes to the dead letters.
func (m *Message) Reject(reason string) error { return m.say(ruling{what: reject, reason: reason}) }

func (m *Message) say(r ruling) error {
	if err := m.life.lost(); err != nil {
		return err
	}
	m.mu.Lock()
	again := m.said.what != nothing || m.closed
	if !again {
		m.said = r
	}
	m.mu.Unlock()
	if again {
		m.consumer.twice()
		return fmt.Errorf("%w: %s", stream.ErrSettled, m.id)
	}
	return nil
}

// ruled reports whether the handler has said something.
func (m *Message) ruled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said.what != nothing
}

// close ends the time for verdicts and gives the one that there is.
func (m *Message) close() ruling {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return m.said
}

// Open is nil as long as something can be said of it.
func (m *Message) Open() error {
	if err := m.life.lost(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said.what != nothing || m.closed {
		return fmt.Errorf("%w: %s", stream.ErrSettled, m.id)
	}
	return nil
}
