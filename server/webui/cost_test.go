package webui_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

// questions is a store that counts what it is asked, but for what all pages share.
type questions struct {
	*sqlite.Store
	mu  sync.Mutex
	all []string
}

func (q *questions) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	opened, err := sqlite.Memory().Open(ctx, s)
	if err != nil {
		return nil, err
	}
	q.Store = opened.(*sqlite.Store)
	return q, nil
}

func (q *questions) note(format string, args ...any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, fmt.Sprintf(format, args...))
}

func (q *questions) Settings(ctx context.Context) (store.SettingsReply, error) {
	q.note("settings")
	return q.Store.Settings(ctx)
}

func (q *questions) ScheduleStates(ctx context.Context) (store.ScheduleStates, error) {
	q.note("schedules")
	return q.Store.ScheduleStates(ctx)
}

func (q *questions) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	q.note("get %d", len(ids))
	return q.Store.Get(ctx, ids)
}

func (q *questions) List(ctx context.Context, f store.Filter, p store.Page) (store.Listed, error) {
	q.note("list")
	return q.Store.List(ctx, f, p)
}

func (q *questions) ReadMetrics(ctx context.Context, m store.MetricQuery) (store.MetricReply, error) {
	q.note("metrics")
	return q.Store.ReadMetrics(ctx, m)
}

func (q *questions) Audit(ctx context.Context, f store.AuditFilter, p store.AuditPage) (store.AuditList, error) {
	q.note("audit %d", p.Limit)
	return q.Store.Audit(ctx, f, p)
}

// However many schedules, workers and entries there are, a page asks at most six questions beside the look that all pages share.
func TestU7_PagesAskAFewBoundedQuestions(t *testing.T) {
	q := &questions{}
	e, err := pawl.New(q, pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := operating(t.Context(), "many")
	for n := range 120 {
		name := fmt.Sprint("s", n)
		if err := e.Schedule(name).Create(ctx, pawl.Schedule{Cron: "0 6 * * 1-5", Job: pawl.RawArgs("x", []byte("{}"))}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Remote().Register(ctx, pawl.RemoteWorker{Label: name, Version: fmt.Sprint(n % 3), Queues: []string{"py"}, Kinds: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(webui.Handler(e, auth.Open("tester")))
	defer server.Close()
	for _, path := range []string{"/cron", "/cron/s7", "/workers", "/workers/7", "/services", "/audit", "/audit?by=nobody", "/settings"} {
		q.mu.Lock()
		q.all = nil
		q.mu.Unlock()
		r, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "</html>") {
			t.Fatalf("%s: %d %v", path, r.StatusCode, err)
		}
		q.mu.Lock()
		if len(q.all) > 6 {
			t.Errorf("%s asks %q", path, q.all)
		}
		t.Logf("%s asks %q, %d bytes", path, q.all, len(text))
		q.mu.Unlock()
	}
}
