package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/server/serve"
)

// dial opens a connection and sends something.
func (s *served) dial(send string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.url[len("http://"):])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, send); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// closedByServer waits until the other side has closed.
func closedByServer(c net.Conn) bool {
	_, err := io.Copy(io.Discard, c)
	return err == nil || strings.Contains(err.Error(), "reset")
}

func TestU5_ClientsThatSendNothingPushOutEachOther(t *testing.T) {
	const most = 8
	for name, send := range map[string]string{
		"half-open":     "",
		"slow headers":  "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"slow requests": "G",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(c *serve.Config) { c.MaxConns = most })
			var slow []net.Conn
			for range 5 * most {
				slow = append(slow, s.dial(send))
			}
			s.want(200, "GET", "/healthz", "") // somebody who asks is answered
			// All but the last are closed, by the count and not by their time. The last
			// place is that of the client that has asked.
			for _, c := range slow[:len(slow)-most+1] {
				if !closedByServer(c) {
					t.Error("a connection that sends nothing is kept")
				}
			}
			text := s.want(200, "GET", "/metrics", "")
			if !strings.Contains(text, fmt.Sprintf("\npawl_http_connections %d\n", most)) {
				t.Errorf("not %d connections: %s", most, text[strings.Index(text, "pawl_http_connections"):][:200])
			}
		})
	}
}

func TestU5_ConnectionsBetweenRequestsMakeRoom(t *testing.T) {
	const most = 4
	s := start(t, func(c *serve.Config) { c.MaxConns = most })
	request := "GET /healthz HTTP/1.1\r\nHost: " + s.url[len("http://"):] + "\r\n\r\n"
	for range 5 * most { // each is answered, and stays open
		answer, err := http.ReadResponse(bufio.NewReader(s.dial(request)), nil)
		if err != nil || answer.StatusCode != 200 {
			t.Fatal(answer, err)
		}
	}
}

func TestU5_RequestsUnderWayAreNotPushedOut(t *testing.T) {
	const most = 3
	s := start(t, func(c *serve.Config) { c.MaxConns = most })
	head := "POST /api/v1/jobs HTTP/1.1\r\nHost: " + s.url[len("http://"):] +
		"\r\nContent-Type: application/json\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n"
	var busy []net.Conn
	for range most {
		c := s.dial(head)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.Contains(line, "100 Continue") { // its handler reads the body
			t.Fatal(line, err)
		}
		busy = append(busy, c)
	}
	for range 10 {
		if !closedByServer(s.dial("")) {
			t.Error("one more is let in")
		}
	}
	for _, c := range busy {
		if _, err := io.WriteString(c, draft); err != nil {
			t.Fatal(err)
		}
		rest := bufio.NewReader(c)
		for {
			line, err := rest.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "HTTP/1.1 201") {
				break
			}
		}
	}
}

func TestU5_HeadersAreBounded(t *testing.T) {
	s := start(t)
	c := s.dial("GET /healthz HTTP/1.1\r\nHost: " + s.url[len("http://"):] + "\r\nX-Long: " + strings.Repeat("x", 60<<10) + "\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(answer, err)
	}
}
