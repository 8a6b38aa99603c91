//go:build fault

package fault

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// way is a way to a server that can be cut and led to another one, as a virtual address is after a failover.
type way struct {
	listener net.Listener
	passing  sync.WaitGroup

	mu    sync.Mutex
	to    int // port; 0 means that the way is cut
	ends  map[net.Conn]bool
	ended bool
}

func newWay(t *testing.T, to int) *way {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l, to: to, ends: map[net.Conn]bool{}}
	w.passing.Go(w.accept)
	t.Cleanup(func() {
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		_ = l.Close()
		w.lead(0)
		w.passing.Wait()
	})
	return w
}

// port is where the way begins.
func (w *way) port() int { return w.listener.Addr().(*net.TCPAddr).Port }

// lead breaks every connection; new ones go to another port, or nowhere if it is 0.
func (w *way) lead(to int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
	for c := range w.ends {
		_ = c.Close()
	}
	clear(w.ends)
}

func (w *way) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.passing.Go(func() { w.pass(near) })
	}
}

func (w *way) pass(near net.Conn) {
	defer near.Close()
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	if to == 0 {
		return
	}
	far, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", to))
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	if w.ended || w.to != to {
		w.mu.Unlock()
		return
	}
	w.ends[near], w.ends[far] = true, true
	w.mu.Unlock()
	over := make(chan struct{}, 2)
	copied := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		over <- struct{}{}
	}
	go copied(near, far)
	go copied(far, near)
	<-over
	_, _ = near.Close(), far.Close()
	<-over
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ends, near)
	delete(w.ends, far)
}
