package webui_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// work is what all jobs of the shop carry.
type work struct {
	Order  int    `json:"order"`
	Amount string `json:"amount,omitempty"`
	Sizes  []int  `json:"sizes,omitempty"`
}

type (
	charge  struct{ work }
	receipt struct{ work }
	render  struct{ work }
	export  struct{ work }
	lookup  struct{ work }
	nightly struct{ work }
	push    struct{ work }
)

func (charge) Kind() string  { return "order.charge" }
func (receipt) Kind() string { return "mail.receipt" }
func (render) Kind() string  { return "invoice.render" }
func (export) Kind() string  { return "export.csv" }
func (lookup) Kind() string  { return "geo.lookup" }
func (nightly) Kind() string { return "report.nightly" }
func (push) Kind() string    { return "legacy.push" }

// shop is a small company in which something of everything has happened.
type shop struct {
	*control
	charged, dead, retrying, paused, unserved, running, scheduled pawl.ID
	release                                                       chan struct{} // lets report.nightly end
	says                                                          chan string   // what it logs meanwhile
}

// openShop starts one, and waits until everything has come to what it should.
func openShop(t *testing.T, edit ...func(*setup)) *shop {
	t.Helper()
	s := &shop{release: make(chan struct{}), says: make(chan string)}
	edits := append([]func(*setup){func(s *setup) {
		s.options.Name = "shop"
		s.config.Version, s.config.Owner = "1.8.2", "shop"
		s.config.Backoff = func(job.FailedAttempt) time.Duration { return 0 }
		s.config.Queues = pawl.Queues{
			"orders": {Workers: 8}, "invoices": {Workers: 6}, "exports": {Workers: 4}, "geo": {Workers: 4}, "reports": {Workers: 2},
			"mail": {Workers: 10, Backoff: func(job.FailedAttempt) time.Duration { return 4 * time.Minute }},
		}
	}}, edit...)
	s.control = serve(t, edits...)
	s.handle()
	ctx := t.Context()
	s.history(ctx)
	enqueue := func(a pawl.Args, opts ...pawl.EnqueueOption) pawl.ID {
		t.Helper()
		r, err := s.e.Enqueue(ctx, a, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	if err := s.e.Queue("exports").Pause(pawl.As(ctx, "ops", "bad template, INC-311")); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		s.paused = enqueue(export{work{Order: 900 + i}}, pawl.Queue("exports"), pawl.Key("globex"))
		s.unserved = enqueue(push{work{Order: 700 + i}}, pawl.Queue("legacy-sync"))
	}
	s.scheduled = enqueue(receipt{work{Order: 10224}}, pawl.Queue("mail"), pawl.In(150*time.Minute))
	s.run()
	var charged []pawl.ID
	for i := range 6 {
		charged = append(charged, enqueue(charge{work{Order: 48370 + i, Amount: "129.00"}}, pawl.Queue("orders"), pawl.Key("acme")))
	}
	s.charged = charged[0]
	var dead []pawl.ID
	for i := range 8 {
		dead = append(dead, enqueue(render{work{Order: 48210 + 17*i}}, pawl.Queue("invoices"), pawl.Key("initech"), pawl.Attempts(3),
			pawl.Tags("eu", "monthly"), pawl.Timeout(30*time.Second)))
	}
	s.dead = dead[len(dead)-1]
	s.retrying = enqueue(receipt{work{Order: 5}}, pawl.Queue("mail"))
	enqueue(lookup{work{Order: 6}}, pawl.Queue("geo"))
	s.running = enqueue(nightly{work{Order: 7}}, pawl.Queue("reports"))
	for _, id := range append(charged, dead...) {
		if _, err := s.e.Wait(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	s.until(func(l []pawl.QueueState) bool {
		is := map[string]pawl.QueueState{}
		for _, q := range l {
			is[q.Name] = q
		}
		return is["mail"].Retries.Jobs == 1 && is["geo"].CoolDown != nil && is["reports"].Running.Jobs == 1
	})
	t.Cleanup(func() { close(s.release) })
	return s
}

// until waits for how queues stand.
func (s *shop) until(is func([]pawl.QueueState) bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; {
		l, err := s.e.Queues(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if is(l) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("in vain: %+v", l)
		}
		timer := time.NewTimer(10 * time.Millisecond)
		<-timer.C
	}
}

func (s *shop) handle() {
	pawl.Handle(s.e, func(ctx context.Context, j *pawl.Job[charge]) error {
		j.Log().Info("card charged", "amount", j.Args.Amount)
		return nil
	})
	pawl.Handle(s.e, func(ctx context.Context, j *pawl.Job[receipt]) error {
		return errors.New("dial tcp 10.2.0.14:25: i/o timeout")
	})
	pawl.Handle(s.e, func(ctx context.Context, j *pawl.Job[export]) error { return nil })
	pawl.Handle(s.e, func(ctx context.Context, j *pawl.Job[lookup]) error { return pawl.Throttled(10 * time.Minute) })
	pawl.Handle(s.e, func(ctx context.Context, j *pawl.Job[render]) error {
		j.Log().Info("order loaded", "order", j.Args.Order, "lines", 7)
		j.Log().Warn("tax profile has no VAT id, falling back to order field")
		if j.Attempt == 1 {
			return fmt.Errorf("dial tcp 10.2.0.9:5432: connection refused")
		}
		if j.Attempt == 2 {
			panic(fmt.Sprintf("render invoice %d: totals are nil", j.Args.Order))
		}
		j.Log().Error("render failed", "error", `template "invoice/v3" wants field "vat_id"`)
		return fmt.Errorf("render invoice %d: %w", j.Args.Order, errors.New(`template "invoice/v3" wants field "vat_id" but the order has none`))
	})
	pawl.Handle(s.e, func(ctx context.Context, j *pawl.Job[nightly]) error {
		for i, part := range []string{"A to F", "G to J", "K to M"} {
			j.Log().Info("chunk written", "customers", part, "rows", 377+i)
		}
		_ = j.Progress(ctx, 3102, 5080)
		for {
			select {
			case text := <-s.says:
				j.Log().Warn(text)
			case <-s.release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// history is an hour of metrics, as processes would have handed it over.
func (s *shop) history(ctx context.Context) {
	s.t.Helper()
	now, err := s.e.Store().Now(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	kinds := []struct {
		queue, kind string
		n           float64
		queued, run time.Duration
		fails       string
	}{
		{"orders", "order.charge", 600, 11 * time.Millisecond, 47 * time.Millisecond, ""},
		{"mail", "mail.receipt", 420, 14 * time.Millisecond, 90 * time.Millisecond, "dial tcp 10.2.0.14:25: i/o timeout"},
		{"webhooks", "webhook.deliver", 140, 18 * time.Millisecond, 210 * time.Millisecond,
			"POST https://hooks.acme.example/orders: 503 Service Unavailable"},
		{"thumbs", "thumb.make", 37, 30 * time.Millisecond, 412 * time.Millisecond, ""},
		{"reports", "report.nightly", 0.05, 2 * time.Millisecond, 250 * time.Second, ""},
	}
	flush := store.MetricFlush{Source: job.NewID(), Number: 1}
	for minute := 58; minute >= 1; minute-- {
		start := now.Add(-time.Duration(minute) * time.Minute).Truncate(time.Minute)
		wave := 1 + .12*math.Sin(float64(minute)/5) - .3*math.Exp(-math.Pow(float64(minute-22)/4, 2))
		all := &metric.Jobs{}
		slow := 1 + 9*math.Exp(-math.Pow(float64(minute-20)/3, 2))
		for _, k := range kinds {
			m := &metric.Jobs{}
			n := int(k.n*wave + .5 + float64(minute%3))
			if k.n < 1 {
				n = minute % 30 / 29
			}
			for i := range n {
				spread := math.Exp(2.2 * (math.Abs(math.Sin(float64(i*7+minute*13)))*1.4 - .9))
				m.Ended(metric.Done, time.Duration(float64(k.queued)*spread*slow), time.Duration(float64(k.run)*spread*(1+slow/9)), time.Second)
			}
			if k.fails != "" {
				fails := int(slow*2) + minute%3
				f := &metric.Failures{}
				for i := range fails {
					m.Ended(metric.Failed, k.queued, k.run, -1)
					f.Add(metric.Sample{FailedJob: metric.FailedJob{Job: job.NewID(), Time: start.Add(time.Duration(i) * time.Second)}, Message: k.fails,
						Version: "1.8.2", Key: "acme"})
				}
				flush.Rows = append(flush.Rows, store.MetricRow{Class: metric.OfFailures, Start: start, Name: job.Fingerprint(k.fails), Kind: k.kind,
					Data: f.Append(nil)})
			}
			if k.kind == "thumb.make" && minute%7 == 0 {
				m.Ended(metric.Throttled, k.queued, k.run, -1)
				m.Ended(metric.Dead, k.queued, k.run, time.Second)
			}
			if m.Empty() {
				continue
			}
			flush.Rows = append(flush.Rows, store.MetricRow{Class: metric.OfJobs, Start: start, Name: k.queue, Kind: k.kind, Data: m.Append(nil)})
			all.Merge(m)
		}
		flush.Rows = append(flush.Rows, store.MetricRow{Class: metric.OfAll, Start: start, Data: all.Append(nil)})
		f := &metric.Failures{}
		if minute < 31 && minute%2 == 0 {
			f.Add(metric.Sample{FailedJob: metric.FailedJob{Job: job.NewID(), Time: start}, Dead: true,
				Message: `render invoice 48213: template "invoice/v3" wants field "vat_id" but the order has none`, Version: "1.8.2", Key: "initech"})
			flush.Rows = append(flush.Rows, store.MetricRow{Class: metric.OfFailures, Start: start, Name: job.Fingerprint(f.Message),
				Kind: "invoice.render", Data: f.Append(nil)})
		}
	}
	if err := s.e.Store().(store.Metrics).AddMetrics(ctx, flush); err != nil {
		s.t.Fatal(err)
	}
}
