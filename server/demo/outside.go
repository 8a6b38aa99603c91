package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// What the service for places allows; more is answered with 429. A rate of 5 a second stays
// below it.
const (
	geoPerSecond = 6
	geoBurst     = 8
)

// outside is the world that the company calls: a mail relay and a service for places, on a
// port of loopback.
type outside struct {
	url    string
	client client
	server *http.Server
	ended  chan struct{}

	mu     sync.Mutex
	tokens float64
	last   time.Time
}

// newOutside opens it.
func newOutside() (*outside, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: the services that it calls: %w", err)
	}
	o := &outside{
		url: "http://" + listener.Addr().String(), tokens: geoBurst, last: time.Now(), ended: make(chan struct{}),
		client: client{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute}}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mail/{to}", o.mail)
	mux.HandleFunc("GET /geo/{postcode}", o.geo)
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		defer close(o.ended)
		_ = o.server.Serve(listener) // it ends when it is closed
	}()
	return o, nil
}

func (o *outside) close() {
	o.client.http.CloseIdleConnections()
	_ = o.server.Close() // all that called it have ended
	<-o.ended
}

// mail takes a mail, unless it does not know the sender yet.
func (o *outside) mail(w http.ResponseWriter, r *http.Request) {
	pause(r.Context(), 15*time.Millisecond)
	if r.URL.Query().Has("greylisted") {
		http.Error(w, "mailbox busy", http.StatusServiceUnavailable)
	}
}

// geo says where a postcode is, as often as it allows.
func (o *outside) geo(w http.ResponseWriter, r *http.Request) {
	if !o.take(time.Now()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	pause(r.Context(), 40*time.Millisecond)
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.PathValue("postcode")))
	_ = json.NewEncoder(w).Encode(Place{Latitude: float64(h.Sum32()%18_000)/100 - 90, Longitude: float64(h.Sum32()%36_000)/100 - 180})
}

// take takes a token, if there is one.
func (o *outside) take(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens = min(o.tokens+geoPerSecond*now.Sub(o.last).Seconds(), geoBurst)
	o.last = now
	if o.tokens < 1 {
		return false
	}
	o.tokens--
	return true
}

// client calls what is outside.
type client struct{ http *http.Client }

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 10

// ask sends a request without a body and reads the answer.
func (c client) ask(ctx context.Context, method, url string) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	text, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, text, errors.Join(err, answer.Body.Close())
}
