package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// readerCount is how many reads go on at once.
const readerCount = 4

// readers are the connections that read beside the writer.
type readers struct {
	free    chan *conn
	count   int // connections that belong into free
	closing <-chan struct{}
}

func newReaders(closing <-chan struct{}) *readers {
	return &readers{free: make(chan *conn, readerCount), closing: closing}
}

// open makes the connections.
func (r *readers) open(ctx context.Context, d *database) error {
	for range readerCount {
		c, err := d.connect(ctx, readerCache)
		if err != nil {
			return err
		}
		r.free <- c
		r.count++
	}
	return nil
}

// take returns a connection that nobody uses.
func (r *readers) take(ctx context.Context) (*conn, error) {
	select {
	case c := <-r.free:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-r.closing:
		return nil, store.ErrClosed
	}
}

func (r *readers) giveBack(c *conn) { r.free <- c }

// close closes them all. One that is out comes back when its call ends.
func (r *readers) close() (errs []error) {
	for range r.count {
		errs = append(errs, (<-r.free).close())
	}
	r.count = 0
	return errs
}
