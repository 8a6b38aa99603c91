package pgproxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

// link is one client's connection and the server's that belongs to it. One goroutine reads each.
type link struct {
	p      *Proxy
	client net.Conn
	ended  chan struct{} // closed by cut
	cutter sync.Once

	session session // of the goroutine that reads the client

	mu     sync.Mutex
	server net.Conn
	asked  []*unit // sent to the server and not answered
	key    string  // of the server's process and its secret
	steps  int     // statements that it has executed since the last unit was answered
	moved  chan struct{}
	mute   bool // the client hears nothing any more
}

// The codes with which a connection begins instead of a message.
const (
	askCancel = 80877102
	askTLS    = 80877103
	askGSS    = 80877104
)

func newLink(p *Proxy, client net.Conn) *link {
	return &link{p: p, client: client, ended: make(chan struct{}), moved: make(chan struct{}, 1)}
}

// cut breaks both connections.
func (l *link) cut() {
	l.cutter.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.server != nil {
			_ = l.server.Close()
		}
	})
}

// serve passes messages on until one side ends.
func (l *link) serve() {
	defer l.cut()
	front := bufio.NewReader(reader{l.client, l})
	start, err := l.start(front)
	if err != nil {
		return
	}
	if binary.BigEndian.Uint32(start[4:]) == askCancel && l.p.isLate(string(start[8:])) {
		return // pgx asks for it when a connection breaks; what is late still comes
	}
	server, err := net.Dial("tcp", l.p.server.Host)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	select {
	case <-l.ended: // cut saw no server
		_ = server.Close()
		return
	default:
	}
	if _, err := server.Write(start); err != nil {
		return
	}
	if binary.BigEndian.Uint32(start[4:]) == askCancel {
		_, _ = io.Copy(io.Discard, server) // it closes when it has obeyed
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.backend(bufio.NewReader(server))
	}()
	l.frontend(front, back)
	l.cut()
	<-back
}

// start reads the first message. There is no TLS here.
func (l *link) start(front *bufio.Reader) ([]byte, error) {
	for {
		head := make([]byte, 8)
		if _, err := io.ReadFull(front, head); err != nil {
			return nil, err
		}
		switch binary.BigEndian.Uint32(head[4:]) {
		case askTLS, askGSS:
			if _, err := l.client.Write([]byte{'N'}); err != nil {
				return nil, err
			}
			continue
		}
		rest := make([]byte, binary.BigEndian.Uint32(head)-8)
		_, err := io.ReadFull(front, rest)
		return append(head, rest...), err
	}
}

// message is one of the protocol with its head.
type message []byte

func (m message) kind() byte   { return m[0] }
func (m message) body() []byte { return m[5:] }

func read(r *bufio.Reader) (message, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	m := append(head, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
	_, err := io.ReadFull(r, m[5:])
	return m, err
}

// frontend passes the client's messages on, unit by unit.
func (l *link) frontend(front *bufio.Reader, back <-chan struct{}) {
	u := &unit{}
	for {
		m, err := read(front)
		if err != nil {
			return
		}
		ends := l.session.note(u, m)
		u.messages = append(u.messages, m)
		if !ends && !passesAtOnce(m) {
			continue
		}
		if !ends {
			if l.send(u.take(len(u.messages))) != nil {
				return
			}
			continue
		}
		if u.commits {
			u.fate = l.p.decide(Commit{u.statements})
		}
		switch u.fate {
		case Drop:
			// The statements before it reach the server: it must undo them.
			_ = l.send(u.take(u.last))
			l.p.count(Drop)
			l.undone(back)
			return
		case Late:
			l.late(u, back)
			return
		}
		l.mu.Lock()
		l.asked = append(l.asked, u)
		l.mu.Unlock()
		if l.send(u.take(len(u.messages))) != nil {
			return
		}
		u = &unit{}
	}
}

// undone ends the server's side and waits until the server has, which it does after it has undone what was open. The client
// learns of the break only then: else its next try may meet the locks of this one, or not, by chance. A try that does meet
// them is Late's.
func (l *link) undone(back <-chan struct{}) {
	if server, ok := l.server.(*net.TCPConn); ok && server.CloseWrite() == nil {
		<-back
	}
}

// late breaks the client's connection when the server has executed everything but the commit, and commits when it is
// released.
func (l *link) late(u *unit, back <-chan struct{}) {
	l.mu.Lock()
	l.asked = append(l.asked, u)
	l.mute = true
	key := l.key
	l.mu.Unlock()
	l.p.late(key)
	begun := u.take(u.last)
	err := errors.Join(l.send(begun), l.send([]message{flush}))
	l.executed(begun)
	h := l.p.hold()
	defer close(h.over)
	_ = l.client.Close()
	select {
	case <-h.let:
	case <-l.ended:
		return
	}
	if err == nil && l.send(u.take(len(u.messages))) == nil {
		<-back // it ends with the answer
	}
}

// flush asks the server for the answers to what it has executed.
var flush = message{'H', 0, 0, 0, 4}

// executed waits until the server has executed the statements of some messages, or has refused one.
func (l *link) executed(messages []message) {
	want := 0
	for _, m := range messages {
		if m.kind() == 'E' {
			want++
		}
	}
	for {
		l.mu.Lock()
		steps := l.steps
		l.mu.Unlock()
		if steps >= want {
			return
		}
		select {
		case <-l.moved:
		case <-l.ended:
			return
		}
	}
}

// step counts a statement that was executed; one that was refused ends its unit.
func (l *link) step(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.kind() {
	case 'C', 'I':
		l.steps++
	case 'E':
		l.steps = 1 << 30
	case 'Z':
		l.steps = 0
	default:
		return
	}
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

func (l *link) send(messages []message) error {
	var all []byte
	for _, m := range messages {
		all = append(all, m...)
	}
	_, err := l.server.Write(all)
	return err
}

// backend passes the server's answers on, each when it is whole.
func (l *link) backend(back *bufio.Reader) {
	defer l.cut()
	var answer []byte
	failed := false
	for {
		m, err := read(back)
		if err != nil {
			return
		}
		answer = append(answer, m...)
		l.step(m)
		l.mu.Lock()
		if m.kind() == 'K' { // by which the client may ask to cancel
			l.key = string(m.body())
		}
		var u *unit
		if len(l.asked) > 0 {
			u = l.asked[0]
		}
		mute := l.mute
		l.mu.Unlock()
		if code, ok := refusal(m); ok {
			l.p.refused(code)
		}
		failed = failed || refuses(m)
		ready := m.kind() == 'Z'
		if u != nil && !ready && !invites(m) {
			continue
		}
		if ready && u != nil {
			l.mu.Lock()
			l.asked = l.asked[1:]
			l.mu.Unlock()
			switch {
			case u.fate == Late:
				return
			case failed:
			case u.fate == Cut:
				l.p.count(Cut)
				return
			case u.fate == Mute:
				l.p.count(Mute)
				l.mu.Lock()
				l.mute, mute = true, true
				l.mu.Unlock()
			}
			failed = false
		}
		if !mute {
			if l.reply(answer) != nil {
				return
			}
		}
		answer = answer[:0]
	}
}
