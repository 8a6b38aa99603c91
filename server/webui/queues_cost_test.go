package webui_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// asked is a store that counts what it is asked.
type asked struct {
	*sqlite.Store
	mu    sync.Mutex
	calls map[string]int
}

func (a *asked) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	opened, err := sqlite.Memory().Open(ctx, s)
	if err != nil {
		return nil, err
	}
	a.Store = opened.(*sqlite.Store)
	return a, nil
}

func (a *asked) note(call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[call]++
}

// since are the calls that f makes.
func (a *asked) since(f func()) map[string]int {
	a.mu.Lock()
	a.calls = map[string]int{}
	a.mu.Unlock()
	f()
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.calls)
}

func (a *asked) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	if len(names) > 0 {
		a.note("queues by name")
	}
	return a.Store.Queues(ctx, names)
}

func (a *asked) Settings(ctx context.Context) (store.SettingsReply, error) {
	a.note("settings")
	return a.Store.Settings(ctx)
}

func (a *asked) ReadMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	a.note("metrics")
	return a.Store.ReadMetrics(ctx, q)
}

func (a *asked) List(ctx context.Context, f store.Filter, p store.Page) (store.Listed, error) {
	a.note("list")
	return a.Store.List(ctx, f, p)
}

func (a *asked) Count(ctx context.Context, f store.Filter, n int) (store.Counted, error) {
	a.note("count")
	return a.Store.Count(ctx, f, n)
}

func (a *asked) Audit(ctx context.Context, f store.AuditFilter, p store.AuditPage) (store.AuditList, error) {
	a.note("audit")
	return a.Store.Audit(ctx, f, p)
}

func (a *asked) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	a.note("get")
	return a.Store.Get(ctx, ids)
}

func (a *asked) Buckets(ctx context.Context, limit, after string, n int) ([]store.BucketInfo, error) {
	a.note("buckets")
	return a.Store.Buckets(ctx, limit, after, n)
}

// Beside the look, which all pages share, the pages of queues and limits ask at most six questions, however many queues there are.
func TestU7_QueuesAskAFixedNumberOfQuestions(t *testing.T) {
	cost := func(queues int, path string) map[string]int {
		a := &asked{calls: map[string]int{}}
		e, err := pawl.New(a, pawl.Config{Logger: slog.New(slog.DiscardHandler), Limits: []pawl.Limit{{Name: "x", PerSecond: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for n := range queues {
			if _, err := e.Enqueue(t.Context(), receipt{}, pawl.Queue(fmt.Sprint("q", n))); err != nil {
				t.Fatal(err)
			}
		}
		for n := range queues {
			if err := e.Queue(fmt.Sprint("s", n)).Set(t.Context(), pawl.QueueSettings{Attempts: 5}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Limit("x").Set(t.Context(), pawl.LimitSettings{PerSecond: 2}); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(webui.Handler(e, auth.Open("tester")))
		defer server.Close()
		return a.since(func() {
			r, err := http.Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK || !strings.Contains(string(text), "</html>") {
				t.Fatalf("%s: %d", path, r.StatusCode)
			}
		})
	}
	for _, path := range []string{"/queues", "/queues?open=q0", "/queues/q0", "/limits"} {
		few, many := cost(1, path), cost(60, path)
		all := 0
		for _, n := range many {
			all += n
		}
		if !maps.Equal(few, many) || all == 0 || all > 6+few["settings"]-1 {
			t.Errorf("%s asks %v for few queues, %v for many", path, few, many)
		}
	}
}
