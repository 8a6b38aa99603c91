package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// shelf is a store that keeps flushes, once each, and may fail: before it has kept one,
// or after.
type shelf struct {
	before, after error
	last          map[job.ID]int64
	rows          []store.MetricRow
	calls         int
}

func (s *shelf) AddMetrics(_ context.Context, f store.MetricFlush) error {
	s.calls++
	if err := store.CheckFlush(f); err != nil {
		return err
	}
	if s.before != nil {
		return s.before
	}
	if s.last == nil {
		s.last = map[job.ID]int64{}
	}
	if f.Number > s.last[f.Source] {
		s.last[f.Source] = f.Number
		s.rows = append(s.rows, f.Rows...)
	}
	return s.after
}

func (s *shelf) ReadMetrics(context.Context, store.MetricQuery) (store.MetricReply, error) {
	panic("a meter only writes")
}

func (s *shelf) RollUp(context.Context, int) (store.RollUpReply, error) {
	panic("a meter only writes")
}

// sum adds up the kept rows of jobs.
func (s *shelf) sum(t *testing.T, match func(store.MetricRow) bool) (sum metric.Jobs) {
	t.Helper()
	for _, r := range s.rows {
		if r.Class == metric.OfJobs && match(r) {
			if err := sum.Decode(r.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sum
}

func all(store.MetricRow) bool { return true }

func (s *shelf) count(c metric.Class) (n int) {
	for _, r := range s.rows {
		if r.Class == c {
			n++
		}
	}
	return n
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func newMeter(s *shelf) *Meter {
	return New(Config{Store: s, Logger: quiet, Label: "worker-1", Version: "v1"})
}

func ended(m *Meter, queue, kind string, took time.Duration) {
	m.Ended(time.Now(), EndedRun{Queue: queue, Kind: kind, Count: metric.Done, QueueTime: time.Second, Took: took, Total: time.Minute})
}

func flush(t *testing.T, m *Meter) {
	t.Helper()
	if err := m.FlushOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestJ20_MinutesAreFlushedWhenTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		m := newMeter(s)
		ended(m, "q", "k", time.Second)
		flush(t, m)
		if s.calls != 0 {
			t.Errorf("%d calls while the minute is not over", s.calls)
		}
		time.Sleep(time.Minute) // virtual: the minute that is measured is over
		ended(m, "q", "k", time.Hour)
		flush(t, m)
		if v := s.sum(t, all); v.Count(metric.Done) != 1 || v.RunTime.Quantile(1) > 2*time.Second || s.count(metric.OfWorkers) != 1 {
			t.Errorf("%d done, %d loads", v.Count(metric.Done), s.count(metric.OfWorkers))
		}
		if err := m.Close(t.Context()); err != nil { // also what is not over
			t.Error(err)
		}
		if v := s.sum(t, all); v.Count(metric.Done) != 2 {
			t.Errorf("%d done after Close", v.Count(metric.Done))
		}
	})
}

func TestJ20_AFailedFlushKeepsItsSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		m := newMeter(s)
		down := errors.New("the store is down")
		for i, fail := range []*error{&s.before, &s.after, &s.before, &s.after} { // not sent, answer lost
			*fail = down
			for range 3 {
				ended(m, "q", "k", time.Second)
				time.Sleep(time.Minute) // virtual: the minute that is measured is over
				if err := m.FlushOnce(t.Context()); !errors.Is(err, down) {
					t.Fatalf("%v", err)
				}
			}
			*fail = nil
			flush(t, m)
			if v := s.sum(t, all); v.Count(metric.Done) != uint64(3*(i+1)) {
				t.Errorf("round %d: %d done, want %d", i, v.Count(metric.Done), 3*(i+1))
			}
		}
	})
}

func TestJ20_WhatIsKeptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{before: errors.New("down")}
		m := newMeter(s)
		for i := range 500 { // minutes, each with another kind
			ended(m, "q", fmt.Sprint("kind", i), time.Second)
			m.Failed(fmt.Sprint("kind", i), metric.Sample{FailedJob: metric.FailedJob{Job: job.NewID(), Time: time.Now()}, Message: "no"})
			time.Sleep(time.Minute) // virtual: the minute that is measured is over
			if m.FlushOnce(t.Context()) == nil {
				t.Fatal("it is not down")
			}
			m.mu.Lock()
			if len(m.full) > m.config.Minutes || len(m.full) > 0 && len(m.full[0].series) > m.config.Names+1 {
				t.Fatalf("%d minutes, %d names", len(m.full), len(m.full[0].series))
			}
			m.mu.Unlock()
		}
		s.before = nil
		flush(t, m)
		if v := s.sum(t, all); v.Count(metric.Done) != 500 {
			t.Errorf("%d done, want 500", v.Count(metric.Done))
		}
	})
}

func TestJ20_NamesBeyondTheBoundAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		m := newMeter(s)
		for range 3 { // minutes: the room of names that are not needed any more is given to others
			s.rows = nil
			shift := rand.IntN(1e6) * 1000
			for i := range 1000 {
				ended(m, "q", fmt.Sprint("kind", shift+i), time.Second)
				m.Failed("k", metric.Sample{FailedJob: metric.FailedJob{Job: job.NewID(), Time: time.Now()}, Message: fmt.Sprint("no ", string(rune('a'+i%26)), string(rune('a'+i/26)))})
			}
			time.Sleep(time.Minute) // virtual: the minute that is measured is over
			flush(t, m)
			if n := s.count(metric.OfJobs); n != m.config.Names+1 {
				t.Errorf("%d rows of jobs, want %d and one for all others", n, m.config.Names)
			}
			if n := s.count(metric.OfFailures); n != m.config.Failures+1 {
				t.Errorf("%d rows of failures", n)
			}
			v := s.sum(t, all)
			other := s.sum(t, func(r store.MetricRow) bool { return r.Name == metric.Other && r.Kind == metric.Other })
			if v.Count(metric.Done) != 1000 || other.Count(metric.Done) != 1000-uint64(m.config.Names) {
				t.Errorf("%d done, %d of others", v.Count(metric.Done), other.Count(metric.Done))
			}
		}
	})
}

func TestJ20_AnIdleProcessFlushesAlmostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		m := newMeter(s)
		for range 60 {
			m.Call(time.Millisecond) // beats
			time.Sleep(time.Minute)  // virtual: the minute that is measured is over
			flush(t, m)
		}
		if s.calls > 6 || s.count(metric.OfJobs) != 0 || s.count(metric.OfWorkers) != s.calls {
			t.Errorf("%d flushes in an idle hour, with %d rows of jobs", s.calls, s.count(metric.OfJobs))
		}
		before := s.calls
		if err := m.Close(t.Context()); err != nil || s.calls != before {
			t.Errorf("%v, %d flushes when it stops", err, s.calls-before)
		}
	})
}

func TestJ20_LoadsAreOfTheTimeSinceTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		m := newMeter(s)
		for range 3 {
			ended(m, "q", "k", time.Second)
			m.Call(5 * time.Millisecond)
			m.Call(50 * time.Millisecond)
			time.Sleep(time.Minute) // virtual: the minute that is measured is over
			flush(t, m)
		}
		var sum metric.Load
		for _, r := range s.rows {
			if r.Class == metric.OfWorkers {
				if err := sum.Decode(r.Data); err != nil || r.Name != "worker-1" {
					t.Errorf("%v of %s", err, r.Name)
				}
			}
		}
		if sum.Span != 3*time.Minute || sum.Calls.Count() != 6 || sum.Goroutines == 0 || sum.Memory == 0 {
			t.Errorf("%+v, %d calls", sum, sum.Calls.Count())
		}
	})
}

// A clock that is set back brings minutes again. Each row of a flush comes once, or the
// store would refuse it.
func TestJ20_AClockSetBackLosesNothing(t *testing.T) {
	s := &shelf{before: errors.New("down")}
	now := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	m := New(Config{Store: s, Logger: quiet, Now: func() time.Time { return now }})
	for i := range 20 {
		m.Ended(now, EndedRun{Queue: "q", Kind: "k", Count: metric.Done})
		_ = m.FlushOnce(t.Context())
		now = now.Add(time.Duration(i%5-2) * time.Minute)
	}
	s.before = nil
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := s.sum(t, all); v.Count(metric.Done) != 20 {
		t.Errorf("%d done, want 20", v.Count(metric.Done))
	}
}

// Whatever fails, in whatever order, everything is kept once in the end.
func TestJ20_NothingIsLostOrKeptTwice(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 40))
			s := &shelf{}
			m := newMeter(s)
			want := map[string]uint64{}
			for range 200 {
				switch r.IntN(4) {
				case 0, 1:
					kind := fmt.Sprint("k", r.IntN(5))
					ended(m, "q", kind, time.Duration(r.Int64N(1e10)))
					want[kind]++
				case 2:
					time.Sleep(time.Duration(r.IntN(90)) * time.Second) // virtual: a flush now and then
				case 3:
					s.before, s.after = nil, nil
					switch r.IntN(3) {
					case 0:
						s.before = errors.New("down")
					case 1:
						s.after = errors.New("answer lost")
					}
					_ = m.FlushOnce(t.Context())
				}
			}
			s.before, s.after = nil, nil
			if err := m.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for kind, n := range want {
				if v := s.sum(t, func(r store.MetricRow) bool { return r.Kind == kind }); v.Count(metric.Done) != n {
					t.Errorf("seed %d: %d of %s, want %d", seed, v.Count(metric.Done), kind, n)
				}
			}
		})
	}
}

func TestJ20_MeasuringDoesNotAllocate(t *testing.T) {
	m := newMeter(&shelf{})
	now := time.Now()
	run := EndedRun{Queue: "q", Kind: "k", Count: metric.Done, QueueTime: time.Second, Took: time.Second, Total: time.Minute}
	m.Ended(now, run)
	if n := testing.AllocsPerRun(1000, func() {
		m.Count(now, "q", "k", metric.Began)
		m.Ended(now, run)
		m.Call(time.Second / 2)
	}); n > 0 {
		t.Errorf("%v allocations for a run", n)
	}
}

// A meter that is none is told everything as well.
func TestJ20_NoMeterMeasuresNothing(t *testing.T) {
	m := New(Config{})
	m.Ended(time.Now(), EndedRun{})
	m.Count(time.Now(), "q", "k", metric.Began)
	m.Failed("k", metric.Sample{})
	m.Died([]store.Death{{}})
	m.Call(time.Second)
	if err := m.Close(t.Context()); m != nil || err != nil {
		t.Errorf("%v", err)
	}
}

// What upkeep has ended is not the doing of the version that has found it.
func TestU7_WhatUpkeepEndsHasNoVersion(t *testing.T) {
	s := &shelf{}
	m := newMeter(s)
	m.Died([]store.Death{{Kind: "k", Reason: "lost with its worker 5 times"}})
	m.Failed("k", metric.Sample{FailedJob: metric.FailedJob{Time: time.Now()}, Message: "no answer"})
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	versions := map[string]int{}
	for _, r := range s.rows {
		if r.Class == metric.OfFailures {
			var f metric.Failures
			if err := f.Decode(r.Data); err != nil {
				t.Fatal(err)
			}
			versions[f.Message] = len(f.Versions)
		}
	}
	if len(versions) != 2 || versions["lost with its worker 5 times"] != 0 || versions["no answer"] != 1 {
		t.Errorf("%v", versions)
	}
}

func BenchmarkRun(b *testing.B) {
	m := newMeter(&shelf{})
	now := time.Now()
	run := EndedRun{Queue: "default", Kind: "welcome", Count: metric.Done, QueueTime: time.Millisecond, Took: 2 * time.Millisecond, Total: 3 * time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.Count(now, "default", "welcome", metric.Began)
		m.Ended(now, run)
	}
}

// Often is in parts: others see the minute grow, and nothing is counted twice.
func TestJ20_AMinuteGoesInPartsWhereThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		m := New(Config{Store: s, Logger: quiet, Label: "worker-1", Version: "v1", Every: time.Second})
		for i := range 90 {
			ended(m, "q", "k", time.Second)
			flush(t, m)
			if v := s.sum(t, all); v.Count(metric.Done) != uint64(i+1) {
				t.Fatalf("%d done after %d parts", v.Count(metric.Done), i+1)
			}
			time.Sleep(time.Second) // virtual: until the next part
		}
		starts := map[time.Time]bool{}
		for _, r := range s.rows {
			starts[r.Start] = true
		}
		if len(starts) > 3 {
			t.Errorf("rows of %d minutes", len(starts))
		}
	})
}
