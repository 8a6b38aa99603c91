package telemetry_test

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/telemetry"
)

// Nothing is exported, and nothing stands in the way of jobs, unless somebody asks for it.
func TestU6_NothingIsExportedUnasked(t *testing.T) {
	c := newCollector(t)
	for name, pairs := range map[string][]string{
		"nothing set": nil,
		"disabled":    {"OTEL_SDK_DISABLED", "true", "OTEL_EXPORTER_OTLP_ENDPOINT", c.url},
		"none":        {"OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", c.url},
		"scraped":     {"OTEL_METRICS_EXPORTER", "prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t, pairs...)
			made := fromEnvironment(t, nil)
			if got := made.Config(pawl.Config{}); !reflect.DeepEqual(got, pawl.Config{}) {
				t.Errorf("the engine is changed: %+v", got)
			}
			if made.Batch() != nil {
				t.Error("batches are observed")
			}
			r := httptest.NewRequest("GET", "/", nil)
			traced, end := made.Request(r, true)
			if traced != r {
				t.Error("a request is changed")
			}
			end(200)
			flush(t, made)
		})
	}
	var none *telemetry.Telemetry
	none.Gather(nil)()
	if got := none.Config(pawl.Config{}); !reflect.DeepEqual(got, pawl.Config{}) || none.Batch() != nil || none.Shutdown(t.Context()) != nil {
		t.Error("a nil Telemetry does something")
	}
	if len(c.headers) > 0 {
		t.Errorf("the collector was called %d times", len(c.headers))
	}
}

const secret = "s3cret-of-the-collector"

// What is wrong or not supported is refused by the name of its variable, and no secret is in
// the error.
func TestU6_VariablesAreRefusedByName(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	file := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_SDK_DISABLED", "maybe", "one of true, false"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "one of none, otlp, console"},
		{"OTEL_METRICS_EXPORTER", "console", "one of none, otlp, prometheus"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "one of http/protobuf"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "one of http/protobuf"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "one of gzip, none"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "must be a number of milliseconds"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "0", "must be a number of milliseconds"},
		{"OTEL_TRACES_SAMPLER", "jaeger_remote", "one of always_on"},
		{"OTEL_PROPAGATORS", "b3", "one of none, tracecontext, baggage"},
		{"OTEL_RESOURCE_ATTRIBUTES", "shop", "missing value"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "-4", "whole number, 1..1000000"},
		{"OTEL_BSP_SCHEDULE_DELAY", "5s", "whole number"},
		{"OTEL_SPAN_EVENT_COUNT_LIMIT", "-2", "whole number, -1.."},
		{"OTEL_METRIC_EXPORT_INTERVAL", "0", "whole number, 1.."},
		{endpoint, "localhost:4318", "must be a URL"},
		{endpoint, "ftp://localhost", "must be a URL"},
		{endpoint, "http://ann:" + secret + "@localhost:4318", "must not have a user"},
		{endpoint, "http://ann:" + secret + "%zz@localhost", "must be a URL"},
		{endpoint, "http://localhost:4318?key=" + secret, "must not have a query"},
		{"OTEL_EXPORTER_OTLP_INSECURE", "false", "whose scheme is http"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=b," + secret, "part 2 must be name=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=" + secret + "%zz", "part 1 must be name=value"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=" + secret, "part 1 must be name=value"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=" + secret + "%0d%0ab:c", "part 1 must be name=value"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", file, "holds no certificate"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", file + "x", "no such file"},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", file, "both must be given"},
	} {
		clean(t, endpoint, "http://localhost:1", c.name, c.value)
		_, err := telemetry.FromEnvironment(t.Context(), telemetry.Options{})
		switch {
		case err == nil:
			t.Errorf("%s=%s is accepted", c.name, c.value)
		case !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s=%s: %v; want %s", c.name, c.value, err, c.want)
		case strings.Contains(err.Error(), secret):
			t.Errorf("%s: the error holds the secret: %v", c.name, err)
		}
		t.Setenv(c.name, "")
	}
	clean(t, "OTEL_TRACES_EXPORTER", "console", "OTEL_PROPAGATORS", "jaeger",
		"OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "1.5")
	_, err := telemetry.FromEnvironment(t.Context(), telemetry.Options{})
	if err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER_ARG") || !strings.Contains(err.Error(), "OTEL_PROPAGATORS") {
		t.Errorf("two faults: %v", err)
	}
}

// Headers go to the collector that is named, and nowhere else: not to where it redirects,
// and not into the log.
func TestU6_SecretsOfTheCollectorStaySecret(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_METRICS_EXPORTER", "none",
		"OTEL_EXPORTER_OTLP_HEADERS", "x-api-key="+secret+",other=a%20b")
	made := fromEnvironment(t, nil)
	if _, err := engine(t, made, nil).Enqueue(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	flush(t, made)
	if len(c.headers) != 1 || c.headers[0].Get("X-Api-Key") != secret || c.headers[0].Get("Other") != "a b" {
		t.Errorf("the collector was sent %v", c.headers)
	}

	var followed atomic.Int32
	away := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { followed.Add(1) }))
	defer away.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
	}))
	defer refuses.Close()
	var log lockedText
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refuses.URL)
	made = fromEnvironment(t, &log)
	if _, err := engine(t, made, nil).Enqueue(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	flush(t, made)
	if followed.Load() != 0 {
		t.Error("a redirect was followed, with the headers")
	}
	told := log.String()
	if !strings.Contains(told, "could not be exported") || !strings.Contains(told, "307") || strings.Contains(told, secret) {
		t.Errorf("the log says %s", told)
	}
}

// A collector may have a certificate that only its file vouches for.
func TestU6_TheCollectorsCertificateIsThatOfItsFile(t *testing.T) {
	asked := make(chan string, 1)
	safe := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer safe.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: safe.Certificate().Raw})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", safe.URL+"/otel", "OTEL_METRICS_EXPORTER", "none", "OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	made := fromEnvironment(t, nil)
	if _, err := engine(t, made, nil).Enqueue(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	flush(t, made)
	if path := <-asked; path != "/otel/v1/traces" {
		t.Errorf("it was asked for %s", path)
	}
}

// A collector that does not answer holds up neither jobs nor the stop.
func TestU6_ASilentCollectorHoldsUpNothing(t *testing.T) {
	asked, over := make(chan struct{}, 10), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-over
	}))
	defer silent.Close()
	defer close(over)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", silent.URL, "OTEL_BSP_SCHEDULE_DELAY", "1")
	made, err := telemetry.FromEnvironment(t.Context(), telemetry.Options{Flush: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e := engine(t, made, nil)
	if _, err := e.Enqueue(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	<-asked
	worked := make(chan struct{})
	pawl.Handle(e, func(context.Context, *pawl.Job[order]) error {
		close(worked)
		return nil
	})
	stop := run(t, e)
	<-worked
	stop()
	if err := made.Shutdown(t.Context()); err == nil {
		t.Error("a flush that was cut off says that it was clean")
	}
	if err := made.Shutdown(t.Context()); err != nil {
		t.Errorf("the second: %v", err)
	}
}

// The sampler is that of the variables, and a job goes on with the decision.
func TestU6_TheSamplerIsThatOfTheVariables(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_SAMPLER", "always_off")
	made := fromEnvironment(t, nil)
	e := engine(t, made, nil)
	headers := make(chan map[string]string, 1)
	pawl.Handle(e, func(_ context.Context, j *pawl.Job[order]) error {
		headers <- j.Headers()
		return nil
	})
	if _, err := e.Enqueue(t.Context(), order{1}); err != nil {
		t.Fatal(err)
	}
	stop := run(t, e)
	if got := (<-headers)["traceparent"]; !strings.HasSuffix(got, "-00") {
		t.Errorf("the job carries %q, want one that is not sampled", got)
	}
	stop()
	flush(t, made)
	c.spans("enqueue order", 0)
}

// The console is for a first look, beside the collector if both are named.
func TestU6_TracesGoToTheConsole(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_EXPORTER", "console,otlp")
	var console lockedText
	made, err := telemetry.FromEnvironment(t.Context(), telemetry.Options{Console: &console})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine(t, made, nil).EnqueueMany(t.Context(), pawl.NewItem(order{1}), pawl.NewItem(letter{"ann"})); err != nil {
		t.Fatal(err)
	}
	flush(t, made)
	if !strings.Contains(console.String(), `"Name":"enqueue"`) {
		t.Errorf("the console has %s", console.String())
	}
	got := attributes(map[string]string{}, c.spans("enqueue", 1)[0].Attributes)
	if got["messaging.batch.message_count"] != "2" || got["pawl.job.kind"] != "" {
		t.Errorf("two jobs of two kinds: %v", got)
	}
}
