package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

// pipes is a network without buffers, in which time may be virtual.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, errors.New("nobody listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// piped is an engine behind its API, on pipes.
type piped struct {
	t      *testing.T
	e      *pawl.Engine
	net    *pipes
	client *http.Client
	server *http.Server
}

// servePiped starts one. It ends with the test's function: see close.
func servePiped(t *testing.T, o httpapi.Options) *piped {
	t.Helper()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	p := &piped{t: t, e: e, net: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}}
	p.client = &http.Client{Transport: &http.Transport{DialContext: p.net.dial}}
	p.server = &http.Server{Handler: httpapi.Handler(e, auth.Open("ops"), o)}
	go p.server.Serve(p.net)
	return p
}

func (p *piped) close() {
	p.t.Helper()
	p.client.CloseIdleConnections()
	if err := errors.Join(p.server.Close(), p.e.Close()); err != nil {
		p.t.Error(err)
	}
}

// message is one event of a stream.
type message struct{ id, name, data string }

// reader reads a stream.
type reader struct {
	t     *testing.T
	lines *bufio.Reader
	close func()
}

// watch opens a stream.
func (p *piped) watch(subject, last string) *reader {
	p.t.Helper()
	answer := p.open(subject, last)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf("%s: %s", subject, answer.Status)
	}
	return newReader(p.t, answer.Body)
}

func newReader(t *testing.T, body io.ReadCloser) *reader {
	return &reader{t, bufio.NewReader(body), func() { body.Close() }}
}

func (p *piped) open(subject, last string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "GET", "http://pipe/api/v1/watch?subject="+subject, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// next is the next event, or a comment, whose name is ":"; "end" at the end.
func (r *reader) next() (m message) {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.t.Errorf("a stream ended: %v", err)
			}
			return message{name: "end"}
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && m.name != "":
			return m
		case line == "": // behind retry
		case field == "":
			m.name = ":"
		case field == "id":
			m.id = value
		case field == "event":
			m.name = value
		case field == "data":
			m.data = value
		}
	}
}
