package webhook_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/webhook"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

// engine runs a test with posts to servers on loopback.
func engine(t *testing.T, c webhook.Config, test func(t *testing.T, e *pawltest.Engine), opts ...pawltest.Option) {
	t.Helper()
	c.AllowAddresses, c.Idle = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, -1
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
		if err := webhook.Register(e, c, pawl.Backoff(pawl.Constant(time.Hour))); err != nil {
			t.Fatal(err)
		}
	}, test, opts...)
}

// What the outcomes come to in a store.
func TestJ23_StatusesMoveTheJob(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, "thanks")
		case "/busy":
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/down":
			w.Header().Set("Retry-After", time.Now().Add(30*time.Minute).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "back soon")
		case "/gone":
			w.WriteHeader(http.StatusGone)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	engine(t, webhook.Config{AllowUnsigned: true}, func(t *testing.T, e *pawltest.Engine) {
		ids := map[string]pawl.ID{}
		for _, path := range []string{"/ok", "/down", "/gone", "/nowhere", "/busy"} {
			ids[path] = e.Enqueue(webhook.Post{URL: server.URL + path, Body: json.RawMessage(`{"n":1}`)}).ID
			e.RunUntilIdle() // the last one stops the queue
		}

		e.RequireState(ids["/ok"], pawl.StateDone)
		kept, err := pawl.Result[webhook.Response](t.Context(), e.Engine, ids["/ok"])
		if err != nil || kept.Status != http.StatusAccepted || kept.Body != "thanks" {
			t.Errorf("kept %+v, %v", kept, err)
		}

		busy := e.RequireState(ids["/busy"], pawl.StateWaiting)
		if !strings.Contains(busy.Reason, "429") || len(busy.Failures.List()) != 0 || busy.Throttles() != 1 {
			t.Errorf("throttled: %s, failures %+v", busy.Reason, busy.Failures.List())
		}
		why, err := e.Why(t.Context(), ids["/busy"])
		if left := time.Until(why.Until); err != nil || why.Code != pawl.WhyCooling || left < 25*time.Minute || left > 30*time.Minute {
			t.Errorf("why: %v, %v", why, err)
		}

		down := e.RequireState(ids["/down"], pawl.StateWaiting)
		if left := time.Until(down.Due); len(down.Failures.List()) != 1 || left < 25*time.Minute || left > 30*time.Minute {
			t.Errorf("down: due in %v, failures %+v", left, down.Failures.List())
		}
		if said := down.Failures.List()[0].Message; !strings.Contains(said, "503 Service Unavailable") || !strings.Contains(said,
			"back soon") {
			t.Errorf("down: %s", said)
		}

		gone := e.RequireState(ids["/gone"], pawl.StateDead)
		if n := len(gone.Failures.List()); n != 1 {
			t.Errorf("gone: %d failures", n)
		}

		lost := e.RequireState(ids["/nowhere"], pawl.StateWaiting)
		if left := time.Until(lost.Due); len(lost.Failures.List()) != 1 || left < 31*time.Minute {
			t.Errorf("not found: due in %v, not by the backoff", left)
		}
	})
}

// With a limit per key one receiver's 429 stops its own posts and no others.
func TestJ23_AReceiverThatIsBusyStopsNoOthers(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			asked.Add(1)
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	engine(t, webhook.Config{AllowUnsigned: true, Limit: "receivers"}, func(t *testing.T, e *pawltest.Engine) {
		busy := e.Enqueue(webhook.Post{URL: server.URL + "/busy"}, pawl.Key("busy")).ID
		e.RunUntilIdle()
		next := e.Enqueue(webhook.Post{URL: server.URL + "/busy"}, pawl.Key("busy")).ID
		other := e.Enqueue(webhook.Post{URL: server.URL}, pawl.Key("other")).ID
		e.RunUntilIdle()
		e.RequireState(other, pawl.StateDone)
		for id, code := range map[pawl.ID]pawl.WhyCode{busy: pawl.WhyThrottled, next: pawl.WhySnoozed} {
			why, err := e.Why(t.Context(), id)
			if left := time.Until(why.Until); err != nil || why.Code != code || left < 25*time.Minute || left > 35*time.Minute {
				t.Errorf("why: %v, %v", why, err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("the busy receiver got %d posts", n)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Limits = []pawl.Limit{{Name: "receivers", Kind: webhook.Kind, PerKey: true, PerSecond: 10}}
	}))
}

// Every attempt of a post has the same id and body, and a signature of its own
// time that verifies.
func TestJ23_AttemptsShareTheirID(t *testing.T) {
	type seen struct{ id, timestamp, body string }
	var (
		mu  sync.Mutex
		all []seen
	)
	secret := webhook.NewSecret()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := webhook.Verify([]webhook.Secret{secret}, r.Header, body, 0, time.Now()); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, seen{r.Header.Get(webhook.HeaderID), r.Header.Get(webhook.HeaderTimestamp), string(body)})
		if len(all) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	c := webhook.Config{Secrets: map[string][]webhook.Secret{"acme": {secret}}}
	engine(t, c, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(webhook.Post{URL: server.URL, Body: json.RawMessage(`{ "text": "<ü> & \u0001" }`), Secret: "acme"})
		for range 3 {
			e.RunUntilIdle()
			if _, err := e.Retry(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
		}
		e.RequireState(r.ID, pawl.StateDone)
		mu.Lock()
		defer mu.Unlock()
		if len(all) != 3 {
			t.Fatalf("%d attempts", len(all))
		}
		for _, s := range all {
			if s.id != r.ID.String() || s.body != all[0].body || !json.Valid([]byte(s.body)) {
				t.Errorf("%+v", s)
			}
		}
	})
}
