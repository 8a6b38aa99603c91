package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// gathered are metrics of Prometheus that are exported too. They come after the exporter is
// made, and go before it: a server has them while it listens.
type gathered struct {
	from  atomic.Pointer[sdkmetric.Producer]
	flush func(context.Context) error // exports what there is
	time  time.Duration               // that it may take
}

// Produce gathers them.
func (g *gathered) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	from := g.from.Load()
	if from == nil {
		return nil, nil
	}
	return (*from).Produce(ctx)
}

// Gather has the metrics of Prometheus exported with the others, at each interval, until
// forget is called, which exports them once more: their engine is still open then. It does
// nothing where no metrics are exported, and for a Telemetry of New, whose program has
// go.opentelemetry.io/contrib/bridges/prometheus for it.
func (t *Telemetry) Gather(from prometheus.Gatherer) (forget func()) {
	if t == nil || t.gathered == nil {
		return func() {}
	}
	g := t.gathered
	p := bridge.NewMetricProducer(bridge.WithGatherer(from))
	g.from.Store(&p)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), g.time)
		defer cancel()
		_ = g.flush(ctx) // an export that failed is told by the exporter
		g.from.CompareAndSwap(&p, nil)
	}
}
