package webhook

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback is the narrow hole that lets tests post to servers of their own.
var loopback = netip.MustParsePrefix("127.0.0.1/32")

// got is one request as a receiver saw it.
type got struct {
	host, path, body string
	header           http.Header
}

// receiver is a server on loopback that remembers what it was sent.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	all []got
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := unstarted(t, answer)
	r.Start()
	return r
}

// unstarted is a receiver that the test still changes, and starts.
func unstarted(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.all = append(r.all, got{req.Host, req.URL.Path, string(body), req.Header.Clone()})
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	r.Config.ErrorLog = nil
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]got(nil), r.all...)
}

// at is the receiver's URL under another name.
func (r *receiver) at(host string) string {
	u, _ := url.Parse(r.URL)
	return u.Scheme + "://" + net.JoinHostPort(host, u.Port())
}

// sending makes a sender that may post to receivers of this test.
func sending(t *testing.T, change func(*Config)) *sender {
	t.Helper()
	c := Config{AllowAddresses: []netip.Prefix{loopback}, AllowUnsigned: true, Idle: -1}
	if change != nil {
		change(&c)
	}
	s, err := newSender(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// attempt is one attempt of a post, without an engine.
func (s *sender) attempt(ctx context.Context, p Post) (Response, error) {
	return s.work(ctx, &pawl.Job[Post]{Info: pawl.Info{ID: job.NewID()}, Args: p})
}

// names is a resolver that answers from the test: for each name a function of how
// often its IPv4 addresses were asked for before.
type names struct {
	mu    sync.Mutex
	hosts map[string]func(asked int) []string
	asked map[string]int
	done  sync.WaitGroup
}

func newNames(t *testing.T, hosts map[string]func(asked int) []string) *names {
	n := &names{hosts: hosts, asked: map[string]int{}}
	t.Cleanup(n.done.Wait)
	return n
}

// always answers the same.
func always(addresses ...string) func(int) []string {
	return func(int) []string { return addresses }
}

func (n *names) lookups(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[host]
}

// resolver speaks DNS to the test, so that the whole way of a name is the real one.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		n.done.Go(func() { n.serve(there) })
		return here, nil
	}}
}

// serve answers queries in the form of TCP: a length before each message.
func (n *names) serve(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := n.reply(query)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// reply answers one question: A with the test's addresses, all else with nothing.
func (n *names) reply(query []byte) []byte {
	var labels []string
	end := 12
	for query[end] != 0 {
		labels = append(labels, string(query[end+1:end+1+int(query[end])]))
		end += 1 + int(query[end])
	}
	end += 5 // the root, type and class
	host := strings.ToLower(strings.Join(labels, "."))
	var addresses []string
	status := byte(3) // there is no such name
	if answers := n.hosts[host]; answers != nil {
		status = 0
		if query[end-3] == 1 { // A
			n.mu.Lock()
			addresses = answers(n.asked[host])
			n.asked[host]++
			n.mu.Unlock()
		}
	}
	reply := append([]byte(nil), query[:2]...)
	reply = append(reply, 0x81, 0x80|status, 0, 1, 0, byte(len(addresses)), 0, 0, 0, 0)
	reply = append(reply, query[12:end]...)
	for _, a := range addresses {
		four := netip.MustParseAddr(a).As4()
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, four[:]...)
	}
	return reply
}
