package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// openTxs are the transactions of Begin that have not ended.
type openTxs struct {
	mu  sync.Mutex
	all map[*ownTx]struct{}
}

func (b *openTxs) add(o *ownTx) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[*ownTx]struct{}{}
	}
	b.all[o] = struct{}{}
}

func (b *openTxs) remove(o *ownTx) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, o)
}

// cut ends them all, so that the server undoes them at once. Only the network
// connection is closed: everything above it belongs to the goroutine that uses
// the transaction, which gives the connection back when it notices.
func (b *openTxs) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for o := range b.all {
		_ = o.tx.Conn().PgConn().Conn().Close()
	}
}

// closeLimit is how long Close waits for connections that users hold.
const closeLimit = 2 * time.Second

// closePool ends a pool of ours. A connection that is never given back does not
// keep the process from ending.
func closePool(p *pgxpool.Pool) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Close()
	}()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-limit.C:
		return fmt.Errorf("postgres: close: %d connections are still held by transactions or rows that nobody closed", p.Stat().AcquiredConns())
	}
}
