package serve

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
)

// FuzzHost sends a Host and an Origin. None but our own names get in, and no page but one of the same name writes.
func FuzzHost(f *testing.F) {
	for _, one := range [][2]string{
		{"localhost:7340", ""}, {"LOCALHOST:7340", "http://localhost:7340"}, {"127.0.0.1:7340", "null"}, {"[::1]:7340", "http://[::1]:7340"}, {"[::1%25lo]:7340", "file://"},
		{"localhost", "https://localhost"}, {"localhost.:7340", "http://evil.example"}, {"evil.example:7340", "http://evil.example:7340"}, {"", ""}, {"a@localhost:7340", "http://a@localhost:7340"},
		{"localhost:7340\r\nHost: evil.example", ""}, {"localhost:7340, evil.example", ""}, {"127.1:7340", "http://127.1:7340"}, {"pawl.example.org", "https://pawl.example.org"},
		{"localhost:7340\r\nOrigin: http://evil.example", "http://localhost:7340"}, {"localhost:07340", "//localhost:7340"},
	} {
		f.Add(one[0], one[1])
	}
	h := newHosts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7340}, []string{"Pawl.example.org"})
	ours := []string{"localhost:7340", "127.0.0.1:7340", "[::1]:7340", "pawl.example.org"}
	f.Fuzz(func(t *testing.T, host, origin string) {
		text := "POST / HTTP/1.1\r\nHost: " + host + "\r\n"
		if origin != "" {
			text += "Origin: " + origin + "\r\n"
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			return
		}
		known := false
		for _, name := range ours {
			known = known || strings.EqualFold(name, r.Host)
		}
		if h.takes(r) != known {
			t.Errorf("Host %q: taken: %v", r.Host, !known)
		}
		for _, from := range r.Header.Values("Origin") {
			_, name, found := strings.Cut(from, "://")
			name = name[strings.LastIndex(name, "@")+1:]
			if same := found && len(name) >= len(r.Host) && strings.EqualFold(name[:len(r.Host)], r.Host); !same && foreign(r) == "" {
				t.Errorf("Origin %q writes to %q", from, r.Host)
			}
		}
		form(r)
	})
}
