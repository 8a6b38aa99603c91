package telemetry

import (
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// Request begins the span of a request that is about to be answered. The request it returns
// is the one to hand on; end is called with the status of the answer. A caller's trace is
// gone on with only where the caller is known: who is not must not choose what is
// sampled. Queries, bodies and headers are not in the span.
func (t *Telemetry) Request(r *http.Request, known bool) (traced *http.Request, end func(status int)) {
	if !t.on() {
		return r, func(int) {}
	}
	ctx := r.Context()
	if known {
		ctx = t.propagator.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "_OTHER" // anybody may make up more
	}
	ctx, span := t.tracer.Start(ctx, spanName(method), trace.WithSpanKind(trace.SpanKindServer))
	traced = r.WithContext(ctx)
	return traced, func(status int) {
		if span.IsRecording() {
			span.SetAttributes(requested(traced, method, status)...)
			if _, route, found := strings.Cut(traced.Pattern, " "); found {
				span.SetName(method + " " + route) // the mux has found it by now
			}
			if status >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, http.StatusText(status))
			}
		}
		span.End()
	}
}

func spanName(method string) string {
	if method == "_OTHER" {
		return "HTTP"
	}
	return method
}

func requested(r *http.Request, method string, status int) []attribute.KeyValue {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	list := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(method), semconv.URLScheme(scheme), semconv.URLPath(bounded(r.URL.Path)),
		semconv.HTTPResponseStatusCode(status),
	}
	if _, route, found := strings.Cut(r.Pattern, " "); found {
		list = append(list, semconv.HTTPRoute(route))
	}
	return list
}
