package webui_test

import (
	"context"
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

// asked is a store that counts what it is asked, but for the look that all pages share.
type asked struct {
	*sqlite.Store
	mu    sync.Mutex
	calls map[string]int
	hold  chan struct{} // metrics are not answered before it is closed; nil: at once
	count chan struct{} // as hold, of the counts of jobs
}

// askedEngine is an engine on such a store in memory.
func askedEngine(t *testing.T) (*asked, *pawl.Engine) {
	t.Helper()
	a := &asked{calls: map[string]int{}}
	e, err := pawl.New(a, pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return a, e
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

// forPage are the calls that a page makes, of a server that remembers nothing, and how many they are.
func (a *asked) forPage(t *testing.T, e *pawl.Engine, path string) (calls map[string]int, all int) {
	t.Helper()
	server := httptest.NewServer(webui.Handler(e, auth.Open("tester"), webui.Options{Patience: patience}))
	defer server.Close()
	a.mu.Lock()
	a.calls = map[string]int{}
	a.mu.Unlock()
	r, err := http.Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "</html>") {
		t.Fatalf("%s: %d %v", path, r.StatusCode, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.calls {
		all += n
	}
	return maps.Clone(a.calls), all
}

func (a *asked) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	if len(names) > 0 {
		a.note("queues by name")
	}
	return a.Store.Queues(ctx, names)
}

func (a *asked) Counts(ctx context.Context) ([]store.QueueCount, error) {
	if a.count != nil {
		<-a.count
	}
	return a.Store.Counts(ctx)
}

func (a *asked) Settings(ctx context.Context) (store.SettingsReply, error) {
	a.note("settings")
	return a.Store.Settings(ctx)
}

func (a *asked) ReadMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	a.note("metrics")
	if a.hold != nil {
		<-a.hold
	}
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

func (a *asked) ScheduleStates(ctx context.Context) (store.ScheduleStates, error) {
	a.note("schedules")
	return a.Store.ScheduleStates(ctx)
}

func (a *asked) Buckets(ctx context.Context, limits []string, after string, n int) ([]store.BucketInfo, error) {
	a.note("buckets")
	return a.Store.Buckets(ctx, limits, after, n)
}

// served is another server of an engine: it remembers nothing.
func served(t *testing.T, e *pawl.Engine) (address string) {
	server := httptest.NewServer(webui.Handler(e, auth.Open("tester"), webui.Options{Patience: patience}))
	t.Cleanup(server.Close)
	return server.URL
}
