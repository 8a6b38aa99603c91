package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// Config adds spans to the configuration of an engine: one around each enqueue, one
// around each attempt at a job. Hooks and middleware that are set already stay; those of
// the traces stand outside of the middleware, so that what it does is in the span.
func (t *Telemetry) Config(c pawl.Config) pawl.Config {
	if !t.on() {
		return c
	}
	c.Middleware = append([]pawl.Middleware{t.work}, c.Middleware...)
	inner := c.Hooks.AroundEnqueue
	c.Hooks.AroundEnqueue = func(ctx context.Context, drafts []pawl.Draft) func(error) {
		end := t.enqueue(ctx, drafts)
		if inner == nil {
			return end
		}
		innerEnd := inner(ctx, drafts)
		return func(err error) {
			if innerEnd != nil {
				innerEnd(err)
			}
			end(err)
		}
	}
	return c
}

// enqueue begins the span of a call, and writes it into the headers of its jobs.
func (t *Telemetry) enqueue(ctx context.Context, drafts []pawl.Draft) (end func(error)) {
	if len(drafts) == 0 {
		return func(error) {}
	}
	name := "enqueue"
	kind, one := same(drafts, func(d *pawl.Draft) string { return d.Kind })
	if one {
		name += " " + kind
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer))
	t.inject(ctx, drafts)
	return func(err error) {
		if span.IsRecording() {
			span.SetAttributes(enqueued(drafts)...)
			fail(span, err)
		}
		span.End()
	}
}

// enqueued are the attributes of a call, once the ids of its jobs are known.
func enqueued(drafts []pawl.Draft) []attribute.KeyValue {
	list := []attribute.KeyValue{
		semconv.MessagingSystemKey.String(system), semconv.MessagingOperationName("enqueue"), semconv.MessagingOperationTypeSend,
	}
	if queue, one := same(drafts, func(d *pawl.Draft) string { return d.Queue }); one {
		list = append(list, semconv.MessagingDestinationName(queue))
	}
	if kind, one := same(drafts, func(d *pawl.Draft) string { return d.Kind }); one {
		list = append(list, kindKey.String(kind))
	}
	if len(drafts) > 1 {
		return append(list, semconv.MessagingBatchMessageCount(len(drafts)))
	}
	return append(list, semconv.MessagingMessageID(drafts[0].ID.String()))
}

// same is what all drafts have, if they do.
func same(drafts []pawl.Draft, of func(*pawl.Draft) string) (string, bool) {
	first := of(&drafts[0])
	for i := range drafts {
		if of(&drafts[i]) != first {
			return "", false
		}
	}
	return first, true
}

// inject writes the trace into the headers of drafts. One that carries a trace already
// keeps it.
func (t *Telemetry) inject(ctx context.Context, drafts []pawl.Draft) {
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	plain, err := job.EncodeHeaders(carrier) // of all that have no headers of their own
	if err != nil || plain == nil {
		return
	}
	fields := t.propagator.Fields()
	for i := range drafts {
		headers := drafts[i].Headers()
		if headers == nil {
			drafts[i].HeaderBytes = slices.Clip(plain)
			continue
		}
		if slices.ContainsFunc(fields, func(name string) bool { return headers[name] != "" }) {
			continue
		}
		for name, value := range carrier {
			headers[name] = value
		}
		if merged, err := job.EncodeHeaders(headers); err == nil {
			drafts[i].HeaderBytes = merged
		}
	}
}
