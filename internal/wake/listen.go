package wake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// settle is how long a listener must have run to be relied upon when it has
// heard nothing yet: until then it may still be connecting.
const settle = time.Second

// errListenEnded is a listener that came back although nobody asked it to.
var errListenEnded = errors.New("wake: the store stopped listening")

// Service keeps the store's listener running and feeds the hub from it. It
// comes back with a growing pause when the connection is lost; meanwhile the
// hub is not healthy and the runner polls often.
func (h *Hub) Service(l store.Listener) supervise.Service {
	return supervise.Loop("listen", func(ctx context.Context) error { return h.listen(ctx, l) },
		supervise.Restart(supervise.Always{First: 100 * time.Millisecond, Limit: 5 * time.Second}))
}

func (h *Hub) listen(ctx context.Context, l store.Listener) error {
	// The lock keeps a settle timer that fires late from calling an ended listener healthy.
	var mu sync.Mutex
	ended, settled := false, false
	rely := func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended && !settled {
			settled = true
			h.setHealthy(true)
		}
	}
	timer := time.AfterFunc(settle, rely)
	defer func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		ended = true
		h.setHealthy(false)
	}()
	err := l.Listen(ctx, func(hint store.Hint) {
		rely()
		h.give(outside, hint)
	})
	if err == nil && ctx.Err() == nil {
		return errListenEnded
	}
	return err
}
