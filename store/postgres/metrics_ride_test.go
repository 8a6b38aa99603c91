package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// riding is a store whose flushes go along with its beats.
type riding struct {
	t     *testing.T
	s     *Store
	proxy *pgproxy.Proxy
	w     job.WorkerID
}

func openRiding(t *testing.T) *riding {
	t.Helper()
	db := need.Postgres(t)
	r := &riding{t: t, proxy: need.Proxy(t, db.URL)}
	r.s = openOn(t, r.proxy.URL(), Options{Schema: db.Schema}, store.Settings{})
	w, err := r.s.Register(t.Context(), store.Worker{Label: "w", Queues: []string{"q"}, Offer: knowsK, LostAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r.w = w
	return r
}

// flush hands a job done over that nobody waits for. It is on its way to a beat when it returns.
func (r *riding) flush(ctx context.Context, kind string) (kept <-chan error) {
	var v metric.Jobs
	v.Ended(metric.Done, time.Second, time.Second, time.Second)
	f := store.MetricFlush{Source: job.NewID(), Number: 1, Unhurried: true, Rows: []store.MetricRow{
		{Class: metric.OfJobs, Start: time.Now().UTC().Truncate(time.Minute), Name: "q", Kind: kind, Data: v.Append(nil)},
	}}
	before, done := r.s.workers.Rides.Waiting(), make(chan error, 1)
	go func() { done <- r.s.AddMetrics(ctx, f) }()
	for r.s.workers.Rides.Waiting() == before && len(done) == 0 {
		time.Sleep(time.Millisecond) // stimulus: the next look whether it waits
	}
	return done
}

func (r *riding) beat() error {
	_, err := r.s.Beat(r.t.Context(), store.Beat{Worker: r.w})
	return err
}

// count demands how many jobs are counted.
func (r *riding) count(want uint64) {
	r.t.Helper()
	reply, err := r.s.ReadMetrics(r.t.Context(), store.MetricQuery{Class: metric.OfJobs, From: time.Now().Add(-time.Hour), To: time.Now()})
	if err != nil {
		r.t.Fatal(err)
	}
	var n uint64
	for _, p := range reply.Points {
		n += p.Value.(*metric.Jobs).Count(metric.Done)
	}
	if n != want {
		r.t.Errorf("%d jobs are counted, want %d", n, want)
	}
}

// What a process has measured is committed with its beat, and takes no transaction of its own.
func TestP10_MetricsRideAlongWithABeat(t *testing.T) {
	r := openRiding(t)
	var commits []string
	r.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
		if text := strings.Join(c.Statements, "; "); strings.Contains(text, "metric") || strings.Contains(text, "worker_beat") {
			commits = append(commits, text)
		}
		return pgproxy.Deliver
	})
	first, second := r.flush(t.Context(), "a"), r.flush(t.Context(), "b")
	if err := r.beat(); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []<-chan error{first, second} {
		if err := <-kept; err != nil {
			t.Error(err)
		}
	}
	r.proxy.Judge(nil)
	if len(commits) != 1 {
		t.Fatalf("%d commits, want the beat's: %q", len(commits), commits)
	}
	beat, bound, flush := strings.Index(commits[0], "worker_beat"), strings.LastIndex(commits[0], "'lock_timeout'"), strings.Index(commits[0], "metric_flush")
	if beat > bound || bound > flush {
		t.Errorf("what rides along may wait for locks as long as a beat: %q", commits[0])
	}
	r.count(2)
}

// A flush that the database refuses costs the beat nothing, nor does one whose process goes: it is
// taken back, and can be sent alone.
func TestP8_WhatRidesAlongCostsNoBeat(t *testing.T) {
	r := openRiding(t)
	ctx, cancel := context.WithCancel(t.Context())
	kept := r.flush(ctx, "gone")
	cancel()
	if err := <-kept; err == nil {
		t.Error("a flush whose caller is gone was kept")
	}
	if n := r.s.workers.Rides.Waiting(); n != 0 {
		t.Errorf("%d wait for a beat, want none", n)
	}
	exec(t, r.s, "ALTER TABLE pawl.metric ADD CONSTRAINT refused CHECK (kind <> 'bad')")
	bad, good := r.flush(t.Context(), "bad"), r.flush(t.Context(), "good")
	if err := r.beat(); err != nil {
		t.Errorf("the beat: %v", err)
	}
	if err := <-bad; err == nil {
		t.Error("what the database refuses was kept")
	}
	if err := <-good; err != nil {
		t.Errorf("the flush beside it: %v", err)
	}
	r.count(1)
}

// Where no beat comes, a flush goes alone.
func TestP10_WhatWaitsForABeatGoesAloneInTheEnd(t *testing.T) {
	r := openRiding(t)
	r.s.workers.Rides.Patience = time.Millisecond
	var v metric.Jobs
	v.Ended(metric.Done, time.Second, time.Second, time.Second)
	row := store.MetricRow{Class: metric.OfJobs, Start: time.Now().UTC().Truncate(time.Minute), Name: "q", Kind: "k", Data: v.Append(nil)}
	if err := r.s.AddMetrics(t.Context(), store.MetricFlush{Source: job.NewID(), Number: 1, Unhurried: true, Rows: []store.MetricRow{row}}); err != nil {
		t.Fatal(err)
	}
	r.count(1)
}

// Whatever becomes of the commit in which a flush rides along, the worker has beaten, and what was measured is
// counted once.
func TestJ32_LostAnswers_Riding(t *testing.T) {
	for _, fate := range []pgproxy.Fate{pgproxy.Cut, pgproxy.Drop, pgproxy.Late} {
		t.Run(fate.String(), func(t *testing.T) {
			r := openRiding(t)
			met := false
			kept := r.flush(t.Context(), "k")
			r.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
				if text := strings.Join(c.Statements, "; "); met || !strings.Contains(text, "worker_beat") || !strings.Contains(text, "metric_flush") {
					return pgproxy.Deliver
				}
				met = true
				return fate
			})
			beaten := make(chan error, 1)
			go func() { beaten <- r.beat() }()
			if err := r.proxy.Await(t.Context(), fate, 1); err != nil {
				t.Fatal(err)
			}
			if fate == pgproxy.Late {
				r.proxy.Release() // both wait for its locks, or come before it
			}
			if err := <-beaten; err != nil {
				t.Errorf("the beat: %v", err)
			}
			if err := <-kept; err != nil {
				t.Errorf("the flush: %v", err)
			}
			r.proxy.Judge(nil)
			r.count(1)
		})
	}
}
