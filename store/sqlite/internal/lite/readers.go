package lite

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// readerCount is how many reads go on at once.
const readerCount = 4

// Readers are the connections that read beside the writer.
type Readers struct {
	free    chan *Conn
	count   int // connections that belong into free
	closing <-chan struct{}
}

// NewReaders are none yet; they are refused once closing is closed.
func NewReaders(closing <-chan struct{}) *Readers {
	return &Readers{free: make(chan *Conn, readerCount), closing: closing}
}

// Open makes the connections.
func (r *Readers) Open(ctx context.Context, d *Database) error {
	for range readerCount {
		c, err := d.Connect(ctx, ReaderCache)
		if err != nil {
			return err
		}
		r.free <- c
		r.count++
	}
	return nil
}

// Take returns a connection that nobody uses.
func (r *Readers) Take(ctx context.Context) (*Conn, error) {
	select {
	case c := <-r.free:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-r.closing:
		return nil, store.ErrClosed
	}
}

// GiveBack ends what Take began.
func (r *Readers) GiveBack(c *Conn) { r.free <- c }

// Close closes them all. One that is out comes back when its call ends.
func (r *Readers) Close() (errs []error) {
	for range r.count {
		errs = append(errs, (<-r.free).Close())
	}
	r.count = 0
	return errs
}
