package hints

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// listenCheck is how long a silent connection is trusted. A dead one looks the
// same as one on which nobody says anything.
const (
	listenCheck = 30 * time.Second
	listenLimit = 10 * time.Second
)

// Listen tells of commits made by other processes, until ctx ends or the
// connection is lost, which it shares with the other namespaces of its wire.
func (r *Room) Listen(ctx context.Context, hear func(store.Hint)) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	r.pg.Leave() // Close does not wait for a listener, it ends it
	h := newHearing(r.channel())
	r.wire.join(h)
	defer r.wire.leave(h)
	listens := false
	defer func() {
		if listens {
			r.Rows.listen(-1)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return r.listenError(ctx, ctx.Err())
		case <-r.pg.Ending.Done():
			return r.listenError(ctx, r.pg.Ending.Err())
		case err := <-h.ended:
			return r.listenError(ctx, err)
		case <-h.token:
		}
		messages := h.take()
		if !listens {
			listens = true
			r.Rows.listen(+1)
			// What was said while nobody listened is not known.
			r.frontier.Drop()
			hear(store.Hint{})
		}
		for _, text := range messages {
			r.hear(text, hear)
		}
	}
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	return conn.Ping(ctx)
}

// listenError explains why a listener ends.
func (r *Room) listenError(ctx context.Context, err error) error {
	switch {
	case r.pg.Ending.Err() != nil:
		return store.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return pg.Unavailable(err)
}
