package serve

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Clients that are gone without a word leave nothing behind: no connection, no stream, no
// goroutine (see TestMain).
func TestU4_ClientsThatVanishAreDropped(t *testing.T) {
	const clients = 20
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newConns(listener, 2*clients)
	c.silence = time.Second / 2
	closed := make(chan struct{}, 2*clients)
	server := &http.Server{
		Handler: httpapi.Handler(e, auth.Open("local"), httpapi.Options{Streams: clients}),
		ConnState: func(of net.Conn, state http.ConnState) {
			if c.state(of, state); state == http.StateClosed {
				closed <- struct{}{}
			}
		},
	}
	go server.Serve(c)
	defer server.Close()
	for n := range clients {
		client := vanish(t, listener.Addr())
		subject := []string{"overview", "queue:mail"}[n%2]
		if _, err := fmt.Fprintf(client, "GET /api/v1/watch?subject=%s HTTP/1.1\r\nHost: x\r\n\r\n", subject); err != nil {
			t.Fatal(err)
		}
	}
	late := time.After(time.Minute)
	for n := range clients {
		select {
		case <-closed:
		case <-late:
			t.Fatalf("%d of %d are kept", clients-n, clients)
		}
	}
	if open, _ := c.count(); open != 0 {
		t.Errorf("%d connections are counted", open)
	}
	// All places of streams are free again.
	for range clients {
		answer, err := http.Get("http://" + listener.Addr().String() + "/api/v1/watch?subject=overview")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.ReadFull(answer.Body, make([]byte, 10)); err != nil || answer.StatusCode != 200 {
			t.Fatal(answer.Status, err)
		}
	}
}

// vanish connects as a client that then hears nothing any more, and whose machine
// confirms nothing: a filter in its kernel drops all that comes.
func vanish(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var attached error
	if err := raw.Control(func(fd uintptr) {
		//lint:ignore SA1019 a filter of one instruction needs no package
		attached = syscall.AttachLsf(int(fd), []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K}})
	}); err != nil || attached != nil {
		t.Fatal(err, attached)
	}
	return c
}
