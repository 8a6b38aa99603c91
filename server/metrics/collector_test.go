package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/server/metrics"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// asked is a store that counts questions.
type asked struct {
	*sqlite.Store
	questions atomic.Int64
}

func (a *asked) Now(ctx context.Context) (time.Time, error) {
	a.questions.Add(1)
	return a.Store.Now(ctx)
}

func (a *asked) Counts(ctx context.Context) ([]store.QueueCount, error) {
	a.questions.Add(1)
	return a.Store.Counts(ctx)
}

func (a *asked) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	a.questions.Add(1)
	return a.Store.Queues(ctx, names)
}

func (a *asked) Count(ctx context.Context, f store.Filter, cap int) (store.Counted, error) {
	a.questions.Add(1)
	return a.Store.Count(ctx, f, cap)
}

func (a *asked) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	a.questions.Add(1)
	return a.Store.Registry(ctx)
}

func (a *asked) ReadMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	a.questions.Add(1)
	return a.Store.ReadMetrics(ctx, q)
}

type opener struct{ a *asked }

func (o opener) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	st, err := sqlite.Memory().Open(ctx, s)
	if err != nil {
		return nil, err
	}
	o.a.Store = st.(*sqlite.Store)
	return o.a, nil
}

// shown is an engine and what Prometheus sees of it.
type shown struct {
	t        *testing.T
	e        *pawl.Engine
	store    *asked
	registry *prometheus.Registry
}

func show(t *testing.T, cache time.Duration) *shown {
	t.Helper()
	s := &shown{t: t, store: &asked{}, registry: prometheus.NewPedanticRegistry()}
	e, err := pawl.New(opener{s.store}, pawl.Config{Queues: pawl.Queues{"mail": {Workers: 3}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s.e = e
	s.registry.MustRegister(metrics.New(e, metrics.Options{Version: "v7", Cache: cache}))
	return s
}

func (s *shown) enqueue(kind string, opts ...pawl.EnqueueOption) pawl.ID {
	s.t.Helper()
	r, err := s.e.Enqueue(s.t.Context(), pawl.RawArgs(kind, []byte("null")), opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.ID
}

// work runs the engine until jobs have ended.
func (s *shown) work(during func(), ids ...pawl.ID) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.e.Run(ctx) }()
	for _, id := range ids {
		if _, err := s.e.Wait(ctx, id); err != nil {
			s.t.Fatal(err)
		}
	}
	during()
	stop()
	if err := <-ended; err != nil {
		s.t.Fatal(err)
	}
}

// sample is one of them: its value, or how many a histogram has, and up to which bound.
type sample struct {
	value float64
	below map[float64]uint64
}

// scrape reads all metrics, by name and labels.
func (s *shown) scrape() map[string]sample {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]sample{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			one := sample{m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()), map[float64]uint64{}}
			for _, b := range m.GetHistogram().GetBucket() {
				one.below[b.GetUpperBound()] = b.GetCumulativeCount()
			}
			found[name] = one
		}
	}
	return found
}

// want compares some of them; -1 means that there is none.
func (s *shown) want(found map[string]sample, want map[string]float64) {
	s.t.Helper()
	for name, n := range want {
		got := -1.0
		if m, ok := found[name]; ok {
			got = m.value
		}
		if got != n {
			s.t.Errorf("%s is %v, want %v", name, got, n)
		}
	}
}

func TestU6_QueuesAndWorkersAreShown(t *testing.T) {
	s := show(t, -1)
	pawl.HandleRaw(s.e, "fine", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	s.enqueue("fine", pawl.Queue("slow"))
	s.enqueue("fine", pawl.Queue("slow"), pawl.In(time.Hour))
	s.enqueue("fine", pawl.Queue("slow"), pawl.In(time.Hour))
	if _, err := s.e.Cancel(t.Context(), s.enqueue("fine", pawl.Queue("slow"))); err != nil {
		t.Fatal(err)
	}
	found := s.scrape()
	s.want(found, map[string]float64{
		"pawl_build_info version=v7": 1, "pawl_store_up": 1, "pawl_store_healthy": 1, "pawl_look_errors_total": 0,
		"pawl_queue_jobs queue=slow state=ready": 1, "pawl_queue_jobs queue=slow state=scheduled": 2,
		"pawl_queue_jobs queue=slow state=running":   0,
		"pawl_queue_jobs queue=slow state=cancelled": 1, "pawl_queue_jobs queue=slow state=waiting": -1, "pawl_queue_paused queue=slow": 0,
		"pawl_workers state=live": 0, "pawl_worker_healthy": -1,
	})
	if err := s.e.Queue("slow").Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.work(func() {
		found := s.scrape()
		s.want(found, map[string]float64{
			"pawl_workers state=live": 1, "pawl_workers state=lost": 0, "pawl_worker_healthy": 1, "pawl_worker_registrations_total": 1,
			"pawl_queue_slots queue=mail": 3, "pawl_queue_workers queue=mail": 1, "pawl_queue_slots queue=slow": 0,
			"pawl_queue_paused queue=slow": 1,
			"pawl_worker_began_runs_total": 1,
		})
		if found["pawl_worker_last_beat_timestamp_seconds"].value < 1e9 {
			t.Error("no beat")
		}
	}, s.enqueue("fine", pawl.Queue("mail")))
	s.want(s.scrape(), map[string]float64{"pawl_worker_finished_runs_total outcome=succeeded": 1, "pawl_worker_running_jobs": 0})
}

// Minutes are counted once, whether they are read again or kept.
func TestU6_CountersGoOnForHours(t *testing.T) {
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.HandleRaw(e, "fine", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	}, func(t *testing.T, e *pawltest.Engine) {
		s := &shown{t: t, e: e.Engine, registry: prometheus.NewPedanticRegistry()}
		s.registry.MustRegister(metrics.New(s.e, metrics.Options{Cache: -1}))
		s.scrape()
		for round := range 15 {
			s.enqueue("fine")
			e.RunUntilIdle()
			e.Advance(7 * time.Minute)
			for range 2 {
				s.want(s.scrape(), map[string]float64{
					"pawl_runs_began_total kind=fine queue=default":              float64(round + 1),
					"pawl_runs_ended_total kind=fine outcome=done queue=default": float64(round + 1),
					"pawl_job_run_seconds queue=default":                         float64(round + 1),
				})
			}
		}
	})
}

func TestU6_CountersAddUpWhatProcessesHandOver(t *testing.T) {
	s := show(t, -1)
	pawl.HandleRaw(s.e, "fine", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	pawl.HandleRaw(s.e, "bad", func(context.Context, *pawl.Job[pawl.Raw]) error { return pawl.Dead(errors.New("no")) })
	s.scrape() // counters begin here
	for round := 1.0; round <= 3; round++ {
		s.work(func() {}, s.enqueue("fine", pawl.Queue("mail")), s.enqueue("fine", pawl.Queue("mail")), s.enqueue("bad", pawl.Queue("mail")))
		for range 2 { // a look counts nothing twice
			found := s.scrape()
			s.want(found, map[string]float64{
				"pawl_runs_began_total kind=fine queue=mail":              2 * round,
				"pawl_runs_ended_total kind=fine outcome=done queue=mail": 2 * round,
				"pawl_runs_ended_total kind=fine outcome=dead queue=mail": 0,
				"pawl_runs_ended_total kind=fine outcome=lost queue=mail": -1,
				"pawl_runs_ended_total kind=bad outcome=dead queue=mail":  round,
				"pawl_job_queue_seconds queue=mail":                       3 * round,
				"pawl_job_run_seconds queue=mail":                         3 * round,
			})
			if m := found["pawl_store_call_seconds"]; m.value == 0 {
				t.Error("no calls of the store")
			}
			below := found["pawl_job_run_seconds queue=mail"].below
			if len(below) != 16 || below[0.0001] > below[0.0004] || below[107374.1824] != uint64(3*round) {
				t.Errorf("buckets %v", below)
			}
		}
	}
}

func TestU6_AScrapeAsksAFixedNumberOfQuestions(t *testing.T) {
	questions := func(queues int) int64 {
		s := show(t, -1)
		for n := range queues {
			s.enqueue("k", pawl.Queue(fmt.Sprint("q", n)))
		}
		s.scrape()
		before := s.store.questions.Load()
		s.scrape()
		return s.store.questions.Load() - before
	}
	few, many := questions(1), questions(60)
	if few != many || few == 0 || few > 10 {
		t.Errorf("%d questions for one queue, %d for sixty", few, many)
	}
	s := show(t, time.Hour)
	s.scrape()
	before := s.store.questions.Load()
	for range 20 {
		s.scrape()
	}
	if n := s.store.questions.Load() - before; n != 0 {
		t.Errorf("%d questions of scrapes right after another", n)
	}
}

func TestU6_NamesBeyondTheBoundAreShownTogether(t *testing.T) {
	s := show(t, -1)
	var drafts []pawl.Item
	for n := range 600 {
		drafts = append(drafts, pawl.NewItem(pawl.RawArgs("k", []byte("null")), pawl.Queue(fmt.Sprintf("q%03d", n))))
	}
	if _, err := s.e.EnqueueMany(t.Context(), drafts...); err != nil {
		t.Fatal(err)
	}
	found, ready, series := s.scrape(), 0.0, 0
	for name, m := range found {
		if strings.HasPrefix(name, "pawl_queue_jobs ") && strings.HasSuffix(name, "state=ready") {
			ready += m.value
			series++
		}
	}
	if ready != 600 || series != 501 {
		t.Errorf("%v jobs in %d series", ready, series)
	}
	s.want(found, map[string]float64{"pawl_queue_jobs queue=(all other) state=ready": 100})
}

func TestU6_NamesFollowTheConventions(t *testing.T) {
	s := show(t, -1)
	pawl.HandleRaw(s.e, "fine", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	s.scrape()
	s.work(func() {}, s.enqueue("fine", pawl.Queue("mail")))
	problems, err := testutil.GatherAndLint(s.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	// A pedantic registry has compared what is shown with what Describe tells.
	if len(s.scrape()) < 30 {
		t.Errorf("only %d metrics", len(s.scrape()))
	}
}

func TestU6_AStoreThatDoesNotAnswerIsShown(t *testing.T) {
	s := show(t, -1)
	s.enqueue("k", pawl.Queue("mail"))
	s.want(s.scrape(), map[string]float64{"pawl_store_up": 1, "pawl_queue_jobs queue=mail state=ready": 1})
	if err := s.e.Close(); err != nil {
		t.Fatal(err)
	}
	s.want(s.scrape(), map[string]float64{
		"pawl_store_up": 0, "pawl_store_healthy": 0, "pawl_look_errors_total": 1, "pawl_queue_jobs queue=mail state=ready": -1,
	})
}
