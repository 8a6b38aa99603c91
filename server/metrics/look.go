package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// What the store says of now, of the whole cluster.
var (
	storeUp     = desc("store_up", "Whether the store answered the last look.")
	storeFine   = desc("store_healthy", "Whether the store answers and nothing needs attention: no log that is held, no settings in conflict.")
	lookErrors  = desc("look_errors_total", "Looks at the store for these metrics that failed.")
	lookSeconds = desc("look_duration_seconds", "What the last look at the store for these metrics took.")
	queueJobs   = desc("queue_jobs", "Jobs of a queue in a state, of the whole cluster: ready (due) and scheduled are both waiting. "+
		"Counted up to 10,000 of each, less far where the queues are more than ten.", "queue", "state")
	queueRetries = desc("queue_retry_jobs", "Waiting jobs of a queue that have failed before, among those that were counted.", "queue")
	queueOldest  = desc("queue_oldest_ready_seconds", "For how long the job that was ready first has waited; 0 where none is ready.", "queue")
	queueSlots   = desc("queue_slots", "Slots of the live workers that serve a queue.", "queue")
	queueWorkers = desc("queue_workers", "Live workers that serve a queue.", "queue")
	queuePaused  = desc("queue_paused", "Whether a queue is paused, or everything is.", "queue")
	workers      = desc("workers", "Registered processes, by state: live, or lost and not yet forgotten.", "state")
)

// look is the last look at the store.
type look struct {
	asked  time.Time // by the clock of this process
	took   time.Duration
	up     bool
	fine   bool
	errors uint64
	queues byQueue[queue]
	live   int
	lost   int
}

// queue is how one stands.
type queue struct {
	states         map[string]int
	retries        int
	oldest         time.Duration
	slots, workers int
	paused         bool
}

// refresh asks the store, unless it was asked lately: not within Options.Cache, nor within
// ten times what the last look took. It is under mu.
func (c *Collector) refresh() {
	if c.o.Cache > 0 && !c.look.asked.IsZero() && time.Since(c.look.asked) < max(c.o.Cache, 10*c.look.took) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Timeout)
	defer cancel()
	began := time.Now()
	next := look{up: true, errors: c.look.errors, queues: newByQueue[queue]()}
	err := next.ask(ctx, c.e)
	if err != nil { // half a look would show zeros that are none
		next = look{errors: c.look.errors, queues: newByQueue[queue]()}
	}
	if err = errors.Join(err, c.totals.ask(ctx, c.e)); err != nil {
		next.up = answers(ctx, c.e)
		next.errors++
	}
	next.fine = next.up && c.e.Health(ctx) == nil
	next.asked, next.took = time.Now(), time.Since(began)
	c.look = next
}

func answers(ctx context.Context, e *pawl.Engine) bool {
	_, err := e.Store().Now(ctx)
	return err == nil
}

// unless leaves out what a store does not keep.
func unless(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// ask reads how queues and workers stand.
func (l *look) ask(ctx context.Context, e *pawl.Engine) error {
	now, err := e.Store().Now(ctx)
	if err != nil {
		return err
	}
	states, err := e.Queues(ctx)
	if unless(err) != nil {
		return err
	}
	for _, s := range states {
		q := l.at(s.Name)
		q.states["ready"] += s.Ready.Jobs
		q.states["scheduled"] += s.Scheduled.Jobs
		q.retries += s.Retries.Jobs
		if !s.Oldest.IsZero() {
			q.oldest = max(q.oldest, now.Sub(s.Oldest))
		}
		q.slots += s.Slots
		q.workers = max(q.workers, s.Workers)
		q.paused = q.paused || s.Pause != nil
	}
	counts, err := e.Counts(ctx)
	if unless(err) != nil {
		return err
	}
	for _, n := range counts {
		if n.State != job.Waiting || len(states) == 0 {
			l.at(n.Queue).states[n.State.String()] += n.Jobs
		}
	}
	registered, err := e.Workers(ctx)
	if err != nil {
		return err
	}
	for i := range registered {
		if registered[i].Lost {
			l.lost++
		} else {
			l.live++
		}
	}
	return nil
}

// at is how a queue stands. What there is none of is shown as 0.
func (l *look) at(name string) *queue {
	q := l.queues.at(name)
	if q.states == nil {
		q.states = map[string]int{"ready": 0, "scheduled": 0, job.Running.String(): 0, job.Dead.String(): 0}
	}
	return q
}

func (l *look) show(to chan<- prometheus.Metric) {
	const gauge = prometheus.GaugeValue
	show(to, storeUp, gauge, number(l.up))
	show(to, storeFine, gauge, number(l.fine))
	show(to, lookErrors, prometheus.CounterValue, l.errors)
	show(to, lookSeconds, gauge, l.took.Seconds())
	if !l.up {
		return
	}
	show(to, workers, gauge, l.live, "live")
	show(to, workers, gauge, l.lost, "lost")
	for name, q := range l.queues.list {
		for state, n := range q.states {
			show(to, queueJobs, gauge, n, name, state)
		}
		show(to, queueRetries, gauge, q.retries, name)
		show(to, queueOldest, gauge, max(0, q.oldest.Seconds()), name)
		show(to, queueSlots, gauge, q.slots, name)
		show(to, queueWorkers, gauge, q.workers, name)
		show(to, queuePaused, gauge, number(q.paused), name)
	}
}
