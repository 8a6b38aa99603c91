// Package telemetry shows an engine, batchers and requests to OpenTelemetry: traces from
// who enqueues a job to each attempt at it, and metrics.
//
//	HTTP request --> enqueue (producer) --> headers of the job --> process (consumer), one span for each attempt
//
// A Telemetry is made from the standard variables ([FromEnvironment]) or of a program's own
// providers ([New]). Nothing global is set or read. One that is off, and a nil one, costs
// nothing and changes nothing.
package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// scope names what makes spans and metrics.
const scope = "github.com/pawlwork/pawl"

// system is the messaging.system of jobs.
const system = "pawl"

// Providers are those of a program. What is nil is left out.
type Providers struct {
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider
	// Propagator writes a trace into the headers of jobs and reads it
	// [propagation.TraceContext, and propagation.Baggage].
	Propagator propagation.TextMapPropagator
}

// Telemetry makes spans and metrics. It is safe for concurrent use.
type Telemetry struct {
	traces     bool // else no span is made, and no header written
	metrics    bool
	tracer     trace.Tracer
	meter      metric.Meter
	propagator propagation.TextMapPropagator

	// Of what FromEnvironment has made.
	gathered *gathered
	stops    []func(context.Context) error
	stopped  sync.Once
	flush    time.Duration
}

// New uses providers that the caller has made, and shuts down.
func New(p Providers) *Telemetry {
	t := &Telemetry{traces: p.Traces != nil, metrics: p.Metrics != nil, propagator: p.Propagator}
	if p.Traces == nil {
		p.Traces = tracenoop.NewTracerProvider()
	}
	if p.Metrics == nil {
		p.Metrics = metricnoop.NewMeterProvider()
	}
	if t.propagator == nil {
		t.propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	t.tracer, t.meter = p.Traces.Tracer(scope), p.Metrics.Meter(scope)
	return t
}

// on reports whether spans are wanted.
func (t *Telemetry) on() bool { return t != nil && t.traces }

// Shutdown sends what is left, for Options.Flush at most. It is for one of FromEnvironment, once the
// engine is closed; to call it again does nothing.
func (t *Telemetry) Shutdown(ctx context.Context) (fault error) {
	if t == nil {
		return nil
	}
	t.stopped.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, t.flush)
		defer cancel()
		faults := make(chan error, len(t.stops))
		for _, stop := range t.stops {
			go func() { faults <- stop(ctx) }()
		}
		for range t.stops {
			fault = errors.Join(fault, <-faults)
		}
	})
	return fault
}
