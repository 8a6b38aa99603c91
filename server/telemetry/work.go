package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlwork/pawl"
)

// Attributes that the conventions have no name for.
const (
	kindKey        = attribute.Key("pawl.job.kind")
	attemptKey     = attribute.Key("pawl.job.attempt")
	maxAttemptsKey = attribute.Key("pawl.job.max_attempts")
	runKey         = attribute.Key("pawl.job.run")
	outcomeKey     = attribute.Key("pawl.job.outcome")
)

// maxText bounds each text of a span that others wrote.
const maxText = 4 << 10

// work puts a span around an attempt, a child of the one that enqueued the job.
func (t *Telemetry) work(next pawl.Work) pawl.Work {
	return func(ctx context.Context, j *pawl.Info) error {
		ctx = t.propagator.Extract(ctx, propagation.MapCarrier(j.Headers()))
		ctx, span := t.tracer.Start(ctx, "process "+j.Kind, trace.WithSpanKind(trace.SpanKindConsumer))
		defer span.End() // which notes a panic of other middleware
		if !span.IsRecording() {
			return next(ctx, j)
		}
		span.SetAttributes(
			semconv.MessagingSystemKey.String(system), semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
			semconv.MessagingDestinationName(j.Queue), semconv.MessagingMessageID(j.ID.String()),
			kindKey.String(j.Kind), attemptKey.Int(j.Attempt), maxAttemptsKey.Int(j.MaxAttempts), runKey.Int64(j.Run),
		)
		err := next(ctx, j)
		came, failed := outcome(ctx, j, err)
		span.SetAttributes(outcomeKey.String(came))
		if failed {
			fail(span, err)
		}
		return err
	}
}

// outcome is what an attempt came to, as far as its error says, and whether it failed. What
// the handler only says (snooze, throttle), and the echo of being told to stop, is no fault.
func outcome(ctx context.Context, j *pawl.Info, err error) (name string, failed bool) {
	cause := context.Cause(ctx)
	_, panicked := errors.AsType[*pawl.PanicError](err)
	switch {
	case err == nil:
		return "done", false
	case pawl.IsSnooze(err):
		return "snoozed", false
	case pawl.IsThrottled(err):
		return "throttled", false
	case pawl.IsDead(err):
		return "dead", true
	case !panicked && errors.Is(cause, pawl.ErrCancelled):
		return "cancelled", false
	case !panicked && errors.Is(cause, pawl.ErrStopping):
		return "released", false
	case !panicked && errors.Is(cause, pawl.ErrLeaseLost):
		return "lost", true
	case j.Attempt >= j.MaxAttempts:
		return "dead", true
	}
	return "failed", true
}

// fail notes an error on a span; nil is none. It is written as an event with bounds,
// because what a handler returns may be of any size.
func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	kind := errorType(err)
	text := bounded(err.Error())
	event := []attribute.KeyValue{semconv.ExceptionType(kind), semconv.ExceptionMessage(text)}
	if p, is := errors.AsType[*pawl.PanicError](err); is {
		event = append(event, semconv.ExceptionStacktrace(bounded(string(p.Stack))))
	}
	span.AddEvent(semconv.ExceptionEventName, trace.WithAttributes(event...))
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, text)
}

// errorType is one of few names: it may be what metrics are split by.
func errorType(err error) string {
	if _, is := errors.AsType[*pawl.PanicError](err); is {
		return "panic"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}

func bounded(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD") // protobuf takes nothing else
}
