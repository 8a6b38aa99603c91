package hints

import (
	"context"
	"errors"
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
// connection is lost. It has a connection of its own.
func (r *Room) Listen(ctx context.Context, hear func(store.Hint)) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	r.pg.Leave() // Close does not wait for a listener, it ends it
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.pg.Ending, cancel)()
	conn, err := r.connectListener(ctx)
	if err != nil {
		return r.listenError(ctx, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	r.Rows.listen(+1)
	defer r.Rows.listen(-1)
	// What was said while nobody listened is not known.
	r.frontier.Drop()
	hear(store.Hint{})
	for {
		wait, done := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		silent := wait.Err() != nil && ctx.Err() == nil
		done()
		switch {
		case err == nil:
			r.hear(n.Payload, hear)
		case silent && !conn.IsClosed():
			if err := ping(ctx, conn); err != nil {
				return r.listenError(ctx, err)
			}
		default:
			return r.listenError(ctx, err)
		}
	}
}

func (r *Room) connectListener(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	pool := r.pg.Users.Config()
	config := pool.ConnConfig.Copy()
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, pg.MayIdleText+"; LISTEN "+pgx.Identifier{r.channel()}.Sanitize()); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
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
