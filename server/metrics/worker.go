package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// What this process does itself, since Run began. There is none of it where Run never ran.
var (
	workerHealthy    = desc("worker_healthy", "Whether this process is registered and its lease is fresh.")
	workerBeat       = desc("worker_last_beat_timestamp_seconds", "When this process last sent a beat that the store took.")
	workerRunning    = desc("worker_running_jobs", "Handlers that run in this process.")
	workerReady      = desc("worker_ready_jobs", "Jobs that this process has claimed and not begun.")
	workerEnding     = desc("worker_ending_jobs", "Jobs whose handlers have returned and whose end the store has not answered for.")
	workerStuck      = desc("worker_stuck_jobs", "Handlers that ignore their cancelled context; each keeps its slot.")
	workerLooks      = desc("worker_claims_total", "Claims that this process has sent.")
	workerClaimed    = desc("worker_claimed_jobs_total", "Jobs that the claims of this process returned.")
	workerBegan      = desc("worker_began_runs_total", "Handlers that this process has started.")
	workerFinished   = desc("worker_finished_runs_total", "Ends of this process that the store applied, by outcome.", "outcome")
	workerPanics     = desc("worker_panics_total", "Handlers that panicked or ended their goroutine.")
	workerRefused    = desc("worker_refused_ends_total", "Ends of runs that no longer owned their job, which changed nothing.")
	workerLeasesLost = desc("worker_leases_lost_total", "Runs whose lease was lost while this process held them.")
	workerRegistered = desc("worker_registrations_total", "How often this process has registered; more than once after it was taken for dead.")
	workerReleased   = desc("worker_released_jobs_total", "Jobs that went back without having started.")
	serviceErrors    = desc("worker_service_errors_total", "Failed rounds of the loops of this process, by loop.", "service")
	serviceRestarts  = desc("worker_service_restarts_total", "Restarts of the loops of this process, by loop.", "service")
	unservedJobs     = desc("unserved_jobs", "Jobs that wait and that no live worker takes, by queue, as this process found them: "+
		"the first of the live processes looks once a minute, so add those of all processes.", "queue")
)

// worker shows what this process does.
func (c *Collector) worker(to chan<- prometheus.Metric) {
	s := c.e.Stats()
	if s.Registered == 0 && s.Looks == 0 {
		return
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	show(to, workerHealthy, gauge, number(s.Healthy))
	if !s.LastBeat.IsZero() {
		show(to, workerBeat, gauge, float64(s.LastBeat.UnixMilli())/1000)
	}
	show(to, workerRunning, gauge, s.Running)
	show(to, workerReady, gauge, s.Ready)
	show(to, workerEnding, gauge, s.Ending)
	show(to, workerStuck, gauge, len(s.Stuck))
	show(to, workerLooks, counter, s.Looks)
	show(to, workerClaimed, counter, s.Claimed)
	show(to, workerBegan, counter, s.Began)
	for outcome, n := range s.Finished {
		show(to, workerFinished, counter, n, outcome.String())
	}
	show(to, workerPanics, counter, s.Panics)
	show(to, workerRefused, counter, s.Refused)
	show(to, workerLeasesLost, counter, s.LeasesLost)
	show(to, workerRegistered, counter, s.Registered)
	show(to, workerReleased, counter, s.Released)
	for _, one := range c.e.Services(context.Background()) {
		show(to, serviceErrors, counter, one.Errors, one.Name)
		show(to, serviceRestarts, counter, one.Restarts, one.Name)
	}
	unserved := newByQueue[int]()
	for _, u := range s.Unserved {
		*unserved.at(u.Queue) += u.Jobs
	}
	for queue, n := range unserved.list {
		show(to, unservedJobs, gauge, *n, queue)
	}
}

// byQueue is something of each queue, of maxQueues apart.
type byQueue[V any] struct{ list map[string]*V }

func newByQueue[V any]() byQueue[V] { return byQueue[V]{map[string]*V{}} }

// at is that of a queue, or of all others.
func (b byQueue[V]) at(queue string) *V {
	if b.list[queue] == nil {
		if len(b.list) >= maxQueues {
			queue = other
		}
		if b.list[queue] == nil {
			b.list[queue] = new(V)
		}
	}
	return b.list[queue]
}
