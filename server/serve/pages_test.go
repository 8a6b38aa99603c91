package serve_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/visits"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// missionPages are all pages of Mission Control, the lists with each filter and in each view, and the pages of some jobs.
func missionPages(ids []string) (list []string) {
	list = []string{
		"/", "/?range=15m", "/?range=6h", "/?range=24h", "/?range=7d", "/?range=30d", "/?sort=failed",
		"/jobs", "/jobs/scheduled", "/jobs/retries", "/jobs/dead", "/jobs/dead?groups=all",
		"/queues", "/queues?order=ready", "/queues?q=q33", "/queues?after=100", "/queues?range=24h", "/queues?open=q001", "/queues/q001", "/queues/q003?range=24h",
		"/cron", "/cron/s7", "/workers", "/workers/17", "/limits", "/services", "/audit", "/audit?by=ann3", "/audit?by=nobody", "/settings",
		"/find?q=q33", "/find?q=nothing",
	}
	for _, state := range []string{"ready", "running", "suspended", "done", "cancelled"} {
		list = append(list, "/jobs?state="+state)
	}
	fingerprint := job.Fingerprint("no answer from 10.1.2.3")
	for _, filter := range []string{
		"kind=k3", "kind=k*", "kind=none", "queue=q001", "queue=none", "key=c77", "key=none", "tag=red", "tag=none", "worker=17", "created=1h", "created=7d",
		"q=no+answer", "q=nothing", "error=" + fingerprint, "error=0000000000000000", "queue=q001&kind=k3", "queue=q001&order=id",
	} {
		list = append(list, "/jobs?"+filter)
	}
	for _, view := range []string{"scheduled", "retries", "dead"} {
		list = append(list, "/jobs/"+view+"?queue=q001", "/jobs/"+view+"?kind=k3", "/jobs/"+view+"?queue=q001&q=nothing")
	}
	list = append(list, "/jobs/dead?error="+fingerprint, "/jobs/dead?error="+fingerprint+"&kind=k3")
	for _, id := range ids {
		list = append(list, "/jobs/"+id)
	}
	return list
}

// standing reads how queues and workers stand once: all pages share that look, which is counted apart.
type standing struct {
	mu      sync.Mutex
	queues  []store.QueueState
	counts  []store.QueueCount
	workers []store.WorkerInfo
}

func (s *standing) Queues(ctx context.Context, of store.QueueReader, names []string) (list []store.QueueState, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(names) > 0 {
		return of.Queues(ctx, names)
	}
	if s.queues == nil {
		s.queues, err = of.Queues(ctx, names)
	}
	return slices.Clone(s.queues), err
}

func (s *standing) Counts(ctx context.Context, of store.Counter) (list []store.QueueCount, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts, err = of.Counts(ctx)
	}
	return slices.Clone(s.counts), err
}

func (s *standing) Registry(ctx context.Context, of store.Store) (list []store.WorkerInfo, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers == nil {
		s.workers, err = of.Registry(ctx)
	}
	return slices.Clone(s.workers), err
}

// inMemory is a SQLite that reads how queues stand once.
type inMemory struct {
	*sqlite.Store
	standing standing
}

func (s *inMemory) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	opened, err := sqlite.Memory().Open(ctx, settings)
	if err != nil {
		return nil, err
	}
	s.Store = opened.(*sqlite.Store)
	return s, nil
}

func (s *inMemory) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	return s.standing.Queues(ctx, s.Store, names)
}
func (s *inMemory) Counts(ctx context.Context) ([]store.QueueCount, error) {
	return s.standing.Counts(ctx, s.Store)
}
func (s *inMemory) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	return s.standing.Registry(ctx, s.Store)
}

// onServer is a Postgres that does.
type onServer struct {
	*postgres.Store
	sent     *visits.Sent
	standing standing
}

func (s *onServer) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	opened, err := postgres.Pool(s.sent.Pool, postgres.Options{PollOnly: true}).Open(ctx, settings)
	if err != nil {
		return nil, err
	}
	s.Store = opened.(*postgres.Store)
	return s, nil
}

func (s *onServer) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	return s.standing.Queues(ctx, s.Store, names)
}
func (s *onServer) Counts(ctx context.Context) ([]store.QueueCount, error) {
	return s.standing.Counts(ctx, s.Store)
}
func (s *onServer) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	return s.standing.Registry(ctx, s.Store)
}

// However many jobs there are, a page visits a bounded number of rows: with 50,000 jobs what it visits with 1,000, and as many more as
// it should (rowsOfPage says which). SQLite counts steps.
func TestU7_PagesVisitFewRowsWhateverThereIs(t *testing.T) {
	counted := countSteps()
	pagesVisitFew(t, func(r rows) int { return 20*r.counted + 52*r.read }, 16*lookRows,
		func() (pawl.Opener, func(func()) int) { return &inMemory{}, counted.during })
}

// The same of Postgres, which counts rows and entries of indexes. It reads a small table whole where it is free to: here it is not, so
// that few jobs and many are read the same way.
func TestU7_PagesVisitFewRowsOfPostgres(t *testing.T) {
	pagesVisitFew(t, func(r rows) int { return r.counted + r.read + r.ended }, lookRows,
		func() (pawl.Opener, func(func()) int) {
			s := &onServer{sent: visits.Connect(t, need.PostgresServer(t, "enable_seqscan=off").URL())}
			return s, func(call func()) int { return s.sent.During("pawl", "", call) }
		})
}

func pagesVisitFew(t *testing.T, visitsOf func(rows) int, look int, make func() (pawl.Opener, func(func()) int)) {
	t.Helper()
	few, many := visitsOfPages(t, 1_000, make), visitsOfPages(t, crowded, make)
	if n := many["the look"]; n > look {
		t.Errorf("the look that all pages share takes %d visits, want at most %d", n, look)
	}
	t.Logf("the look takes %d visits", many["the look"])
	delete(many, "the look")
	for _, path := range slices.Sorted(maps.Keys(many)) {
		should, ok := rowsOfPage(path)
		if !ok {
			t.Errorf("%s: nobody has said which rows it should visit", path)
		}
		most := visitsOf(should)
		t.Logf("%-50s %8d visits with few jobs, %8d more with many, of %8d", path, few[path], many[path]-few[path], most)
		if many[path] > few[path]+most {
			t.Errorf("%s takes %d visits with few jobs, %d with many: more than %d more", path, few[path], many[path], most)
		}
	}
}

// visitsOfPages opens each page of a store with so many jobs, by a server that remembers nothing.
func visitsOfPages(t *testing.T, jobs int, make func() (pawl.Opener, func(func()) int)) map[string]int {
	t.Helper()
	st, during := make()
	e, err := pawl.New(st, pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := pawl.As(t.Context(), "ann", "")
	crowd{jobs: jobs, queues: 20, workers: 50, hours: 2}.fill(t, e)
	for n := range 20 {
		if err := e.Schedule(fmt.Sprint("s", n)).Create(ctx, pawl.Schedule{Cron: "0 6 * * 1-5", Job: pawl.RawArgs("k1", []byte("{}"))}); err != nil {
			t.Fatal(err)
		}
		if err := e.Limit(fmt.Sprint("l", n)).Set(ctx, pawl.LimitSettings{PerSecond: 1000, Burst: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]int{"the look": during(func() {
		if _, err := e.Queues(ctx); err != nil {
			t.Error(err)
		}
		if _, err := e.Counts(ctx); err != nil {
			t.Error(err)
		}
		if _, err := e.Workers(ctx); err != nil {
			t.Error(err)
		}
	})}
	pages := map[string]string{} // their names
	for _, path := range missionPages(nil) {
		pages[path] = path
	}
	for _, state := range []pawl.State{job.Waiting, job.Running, job.Dead} {
		l, err := e.List(ctx, pawl.Filter{States: []pawl.State{state}}, pawl.Page{Limit: 1})
		if err != nil || len(l.Jobs) == 0 {
			t.Fatal(state, l, err)
		}
		id := l.Jobs[0].ID.String()
		pages["/jobs/"+id], pages["/find?q="+id] = fmt.Sprint("/jobs/{id} ", state), fmt.Sprint("/find?q={id} ", state)
	}
	for path, name := range pages {
		server := httptest.NewServer(webui.Handler(e, auth.Open("tester"), webui.Options{Patience: time.Minute}))
		found[name] = during(func() { openPage(t, server.URL+path) })
		server.Close()
	}
	return found
}

// openPage wants a whole page.
func openPage(t *testing.T, address string) {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "</html>") {
		t.Errorf("%s: %s %v", address, r.Status, err)
	}
}
