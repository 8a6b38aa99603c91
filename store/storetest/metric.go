package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// metrics is the store as one that keeps metrics.
func (d *database) metrics() store.Metrics { return metricsOf(d, d.Store) }

func metricsOf(d *database, s store.Store) store.Metrics {
	d.Helper()
	m, ok := s.(store.Metrics)
	if !ok {
		d.Fatalf("%T is no store.Metrics", s)
	}
	return m
}

// flusher is a process that measures.
type flusher struct {
	d      *database
	source job.ID
	number int64
}

func (d *database) process() *flusher { return &flusher{d: d, source: job.NewID()} }

// flush makes the next flush of some rows.
func (m *flusher) flush(rows ...store.MetricRow) store.MetricFlush {
	m.number++
	return store.MetricFlush{Source: m.source, Number: m.number, Rows: rows}
}

// add has rows kept.
func (m *flusher) add(rows ...store.MetricRow) store.MetricFlush {
	m.d.Helper()
	f := m.flush(rows...)
	m.d.send1(f)
	return f
}

func (d *database) send1(f store.MetricFlush) {
	d.Helper()
	if err := d.metrics().AddMetrics(d.ctx, f); err != nil {
		d.Fatalf("add metrics: %v", err)
	}
}

// ran is a row of n jobs that are done, each of which took some time.
func ran(at time.Time, queue, kind string, n int, took time.Duration) store.MetricRow {
	var v metric.Jobs
	for range n {
		v.Add(metric.Began)
		v.Ended(metric.Done, time.Second, took, time.Minute)
	}
	return store.MetricRow{Class: metric.OfJobs, Start: at.Truncate(time.Minute), Name: queue, Kind: kind, Data: v.Append(nil)}
}

// measured reads points of jobs.
func (d *database) measured(q store.MetricQuery) []store.MetricPoint {
	d.Helper()
	if q.Class == 0 {
		q.Class = metric.OfJobs
	}
	if q.To.IsZero() {
		q.To = d.now().Add(time.Hour)
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-60 * 24 * time.Hour)
	}
	return must[store.MetricReply](d, "read metrics")(d.metrics().ReadMetrics(d.ctx, q)).Points
}

// done counts the jobs that a query finds done.
func (d *database) done(q store.MetricQuery) (n uint64) {
	d.Helper()
	for _, p := range d.measured(q) {
		n += p.Value.(*metric.Jobs).Count(metric.Done)
	}
	return n
}

// rollUp rolls up until there is nothing to, and counts what went into others.
func (d *database) rollUp() (merged int) {
	d.Helper()
	for range 10_000 {
		reply := must[store.RollUpReply](d, "roll up")(d.metrics().RollUp(d.ctx, 1))
		merged += reply.Merged
		if reply.Merged == 0 {
			return merged
		}
	}
	d.Fatal("a roll-up has no end")
	return 0
}

func metrics() []testCase {
	const day = 24 * time.Hour
	return []testCase{
		{name: "J20_NotOnlyTheLeadersSamples", run: func(d *database) {
			now := d.now()
			for i := range 3 {
				d.process().add(ran(now, "mail", "welcome", i+1, time.Duration(i+1)*time.Second), ran(now, "mail", "bill", 1, time.Second))
			}
			points := d.measured(store.MetricQuery{Name: "mail", Kind: "welcome"})
			equal(d, "points", len(points), 1)
			v := points[0].Value.(*metric.Jobs)
			equal(d, "done", v.Count(metric.Done), 6)
			if p := v.RunTime.Quantile(1); p < 2900*time.Millisecond || p > 3100*time.Millisecond {
				d.Errorf("the slowest took %v, want the 3s of the third process", p)
			}
			equal(d, "of all kinds", d.done(store.MetricQuery{}), 9)
			equal(d, "of a pattern", d.done(store.MetricQuery{Kind: "b*"}), 3)
			equal(d, "of another queue", d.done(store.MetricQuery{Name: "other"}), 0)
		}},
		{name: "J20_AFlushIsKeptOnce", run: func(d *database) {
			m, now := d.process(), d.now()
			first := m.add(ran(now, "q", "k", 2, time.Second))
			d.send1(first)
			equal(d, "sent twice", d.done(store.MetricQuery{}), 2)
			second := m.add(ran(now, "q", "k", 3, time.Second))
			equal(d, "of the same minute", d.done(store.MetricQuery{}), 5)
			d.send1(first)
			equal(d, "an older one again", d.done(store.MetricQuery{}), 5)
			d.advance(15 * time.Minute)
			equal(d, "rolled up", d.rollUp(), 2)
			d.send1(second)
			equal(d, "sent again after the roll-up", d.done(store.MetricQuery{}), 5)
			d.advance(60 * time.Hour)
			d.rollUp()
			d.send1(second)
			equal(d, "and after that into hours", d.done(store.MetricQuery{}), 5)
		}},
		{name: "J20_PartsBecomeMinutesAndMinutesHours", run: func(d *database) {
			d.advance(day - time.Duration(d.now().UnixNano())%day) // midnight
			start := d.now().Truncate(time.Hour)
			a, b := d.process(), d.process()
			for i := range 120 {
				at := start.Add(time.Duration(i) * time.Minute)
				for d.now().Before(at.Add(time.Minute)) {
					d.advance(time.Minute)
				}
				a.add(ran(at, "q", "k", 1, time.Second))
				b.add(ran(at, "q", "k", 2, time.Hour))
			}
			whole := store.MetricQuery{From: start, To: start.Add(2 * time.Hour)}
			byMinute := whole
			byMinute.Step = time.Minute
			want := d.measured(whole)[0].Value.Append(nil)
			equal(d, "too young", must[store.Due](d, "due")(d.Store.Due(d.ctx)).RollUp, true) // the first minutes are not
			d.advance(15 * time.Minute)
			equal(d, "parts that became minutes", d.rollUp(), 240)
			equal(d, "due after it", must[store.Due](d, "due")(d.Store.Due(d.ctx)).RollUp, false)
			equal(d, "points by minute", len(d.measured(byMinute)), 120)
			if got := d.measured(whole)[0].Value.Append(nil); !bytes.Equal(got, want) {
				d.Error("merged over processes, it is another sum")
			}
			d.advance(48 * time.Hour)
			equal(d, "due", must[store.Due](d, "due")(d.Store.Due(d.ctx)).RollUp, true)
			equal(d, "minutes that became hours", d.rollUp(), 120)
			points := d.measured(byMinute)
			equal(d, "points by minute of hours", len(points), 2)
			equal(d, "span", points[0].Span, time.Hour)
			equal(d, "start", points[1].Start, start.Add(time.Hour))
			if got := d.measured(whole)[0].Value.Append(nil); !bytes.Equal(got, want) {
				d.Error("merged into hours, it is another sum")
			}
			equal(d, "rolled up again", d.rollUp(), 0)
		}},
		{name: "J20_ARangeSpansMinutesAndHours", run: func(d *database) {
			old := d.now().Add(-72 * time.Hour).Truncate(time.Hour)
			m := d.process()
			m.add(ran(old, "q", "k", 1, time.Second), ran(old.Add(59*time.Minute), "q", "k", 1, 4*time.Second))
			d.rollUp()
			m.add(ran(d.now().Add(-time.Hour), "q", "k", 1, 2*time.Second))
			d.rollUp()
			m.add(ran(d.now(), "q", "k", 1, 3*time.Second))
			points := d.measured(store.MetricQuery{})
			equal(d, "points", len(points), 1)
			v := points[0].Value.(*metric.Jobs)
			equal(d, "done", v.Count(metric.Done), 4)
			for i, want := range []time.Duration{1, 2, 3, 4} {
				if got := v.RunTime.Quantile(float64(i+1) / 4); (got - want*time.Second).Abs() > want*time.Second/30 {
					d.Errorf("quantile %d/4 is %v, want %v", i+1, got, want*time.Second)
				}
			}
			equal(d, "without the hour", d.done(store.MetricQuery{From: old.Add(time.Hour)}), 2)
			equal(d, "from within the hour", d.done(store.MetricQuery{From: old.Add(30 * time.Minute)}), 4)
			equal(d, "before the last", d.done(store.MetricQuery{To: d.now().Truncate(time.Minute)}), 3)
		}},
		{name: "J20_LateRowsGoIntoTheirHour", run: func(d *database) {
			hour := d.now().Add(-80 * time.Hour).Truncate(time.Hour)
			m := d.process()
			m.add(ran(hour, "q", "k", 1, time.Second))
			d.rollUp()
			equal(d, "points", len(d.measured(store.MetricQuery{Step: time.Minute})), 1)
			m.add(ran(hour.Add(20*time.Minute), "q", "k", 2, time.Second))
			equal(d, "one merge", d.rollUp(), 1) // into the hour at once: a minute beside its hour breaks a rule
			points := d.measured(store.MetricQuery{Step: time.Minute})
			equal(d, "points", len(points), 1)
			equal(d, "done", points[0].Value.(*metric.Jobs).Count(metric.Done), 3)
		}},
		{name: "J20_RowsAheadOfTheClockCountNow", run: func(d *database) {
			now := d.now()
			m := d.process()
			m.add(ran(now.Add(48*time.Hour), "q", "k", 1, time.Second), ran(now.Add(49*time.Hour), "q", "k", 1, time.Second))
			m.add(ran(now.Add(48*time.Hour), "q", "k", 1, time.Second))
			equal(d, "now", d.done(store.MetricQuery{From: now.Add(-time.Minute), To: now.Add(5 * time.Minute)}), 3)
			d.advance(20 * time.Minute)
			equal(d, "rolled up in their time", d.rollUp(), 3)
		}},
		{name: "J20_KeptForThirtyDays", run: func(d *database) {
			now := d.now().Truncate(time.Hour)
			m := d.process()
			m.add(ran(now, "q", "k", 1, time.Second))
			d.advance(3 * day)
			d.rollUp()
			d.advance(26 * day)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			equal(d, "after 29 days", d.done(store.MetricQuery{From: now.Add(-time.Hour)}), 1)
			d.advance(2 * day)
			equal(d, "purge is due", must[store.Due](d, "due")(d.Store.Due(d.ctx)).Purge, true)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			equal(d, "after 31 days", d.done(store.MetricQuery{From: now.Add(-time.Hour)}), 0)
			d.advance(2 * day)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			equal(d, "nothing is left", must[store.Due](d, "due")(d.Store.Due(d.ctx)), store.Due{})
		}},
		{name: "J20_OutOfBoundsIsRefused", run: func(d *database) {
			now := d.now()
			good := ran(now, "q", "k", 1, time.Second)
			edited := func(edit func(*store.MetricRow)) store.MetricFlush {
				row := good
				edit(&row)
				return d.process().flush(row)
			}
			for name, f := range map[string]store.MetricFlush{
				"no source":    {Number: 1},
				"no number":    {Source: job.NewID()},
				"no class":     edited(func(r *store.MetricRow) { r.Class = 0 }),
				"no minute":    edited(func(r *store.MetricRow) { r.Start = r.Start.Add(time.Second) }),
				"no data":      edited(func(r *store.MetricRow) { r.Data = nil }),
				"large data":   edited(func(r *store.MetricRow) { r.Data = make([]byte, metric.MaxData+1) }),
				"long name":    edited(func(r *store.MetricRow) { r.Name = string(make([]byte, store.MaxMetricName+1)) }),
				"too many":     {Source: job.NewID(), Number: 1, Rows: make([]store.MetricRow, store.MaxFlushRows+1)},
				"no UTF-8":     edited(func(r *store.MetricRow) { r.Kind = "\xff" }),
				"a row twice":  d.process().flush(good, good),
				"of year zero": edited(func(r *store.MetricRow) { r.Start = time.Time{} }),
			} {
				if err := d.metrics().AddMetrics(d.ctx, f); !errors.Is(err, job.ErrInvalid) {
					d.Errorf("%s: %v", name, err)
				}
			}
			for name, q := range map[string]store.MetricQuery{
				"no class":  {Class: 9, From: now, To: now.Add(time.Hour)},
				"no range":  {Class: metric.OfJobs, From: now, To: now},
				"half":      {Class: metric.OfJobs, From: now, To: now.Add(time.Hour), Step: 90 * time.Second},
				"endless":   {Class: metric.OfJobs, From: now, To: now.Add(100 * 365 * day), Step: time.Minute},
				"backwards": {Class: metric.OfJobs, From: now, To: now.Add(time.Hour), Step: -time.Minute},
			} {
				if _, err := d.metrics().ReadMetrics(d.ctx, q); !errors.Is(err, job.ErrInvalid) {
					d.Errorf("%s: %v", name, err)
				}
			}
			equal(d, "kept", d.done(store.MetricQuery{}), 0)
		}},
		{name: "P8_UnreadableMetricsHoldUpNothing", run: func(d *database) {
			hour := d.now().Add(-80 * time.Hour).Truncate(time.Hour)
			m := d.process()
			bad := ran(hour, "q", "k", 1, time.Second)
			bad.Data = []byte{99, 1, 2} // as a newer build might write it
			later := bad
			later.Start = hour.Add(2 * time.Minute)
			m.add(bad, later, ran(hour.Add(time.Minute), "q", "k", 2, time.Second))
			m.add(bad)
			d.rollUp()
			q := store.MetricQuery{Class: metric.OfJobs, From: hour, To: hour.Add(time.Hour)}
			reply := must[store.MetricReply](d, "read")(d.metrics().ReadMetrics(d.ctx, q))
			equal(d, "unreadable", reply.Unreadable, 3)
			equal(d, "points", len(reply.Points), 1)
			equal(d, "done", reply.Points[0].Value.(*metric.Jobs).Count(metric.Done), 2)
			equal(d, "due", must[store.Due](d, "due")(d.Store.Due(d.ctx)).RollUp, false)
		}},
		{name: "J20_NamespacesAreApart", needs: Features{Shared: true}, run: func(d *database) {
			other := d.open(store.Settings{Namespace: "other"})
			now := d.now()
			m := d.process()
			f := m.add(ran(now, "q", "k", 1, time.Second))
			if err := metricsOf(d, other).AddMetrics(d.ctx, f); err != nil { // its own, by chance of the same source
				d.Fatal(err)
			}
			d.advance(time.Hour)
			d.rollUp()
			equal(d, "done", d.done(store.MetricQuery{}), 1)
			equal(d, "due there", must[store.Due](d, "due")(other.Due(d.ctx)).RollUp, true)
		}},
		{name: "J20_RollUpsOfManyCountNothingTwice", needs: Features{Shared: true}, run: func(d *database) {
			stores := []store.Metrics{d.metrics(), metricsOf(d, d.open(store.Settings{})), metricsOf(d, d.open(store.Settings{}))}
			old := d.now().Add(-80 * time.Hour).Truncate(time.Hour)
			var group sync.WaitGroup
			for i, s := range stores {
				group.Add(2)
				m := d.process()
				go func() {
					defer group.Done()
					for n := range 12 {
						f := m.flush(ran(old.Add(time.Duration(n)*time.Minute), "q", "k", 1, time.Second),
							ran(old.Add(time.Duration(n)*time.Minute), "q", fmt.Sprint("k", i), 1, time.Second))
						for range 2 { // as after a lost answer
							if err := s.AddMetrics(d.ctx, f); err != nil {
								d.Error(err)
							}
						}
					}
				}()
				go func() {
					defer group.Done()
					for range 12 {
						if _, err := s.RollUp(d.ctx, 200); err != nil {
							d.Error(err)
						}
					}
				}()
			}
			group.Wait()
			d.rollUp()
			equal(d, "done", d.done(store.MetricQuery{}), 72)
			equal(d, "rows of hours", len(d.measured(store.MetricQuery{Step: time.Minute})), 4)
		}},
		{name: "J20_AgainstAModel", run: func(d *database) { d.metricsModel(20) }},
	}
}

// metricsModel plays a random program of flushes, some of them sent again and late,
// of roll-ups, and of time that passes, and holds what is read against a list of
// everything that happened.
func (d *database) metricsModel(steps int) {
	d.Helper()
	seed := rand.Uint64()
	defer func() {
		if d.Failed() {
			d.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 20))
	type happened struct {
		at         time.Time
		queue, kin string
		took       time.Duration
	}
	var all []happened
	var sent []store.MetricFlush
	meters := []*flusher{d.process(), d.process(), d.process()}
	for range steps {
		switch r.IntN(6) {
		case 0, 1, 2: // a process flushes: also what it could not flush for a while
			var rows []store.MetricRow
			seen := map[string]bool{}
			for range 1 + r.IntN(6) {
				h := happened{d.now().Add(-time.Duration(r.IntN(90)*r.IntN(60)) * time.Minute).Truncate(time.Minute),
					fmt.Sprint("q", r.IntN(2)), fmt.Sprint("k", r.IntN(3)), time.Duration(1+r.IntN(5000)) * time.Millisecond}
				if key := fmt.Sprint(h.at, h.queue, h.kin); !seen[key] {
					seen[key] = true
					rows = append(rows, ran(h.at, h.queue, h.kin, 1, h.took))
					all = append(all, h)
				}
			}
			sent = append(sent, meters[r.IntN(len(meters))].add(rows...))
		case 3: // an answer was lost, some time ago
			if len(sent) > 0 {
				d.send1(sent[len(sent)-1-r.IntN(min(len(sent), 4))])
			}
		case 4:
			must[store.RollUpReply](d, "roll up")(d.metrics().RollUp(d.ctx, r.IntN(200)))
		case 5:
			d.advance(time.Duration(r.IntN(600)*r.IntN(10)) * time.Minute)
		}
		to := d.now().Add(time.Minute)
		from := to.Add(-10 * 24 * time.Hour)
		var model metric.Jobs
		want := map[string]int{}
		for _, h := range all {
			if h.at.After(from.Add(-time.Minute)) {
				want[h.queue+" "+h.kin]++
				model.Ended(metric.Done, time.Second, h.took, time.Minute)
				model.Add(metric.Began)
			}
		}
		if slices.ContainsFunc(all, func(h happened) bool { return h.at.Before(from.Add(2 * time.Hour)) }) {
			return // the range begins to cut hours
		}
		var sum metric.Jobs
		got := map[string]int{}
		for _, p := range d.measured(store.MetricQuery{From: from, To: to, Step: time.Duration(r.IntN(3)) * time.Hour}) {
			v := p.Value.(*metric.Jobs)
			got[p.Name+" "+p.Kind] += int(v.Count(metric.Done))
			sum.Merge(v)
		}
		equal(d, "jobs done", got, want)
		if !bytes.Equal(sum.Append(nil), model.Append(nil)) {
			d.Fatal("the histograms are not those of the model")
		}
	}
}
