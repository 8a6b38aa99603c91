// Package metrics shows an engine to Prometheus.
//
// What is of the whole cluster comes from the store and is the same whichever process is
// asked: where several are scraped, take the highest, not the sum. What is of this process
// begins with pawl_worker_. A scrape asks the store a fixed number of questions, however
// many queues there are, and not more often than every few seconds; each is bounded.
package metrics

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlwork/pawl"
)

// Bounds of what is shown. Queues and kinds beyond them are shown together.
const (
	maxQueues = 500
	maxPairs  = 500 // of queue and kind
	other     = "(all other)"
)

// Options are for New. Zero fields take the default in brackets.
type Options struct {
	Version string        // of the build ["dev"]
	Cache   time.Duration // for how long an answer of the store is shown again, at least; negative: not at all [10s]
	Timeout time.Duration // of all questions of one scrape to the store [5s]
}

// Collector shows one engine.
type Collector struct {
	e *pawl.Engine
	o Options

	mu     sync.Mutex
	look   look
	totals totals
}

// New shows an engine, which need not run.
func New(e *pawl.Engine, o Options) *Collector {
	o.Version = cmp.Or(o.Version, "dev")
	o.Cache = cmp.Or(o.Cache, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	return &Collector{e: e, o: o, totals: newTotals()}
}

// described are all metrics, by name.
var described = map[string]*prometheus.Desc{}

// desc names a metric.
func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("pawl_"+name, help, labels, nil)
	described["pawl_"+name] = d
	return d
}

// Describe tells of all metrics that there may be.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
}

var buildInfo = desc("build_info", "Always 1; the label has the version of the build.", "version")

// Collect answers a scrape.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	show(to, buildInfo, prometheus.GaugeValue, 1, c.o.Version)
	c.worker(to)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	c.look.show(to)
	c.totals.show(to)
}

func show[N int | uint64 | float64](to chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, n N, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, kind, float64(n), labels...)
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
