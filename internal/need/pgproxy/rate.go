package pgproxy

import (
	"net"
	"sync"
	"time"
)

// Throttle makes the way to the server, and the way back, carry so many bytes a second from now on, over all connections
// together; 0 means any. Connections share it chunk by chunk, as they share a link.
func (p *Proxy) Throttle(up, down int) {
	p.up.set(up)
	p.down.set(down)
}

// Sent counts the bytes of clients that were passed on.
func (p *Proxy) Sent() int64 {
	p.up.mu.Lock()
	defer p.up.mu.Unlock()
	return p.up.bytes
}

// chunk is what one connection sends before it is another one's turn.
const chunk = 16 << 10

// rate is one direction of a link.
type rate struct {
	mu    sync.Mutex
	limit int // bytes a second, 0 for any
	free  time.Time
	bytes int64
}

func (r *rate) set(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit, r.free = limit, time.Now()
}

// pass waits until the link has carried n bytes, or the connection ends.
func (r *rate) pass(n int, ended <-chan struct{}) {
	r.mu.Lock()
	r.bytes += int64(n)
	now := time.Now()
	if r.limit == 0 {
		r.mu.Unlock()
		return
	}
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(n) * time.Second / time.Duration(r.limit))
	wait := r.free.Sub(now)
	r.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	}
}

// reader reads a client's bytes as the link carries them.
type reader struct {
	conn net.Conn
	link *link
}

func (r reader) Read(b []byte) (int, error) {
	n, err := r.conn.Read(b[:min(len(b), chunk)])
	r.link.p.up.pass(n, r.link.ended)
	return n, err
}

// reply writes an answer to the client as the link carries it.
func (l *link) reply(answer []byte) error {
	for len(answer) > 0 {
		n := min(len(answer), chunk)
		l.p.down.pass(n, l.ended)
		if _, err := l.client.Write(answer[:n]); err != nil {
			return err
		}
		answer = answer[n:]
	}
	return nil
}
