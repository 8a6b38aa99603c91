package pgproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
)

// Commit is a transaction that a client is about to commit.
type Commit struct {
	Statements []string // their texts, in order, each on one line with single blanks: whoever looks for words need not know the layout
}

// Fate is what becomes of a commit.
type Fate int

// See the package's description.
const (
	Deliver Fate = iota
	Cut
	Mute
	Drop
	Late
)

func (f Fate) String() string {
	return [...]string{"deliver", "cut", "mute", "drop", "late"}[f]
}

// Proxy stands between clients and one Postgres server.
type Proxy struct {
	listener net.Listener
	server   url.URL
	going    sync.WaitGroup
	up, down rate

	mu     sync.Mutex
	judge  func(Commit) Fate
	lost   [Late + 1]int
	more   chan struct{} // closed when lost grows
	codes  map[string]int
	open   map[*link]bool
	held   []*heldCommit
	lates  map[string]bool // keys of connections with a late commit
	closed bool
}

// heldCommit is a late one.
type heldCommit struct {
	let  chan struct{} // closed to let it go
	over chan struct{} // closed when the server has answered it
}

// New starts a proxy for the server at an address, as pgx takes it, without TLS. Everything is delivered at first.
func New(server string) (*Proxy, error) {
	address, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	if address.Port() == "" {
		return nil, errors.New("pgproxy: the server's address names no port")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	p := &Proxy{listener: listener, server: *address, open: map[*link]bool{}, more: make(chan struct{}), codes: map[string]int{}}
	p.going.Go(p.accept)
	return p, nil
}

// URL is the server's address through the proxy.
func (p *Proxy) URL() string {
	through := p.server
	through.Host = p.listener.Addr().String()
	return through.String()
}

// Judge decides over every commit from now on; nil delivers them. It is called by one goroutine at a time.
func (p *Proxy) Judge(judge func(Commit) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// Lost counts the commits that met a fate. A commit that the server refused was not lost: its error was delivered.
func (p *Proxy) Lost(fate Fate) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost[fate]
}

// Refused counts the errors of the server with a code, such as 55P03 for a lock that was waited for in vain.
func (p *Proxy) Refused(code string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.codes[code]
}

func (p *Proxy) refused(code string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code]++
}

// Await waits until n commits have met a fate, or ctx ends.
func (p *Proxy) Await(ctx context.Context, fate Fate, n int) error {
	for {
		p.mu.Lock()
		lost, more := p.lost[fate], p.more
		p.mu.Unlock()
		if lost >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Release lets the server have the late commits and returns, once it has answered them, how many they were.
func (p *Proxy) Release() int {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, h := range held {
		close(h.let)
		<-h.over
	}
	return len(held)
}

// Close cuts every connection. Commits that are still late never happen.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for l := range p.open {
		l.cut()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.going.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		l := newLink(p, client)
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			_ = client.Close()
			return
		}
		p.open[l] = true
		p.mu.Unlock()
		p.going.Go(func() {
			l.serve()
			p.mu.Lock()
			delete(p.open, l)
			p.mu.Unlock()
		})
	}
}

func (p *Proxy) decide(c Commit) Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.judge == nil {
		return Deliver
	}
	return p.judge(c)
}

func (p *Proxy) count(fate Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.met(fate)
}

// met counts. The caller holds mu.
func (p *Proxy) met(fate Fate) {
	p.lost[fate]++
	close(p.more)
	p.more = make(chan struct{})
}

// late notes that a connection has a late commit, which nobody can cancel any more.
func (p *Proxy) late(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lates == nil {
		p.lates = map[string]bool{}
	}
	p.lates[key] = true
}

func (p *Proxy) isLate(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lates[key]
}

func (p *Proxy) hold() *heldCommit {
	h := &heldCommit{let: make(chan struct{}), over: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, h)
	p.met(Late)
	return h
}
