package telemetry_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pawlwork/pawl/server/telemetry"
)

// collector takes OTLP over HTTP.
type collector struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	list     []*traces.Span
	resource map[string]string
	numbers  map[string]*metrics.Metric // the last of each name
	sent     map[string]int             // how often
	headers  []http.Header
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t, resource: map[string]string{}, numbers: map[string]*metrics.Metric{}, sent: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var m collecttraces.ExportTraceServiceRequest
		c.read(w, r, &m, func() {
			for _, of := range m.ResourceSpans {
				attributes(c.resource, of.Resource.Attributes)
				for _, s := range of.ScopeSpans {
					c.list = append(c.list, s.Spans...)
				}
			}
		})
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var m collectmetrics.ExportMetricsServiceRequest
		c.read(w, r, &m, func() {
			for _, of := range m.ResourceMetrics {
				for _, s := range of.ScopeMetrics {
					for _, number := range s.Metrics {
						c.numbers[number.Name] = number
						c.sent[number.Name]++
					}
				}
			}
		})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func (c *collector) read(w http.ResponseWriter, r *http.Request, m proto.Message, take func()) {
	b, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(b, m)
	}
	if err != nil {
		c.t.Errorf("%s: %v", r.URL.Path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header)
	take()
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// spans are those of a name, of which there must be n, as they began.
func (c *collector) spans(name string, n int) []*traces.Span {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*traces.Span
	var names []string
	for _, s := range c.list {
		names = append(names, s.Name)
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != n {
		c.t.Fatalf("%d spans %q, want %d; there are %s", len(found), name, n, strings.Join(names, ", "))
	}
	slices.SortFunc(found, func(a, b *traces.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return found
}

func (c *collector) metric(name string) *metrics.Metric {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbers[name] == nil {
		c.t.Fatalf("no metric %s among %d", name, len(c.numbers))
	}
	return c.numbers[name]
}

func attributes(to map[string]string, list []*common.KeyValue) map[string]string {
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			to[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			to[a.Key] = fmt.Sprint(v.IntValue)
		default:
			to[a.Key] = a.Value.String()
		}
	}
	return to
}

// wants compares some attributes of a span.
func wants(t *testing.T, s *traces.Span, kind traces.Span_SpanKind, pairs ...string) {
	t.Helper()
	got := attributes(map[string]string{}, s.Attributes)
	for i := 0; i < len(pairs); i += 2 {
		if got[pairs[i]] != pairs[i+1] {
			t.Errorf("%s: %s is %q, want %q", s.Name, pairs[i], got[pairs[i]], pairs[i+1])
		}
	}
	if s.Kind != kind {
		t.Errorf("%s: is %v, want %v", s.Name, s.Kind, kind)
	}
}

// child wants a span to come from another one.
func child(t *testing.T, s, parent *traces.Span) {
	t.Helper()
	if string(s.TraceId) != string(parent.TraceId) || string(s.ParentSpanId) != string(parent.SpanId) {
		t.Errorf("%s has the parent %x in trace %x, want %s: %x in %x",
			s.Name, s.ParentSpanId, s.TraceId, parent.Name, parent.SpanId, parent.TraceId)
	}
}

func text(id []byte) string { return hex.EncodeToString(id) }

// clean empties the environment of what may be set outside of the test, then sets pairs.
func clean(t *testing.T, pairs ...string) {
	t.Helper()
	for _, name := range variables {
		t.Setenv(name, "")
	}
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

var variables = []string{
	"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_TRACES_SAMPLER",
	"OTEL_TRACES_SAMPLER_ARG", "OTEL_EXPORTER_OTLP_INSECURE", "OTEL_PROPAGATORS", "OTEL_SERVICE_NAME",
	"OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
	"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_CERTIFICATE",
	"OTEL_EXPORTER_OTLP_COMPRESSION",
}

// lockedText takes a log.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fromEnvironment makes a Telemetry; log, if there is one, is its log.
func fromEnvironment(t *testing.T, log io.Writer) *telemetry.Telemetry {
	t.Helper()
	if log == nil {
		log = io.Discard
	}
	made, err := telemetry.FromEnvironment(t.Context(), telemetry.Options{Version: "v7", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// flush ends a Telemetry, after which the collector has everything.
func flush(t *testing.T, made *telemetry.Telemetry) {
	t.Helper()
	if err := made.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}
