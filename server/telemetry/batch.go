package telemetry

import (
	"context"
	"iter"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlwork/pawl/batch"
)

// Attributes and bounds of batches.
const (
	batcherKey = attribute.Key("pawl.batch.name")
	itemsKey   = attribute.Key("pawl.batch.items")
	failedKey  = attribute.Key("pawl.batch.failed")
	queuedKey  = attribute.Key("pawl.batch.queued")
	acquireKey = attribute.Key("pawl.batch.acquire")

	maxLinks = 128 // what an SDK keeps of them
)

// Batch observes batchers, for [batch.Options] and pawl.Batch: metrics by name, and a span
// for each batch with links to those of its callers. It is nil where nothing is observed.
func (t *Telemetry) Batch() batch.Observer {
	if t == nil || !t.traces && !t.metrics {
		return nil
	}
	o := &batches{t: t, with: metric.WithAttributes()}
	if !t.metrics {
		return o
	}
	m := t.meter // errors are those of names and units, and these are right
	o.received, _ = m.Int64Counter("pawl.batch.received", metric.WithUnit("{item}"), metric.WithDescription("Items that were accepted."))
	o.rejected, _ = m.Int64Counter("pawl.batch.rejected", metric.WithUnit("{item}"), metric.WithDescription("Items that were refused."))
	o.left, _ = m.Int64Counter("pawl.batch.left", metric.WithUnit("{item}"),
		metric.WithDescription("Items whose callers gave up before processing began."))
	o.failed, _ = m.Int64Counter("pawl.batch.failed", metric.WithUnit("{item}"),
		metric.WithDescription("Items that were answered with an error."))
	o.inFlight, _ = m.Int64UpDownCounter("pawl.batch.in_flight", metric.WithUnit("{batch}"), metric.WithDescription("Batches under way."))
	o.items, _ = m.Int64Histogram("pawl.batch.size", metric.WithUnit("{item}"), metric.WithDescription("Items of a batch."),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000))
	seconds := func(name, what string) metric.Float64Histogram {
		h, _ := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
			metric.WithExplicitBucketBoundaries(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60))
		return h
	}
	o.queued = seconds("pawl.batch.queue.duration", "How long the oldest item of a batch waited for it to start.")
	o.acquire = seconds("pawl.batch.acquire.duration", "How long a batch took to acquire what it needs.")
	o.process = seconds("pawl.batch.process.duration", "How long a batch was processed.")
	return o
}

// batches observes batchers; Named makes one for each name.
type batches struct {
	t    *Telemetry
	name string
	with metric.MeasurementOption

	received, rejected, left, failed metric.Int64Counter // all nil without metrics
	inFlight                         metric.Int64UpDownCounter
	items                            metric.Int64Histogram
	queued, acquire, process         metric.Float64Histogram
}

// Named is the observer of one batcher.
func (o *batches) Named(name string) batch.Observer {
	n := *o
	n.name = name
	n.with = metric.WithAttributeSet(attribute.NewSet(batcherKey.String(name)))
	return &n
}

func (o *batches) add(to metric.Int64Counter, items int) {
	if to != nil && items > 0 {
		to.Add(context.Background(), int64(items), o.with)
	}
}

// Received counts items.
func (o *batches) Received(items int) { o.add(o.received, items) }

// Rejected counts items.
func (o *batches) Rejected(items int, _ error) { o.add(o.rejected, items) }

// Left counts items.
func (o *batches) Left(items int) { o.add(o.left, items) }

// Started counts a batch.
func (o *batches) Started() {
	if o.inFlight != nil {
		o.inFlight.Add(context.Background(), 1, o.with)
	}
}

// Finished measures a batch.
func (o *batches) Finished(r batch.Report) {
	if o.inFlight == nil {
		return
	}
	ctx := context.Background()
	o.inFlight.Add(ctx, -1, o.with)
	o.add(o.failed, r.Failed)
	if r.Items == 0 {
		return
	}
	o.items.Record(ctx, int64(r.Items), o.with)
	o.queued.Record(ctx, r.Queued.Seconds(), o.with)
	if r.Acquire > 0 {
		o.acquire.Record(ctx, r.Acquire.Seconds(), o.with)
	}
	o.process.Record(ctx, r.Process.Seconds(), o.with)
}

// Trace puts a span around the processing of a batch.
func (o *batches) Trace(ctx context.Context, callers iter.Seq[context.Context]) (context.Context, func(batch.Report)) {
	if !o.t.on() {
		return ctx, func(batch.Report) {}
	}
	name := "batch"
	if o.name != "" {
		name += " " + o.name
	}
	ctx, span := o.t.tracer.Start(ctx, name, trace.WithLinks(linksTo(callers)...))
	return ctx, func(r batch.Report) {
		if span.IsRecording() {
			span.SetAttributes(batcherKey.String(r.Name), itemsKey.Int(r.Items), failedKey.Int(r.Failed),
				queuedKey.Float64(r.Queued.Seconds()), acquireKey.Float64(r.Acquire.Seconds()))
			fail(span, r.Err)
		}
		span.End()
	}
}

// linksTo are the spans of callers, each once.
func linksTo(callers iter.Seq[context.Context]) (links []trace.Link) {
	seen := map[trace.SpanID]bool{}
	for caller := range callers {
		at := trace.SpanContextFromContext(caller)
		if !at.IsValid() || seen[at.SpanID()] {
			continue
		}
		if len(links) == maxLinks {
			break
		}
		seen[at.SpanID()] = true
		links = append(links, trace.Link{SpanContext: at})
	}
	return links
}
