package sqlite

import "context"

// writeLock is the one lock of a process for writing to the file. Whoever asks
// first is served first: Go queues the senders of a channel in order, so that
// neither the writer nor users' transactions can starve the other.
type writeLock chan struct{}

func newWriteLock() writeLock { return make(writeLock, 1) }

// acquire takes the lock, unless ctx ends before.
func (l writeLock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l writeLock) release() { <-l }
