package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Options are for FromEnvironment. Zero fields take the default in brackets.
type Options struct {
	Service string        // service.name, where the variables say none ["pawl"]
	Version string        // service.version ["dev"]
	Logger  *slog.Logger  // is told what could not be sent [slog.Default()]
	Console io.Writer     // for OTEL_TRACES_EXPORTER=console [os.Stdout]
	Flush   time.Duration // how long a Shutdown takes at most [5s]
}

// FromEnvironment makes a Telemetry from the variables of OpenTelemetry. With none of
// OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER and an endpoint set, and with
// OTEL_SDK_DISABLED=true, it is off. All faults are reported at once, each by the name of
// its variable; what is not supported is a fault too. No error holds the value of a
// variable that may be a secret. Shutdown ends it.
func FromEnvironment(ctx context.Context, o Options) (*Telemetry, error) {
	o.Service, o.Version = cmp.Or(o.Service, "pawl"), cmp.Or(o.Version, "dev")
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Console == nil {
		o.Console = os.Stdout
	}
	v, err := readVariables()
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if v.logs {
		o.Logger.WarnContext(ctx, "OTEL_LOGS_EXPORTER is set, and logs are not exported: they go where they always go")
	}
	if len(v.traces) == 0 && !v.metrics {
		return New(Providers{}), nil
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	made := &Telemetry{flush: cmp.Or(o.Flush, 5*time.Second)}
	p := Providers{Propagator: v.propagator}
	if len(v.traces) > 0 {
		if p.Traces, err = made.newTraces(ctx, v.traces, about, o); err != nil {
			return nil, errors.Join(fmt.Errorf("telemetry: traces: %w", err), made.Shutdown(ctx))
		}
	}
	if v.metrics {
		if p.Metrics, err = made.newMetrics(ctx, about, o); err != nil {
			return nil, errors.Join(fmt.Errorf("telemetry: metrics: %w", err), made.Shutdown(ctx))
		}
	}
	t := New(p)
	t.gathered, t.stops, t.flush = made.gathered, made.stops, made.flush
	return t, nil
}

// newTraces makes a provider that sends to those named.
func (t *Telemetry) newTraces(ctx context.Context, names []string, about *resource.Resource, o Options) (trace.TracerProvider, error) {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	var list []*spanExporter
	for _, name := range names {
		exporter, err := newSpanExporter(ctx, name, o)
		if err != nil {
			return nil, err
		}
		list = append(list, exporter)
	}
	var batches []sdktrace.SpanProcessor
	for _, exporter := range list {
		one := sdktrace.NewBatchSpanProcessor(exporter)
		batches, options = append(batches, one), append(options, sdktrace.WithSpanProcessor(one))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.stops = append(t.stops, func(ctx context.Context) error {
		err := provider.Shutdown(ctx)
		for _, one := range batches { // a provider whose time is over leaves them running
			_ = one.Shutdown(ctx)
		}
		for _, exporter := range list {
			exporter.cut()
		}
		return err
	})
	return provider, nil
}

// newMetrics makes a provider that sends what is measured, and what is gathered, by OTLP.
func (t *Telemetry) newMetrics(ctx context.Context, about *resource.Resource, o Options) (metric.MeterProvider, error) {
	client, err := newClient("METRICS")
	if err != nil {
		return nil, err
	}
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithHTTPClient(client)}
	if endpoint, _ := otlp("METRICS", "ENDPOINT"); endpoint == "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(defaultEndpoint+"/v1/metrics"))
	}
	exporter, err := otlpmetrichttp.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	t.gathered = &gathered{time: t.flush}
	told := &metricExporter{exporter, failures{log: o.Logger, signal: "metrics"}}
	reader := sdkmetric.NewPeriodicReader(told, sdkmetric.WithProducer(t.gathered))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(reader))
	t.gathered.flush = provider.ForceFlush
	t.stops = append(t.stops, func(ctx context.Context) error {
		defer client.CloseIdleConnections()
		return provider.Shutdown(ctx)
	})
	return provider, nil
}

// newSpanExporter makes one that a variable names.
func newSpanExporter(ctx context.Context, name string, o Options) (*spanExporter, error) {
	e := &spanExporter{failures: failures{log: o.Logger, signal: "traces"}, idle: func() {}}
	var err error
	if name == "console" {
		e.SpanExporter, err = stdouttrace.New(stdouttrace.WithWriter(o.Console))
		return e, err
	}
	client, err := newClient("TRACES")
	if err != nil {
		return nil, err
	}
	e.idle = client.CloseIdleConnections
	options := []otlptracehttp.Option{otlptracehttp.WithHTTPClient(client)}
	if endpoint, _ := otlp("TRACES", "ENDPOINT"); endpoint == "" {
		options = append(options, otlptracehttp.WithEndpointURL(defaultEndpoint+"/v1/traces"))
	}
	e.SpanExporter, err = otlptracehttp.New(ctx, options...)
	return e, err
}
