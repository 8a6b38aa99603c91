package serve

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// conns bounds the connections that are open at once. Those that ask for nothing (their
// headers are not complete, or they are between requests) wait in a row; when there are
// too many, the one that has waited longest is closed for the newcomer. So clients that
// open connections and send nothing, or slowly, push out each other, and not those who
// ask. Where all connections have a request under way, the newcomer is closed.
type conns struct {
	net.Listener
	most    int
	silence time.Duration // after which a client that confirms nothing is dropped

	mu    sync.Mutex
	open  map[*conn]bool
	quiet *list.List // of *conn, the longest first
	ends  bool       // nobody is admitted any more
}

// conn is one of them.
type conn struct {
	net.Conn
	of    *conns
	place *list.Element // in quiet; nil while a request is under way; under of.mu

	mu    sync.Mutex
	until time.Time // for writes, as the server has set it
}

func newConns(l net.Listener, most int) *conns {
	return &conns{Listener: l, most: most, silence: writeTime, open: map[*conn]bool{}, quiet: list.New()}
}

// Accept takes the next connection that there is room for.
func (c *conns) Accept() (net.Conn, error) {
	for {
		accepted, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := c.admit(accepted); admitted != nil {
			return admitted, nil
		}
		accepted.Close()
	}
}

func (c *conns) admit(accepted net.Conn) *conn {
	c.mu.Lock()
	if c.ends {
		c.mu.Unlock()
		return nil
	}
	var longest *conn
	if len(c.open) >= c.most {
		front := c.quiet.Front()
		if front == nil {
			c.mu.Unlock()
			return nil
		}
		longest = front.Value.(*conn)
		c.forget(longest)
	}
	dropSilent(accepted, c.silence)
	one := &conn{Conn: accepted, of: c}
	c.open[one] = true
	one.place = c.quiet.PushBack(one)
	c.mu.Unlock()
	if longest != nil {
		longest.Conn.Close()
	}
	return one
}

// forget drops a connection, under mu.
func (c *conns) forget(one *conn) {
	delete(c.open, one)
	if one.place != nil {
		c.quiet.Remove(one.place)
		one.place = nil
	}
}

// state is for http.Server: a connection is active from when its headers are complete
// until the request is answered.
func (c *conns) state(of net.Conn, state http.ConnState) {
	if secured, ok := of.(*tls.Conn); ok {
		of = secured.NetConn()
	}
	one, ok := of.(*conn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.open[one]:
	case state == http.StateActive && one.place != nil:
		c.quiet.Remove(one.place)
		one.place = nil
	case state == http.StateIdle && one.place == nil:
		one.place = c.quiet.PushBack(one)
	}
}

// closeQuiet closes those that ask for nothing, when the stop begins.
func (c *conns) closeQuiet() {
	c.mu.Lock()
	c.ends = true
	var quiet []*conn
	for c.quiet.Len() > 0 {
		one := c.quiet.Front().Value.(*conn)
		c.forget(one)
		quiet = append(quiet, one)
	}
	c.mu.Unlock()
	for _, one := range quiet {
		one.Conn.Close()
	}
}

// count is how many are open, and how many of them ask for nothing.
func (c *conns) count() (open, quiet int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.quiet.Len()
}

// Close makes room for another.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.forget(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Write gives the client a time to take it, so that one that reads nothing holds no
// handler and no stream for ever. It begins anew with each write: streams may last.
func (c *conn) Write(b []byte) (int, error) {
	until := time.Now().Add(writeTime)
	c.mu.Lock()
	if !c.until.IsZero() && c.until.Before(until) {
		until = c.until
	}
	c.mu.Unlock()
	if err := c.Conn.SetWriteDeadline(until); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline keeps it for the writes to come.
func (c *conn) SetWriteDeadline(until time.Time) error {
	c.mu.Lock()
	c.until = until
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(until)
}

// SetDeadline is for both.
func (c *conn) SetDeadline(until time.Time) error {
	if err := c.Conn.SetReadDeadline(until); err != nil {
		return err
	}
	return c.SetWriteDeadline(until)
}
