package webhook_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/webhook"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

// engine runs a test with posts to servers on loopback.
func engine(t *testing.T, c webhook.Config, test func(t *testing.T, e *pawltest.Engine)) {
	t.Helper()
	c.AllowAddresses, c.Idle = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, -1
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
		if err := webhook.Register(e, c, pawl.Backoff(pawl.Constant(time.Hour))); err != nil {
			t.Fatal(err)
		}
	}, test)
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
		for _, path := range []string{"/ok", "/busy", "/down", "/gone", "/nowhere"} {
			ids[path] = e.Enqueue(webhook.Post{URL: server.URL + path, Body: json.RawMessage(`{"n":1}`)}).ID
		}
		e.RunUntilIdle()

		e.RequireState(ids["/ok"], pawl.StateDone)
		kept, err := pawl.Result[webhook.Response](t.Context(), e.Engine, ids["/ok"])
		if err != nil || kept.Status != http.StatusAccepted || kept.Body != "thanks" {
			t.Errorf("kept %+v, %v", kept, err)
		}

		busy := e.RequireState(ids["/busy"], pawl.StateWaiting)
		if left := time.Until(busy.Due); len(busy.Failures.List()) != 0 || left < 25*time.Minute || left > 30*time.Minute {
			t.Errorf("throttled: due in %v, failures %+v", left, busy.Failures.List())
		}
		if why, err := e.Why(t.Context(), ids["/busy"]); err != nil || !strings.Contains(why.String(), "429") {
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
