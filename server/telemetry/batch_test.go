package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/batch"
	"github.com/pawlwork/pawl/server/serve"
)

// A batch has a span with links to those of its callers, and is measured by its name.
func TestU6_BatchesAreTracedAndMeasured(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
	made := fromEnvironment(t, nil)
	e := engine(t, made, nil)
	within := make(chan trace.SpanID, 1)
	pawl.HandleBatch(e, func(ctx context.Context, jobs []*pawl.Job[order]) []error {
		within <- trace.SpanContextFromContext(ctx).SpanID()
		return make([]error, len(jobs))
	}, pawl.Batch[order]{Size: 2, Wait: time.Hour, Observer: made.Batch()})
	if _, err := e.EnqueueMany(t.Context(), pawl.NewItem(order{1}), pawl.NewItem(order{2})); err != nil {
		t.Fatal(err)
	}
	stop := run(t, e)
	inside := <-within
	stop()
	refuses := batch.New(func(context.Context, string, []int) ([]int, error) { return nil, errors.New("no room") },
		batch.Options{Name: "shelf", Policy: batch.Balanced(1), Observer: made.Batch()})
	if _, err := refuses.Do(t.Context(), "", 1); err == nil {
		t.Error("it took an item")
	}
	if err := refuses.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	flush(t, made)

	span := c.spans("batch order", 1)[0]
	wants(t, span, traces.Span_SPAN_KIND_INTERNAL, "pawl.batch.name", "order", "pawl.batch.items", "2", "pawl.batch.failed", "0")
	if text(span.SpanId) != inside.String() {
		t.Error("the handler is not within the span")
	}
	callers := map[string]bool{}
	for _, s := range c.spans("process order", 2) {
		callers[text(s.SpanId)] = true
	}
	for _, link := range span.Links {
		delete(callers, text(link.SpanId))
	}
	if len(span.Links) != 2 || len(callers) != 0 {
		t.Errorf("%d links, and %v without one", len(span.Links), callers)
	}
	failed := c.spans("batch shelf", 1)[0]
	wants(t, failed, traces.Span_SPAN_KIND_INTERNAL, "pawl.batch.items", "1", "pawl.batch.failed", "1")
	if failed.Status.GetCode() != traces.Status_STATUS_CODE_ERROR {
		t.Errorf("a batch that failed has %v", failed.Status)
	}

	counts := map[string]map[string]int64{}
	for _, name := range []string{"pawl.batch.received", "pawl.batch.failed", "pawl.batch.in_flight"} {
		counts[name] = map[string]int64{}
		for _, p := range c.metric(name).GetSum().DataPoints {
			counts[name][attributes(map[string]string{}, p.Attributes)["pawl.batch.name"]] = p.GetAsInt()
		}
	}
	r, f, in := counts["pawl.batch.received"], counts["pawl.batch.failed"], counts["pawl.batch.in_flight"]
	if r["order"] != 2 || r["shelf"] != 1 || f["shelf"] != 1 || f["order"] != 0 || in["order"] != 0 || in["shelf"] != 0 {
		t.Errorf("counted %v", counts)
	}
	for _, name := range []string{"pawl.batch.size", "pawl.batch.queue.duration", "pawl.batch.process.duration"} {
		if points := c.metric(name).GetHistogram().DataPoints; len(points) != 2 || points[0].Count != 1 || points[1].Count != 1 {
			t.Errorf("%s has %v", name, points)
		}
	}
}

// What Prometheus may scrape goes to the collector too.
func TestU6_MetricsOfTheServerAreExported(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_TRACES_EXPORTER", "none")
	made := fromEnvironment(t, nil)
	e := engine(t, made, nil)
	if _, err := e.Enqueue(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	_, stop := listen(t, serve.Config{Engine: e, Telemetry: made, Version: "v7"})
	stop()
	if err := e.Close(); err != nil { // as pawl serve does
		t.Fatal(err)
	}
	flush(t, made)
	ready := map[string]float64{}
	for _, p := range c.metric("pawl_queue_jobs").GetGauge().DataPoints {
		if a := attributes(map[string]string{}, p.Attributes); a["state"] == "ready" {
			ready[a["queue"]] = p.GetAsDouble()
		}
	}
	if ready["default"] != 1 {
		t.Errorf("ready: %v", ready)
	}
	if n := c.sent["pawl_store_up"]; n != 1 {
		t.Errorf("pawl_store_up was sent %d times, want once: after the engine is closed it looks like an outage", n)
	}
	if got := attributes(map[string]string{}, c.metric("pawl_build_info").GetGauge().DataPoints[0].Attributes)["version"]; got != "v7" {
		t.Errorf("the version is %q", got)
	}
	if len(c.list) != 0 {
		t.Error("spans were sent")
	}
}
