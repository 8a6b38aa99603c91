package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/serve"
	"github.com/pawlwork/pawl/server/telemetry"
	"github.com/pawlwork/pawl/store/sqlite"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	traceparent  = "00-" + callersTrace + "-" + callersSpan + "-01"
)

type order struct{ Number int }

func (order) Kind() string { return "order" }

type letter struct{ To string }

func (letter) Kind() string { return "letter" }

// engine is one on a file, with traces.
func engine(t *testing.T, made *telemetry.Telemetry, edit func(*pawl.Config)) *pawl.Engine {
	t.Helper()
	c := pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 5}, "mail": {Workers: 2}}, Backoff: pawl.Constant(time.Millisecond),
		Logger: slog.New(slog.DiscardHandler),
	}
	if edit != nil {
		edit(&c)
	}
	e, err := pawl.New(sqlite.File(filepath.Join(t.TempDir(), "work.db")), made.Config(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// run runs an engine until the function it returns is called.
func run(t *testing.T, e *pawl.Engine) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// listen serves an engine until the function it returns is called.
func listen(t *testing.T, c serve.Config) (url string, stop func()) {
	t.Helper()
	ready, ended := make(chan string, 1), make(chan error, 1)
	c.Listen, c.Logger, c.Ready = "127.0.0.1:0", slog.New(slog.DiscardHandler), func(url string) { ready <- url }
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- serve.Run(ctx, c) }()
	select {
	case url = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return url, func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// ask sends a request with a traceparent.
func ask(t *testing.T, method, url, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("traceparent", traceparent)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// A caller's trace goes over HTTP, into the job, to each attempt at it and to what a
// handler hands over.
func TestU6_ATraceGoesFromTheCallerToEachAttempt(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_METRICS_EXPORTER", "none", "OTEL_SERVICE_NAME", "shop",
		"OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	made := fromEnvironment(t, nil)
	e := engine(t, made, nil)
	sent := make(chan string, 1)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[order]) error {
		if j.Attempt == 1 {
			return fmt.Errorf("shelf: %w", errors.New("empty"))
		}
		_, err := j.Then(letter{"ann"}, pawl.Queue("mail"))
		return err
	})
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[letter]) error {
		sent <- trace.SpanContextFromContext(ctx).TraceID().String()
		return nil
	})
	url, stop := listen(t, serve.Config{Engine: e, Run: true, Telemetry: made})
	status, text := ask(t, "POST", url+"/api/v1/jobs?", `{"kind":"order","args":{"Number":7}}`, "")
	if status != http.StatusCreated {
		t.Fatal(status, text)
	}
	var receipt struct{ ID string }
	if err := json.Unmarshal([]byte(text), &receipt); err != nil {
		t.Fatal(err)
	}
	if got := <-sent; got != callersTrace {
		t.Errorf("the last handler is in trace %s, want %s", got, callersTrace)
	}
	ask(t, "GET", url+"/healthz", "", "")
	ask(t, "GET", url+"/metrics", "", "")
	stop()
	flush(t, made)

	request := c.spans("POST /api/v1/jobs", 1)[0]
	wants(t, request, traces.Span_SPAN_KIND_SERVER, "http.request.method", "POST", "http.route", "/api/v1/jobs", "url.path", "/api/v1/jobs",
		"http.response.status_code", "201")
	if got := fmt.Sprintf("%x-%x", request.TraceId, request.ParentSpanId); got != callersTrace+"-"+callersSpan {
		t.Errorf("the request comes from %s", got)
	}
	enqueue := c.spans("enqueue order", 1)[0]
	child(t, enqueue, request)
	wants(t, enqueue, traces.Span_SPAN_KIND_PRODUCER, "messaging.system", "pawl", "messaging.destination.name", "default",
		"messaging.operation.type", "send", "messaging.message.id", receipt.ID, "pawl.job.kind", "order")
	attempts := c.spans("process order", 2)
	for i, s := range attempts {
		child(t, s, enqueue)
		wants(t, s, traces.Span_SPAN_KIND_CONSUMER, "messaging.system", "pawl", "messaging.destination.name", "default",
			"messaging.operation.type", "process", "messaging.message.id", receipt.ID, "pawl.job.attempt", fmt.Sprint(i+1),
			"pawl.job.outcome", []string{"failed", "done"}[i], "error.type", []string{"*errors.errorString", ""}[i])
	}
	failed := attempts[0]
	if failed.Status.GetCode() != traces.Status_STATUS_CODE_ERROR || failed.Status.Message != "shelf: empty" || len(failed.Events) != 1 {
		t.Errorf("the failed attempt has %v, %d events", failed.Status, len(failed.Events))
	}
	if attempts[1].Status.GetCode() == traces.Status_STATUS_CODE_ERROR {
		t.Error("the attempt that was done has an error")
	}
	then := c.spans("enqueue letter", 1)[0]
	child(t, then, attempts[1])
	last := c.spans("process letter", 1)[0]
	child(t, last, then)
	id := attributes(map[string]string{}, last.Attributes)["messaging.message.id"]
	wants(t, then, traces.Span_SPAN_KIND_PRODUCER, "messaging.message.id", id, "messaging.destination.name", "mail")
	for _, name := range []string{"GET /healthz", "GET /metrics", "GET"} {
		c.spans(name, 0)
	}
	for key, want := range map[string]string{"service.name": "shop", "service.version": "v7", "deployment.environment.name": "test"} {
		if c.resource[key] != want {
			t.Errorf("%s is %q, want %q", key, c.resource[key], want)
		}
	}
}

// What a handler says is no error, a panic and a death are.
func TestU6_OutcomesAreToldApart(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.url+"/v1/traces")
	made := fromEnvironment(t, nil)
	ended := make(chan pawl.State, 10)
	e := engine(t, made, func(c *pawl.Config) { c.Hooks.Finish = func(f pawl.Finished) { ended <- f.State } })
	pawl.HandleRaw(e, "raw", func(_ context.Context, j *pawl.Job[pawl.Raw]) error {
		switch string(j.Args) {
		case `"snooze"`:
			return pawl.Snooze(time.Hour)
		case `"dead"`:
			return pawl.Dead(errors.New(strings.Repeat("long", 5000)))
		case `"panic"`:
			panic("oh")
		}
		return errors.New("the last attempt")
	})
	want := map[string]string{}
	for _, says := range []string{"snooze", "dead", "panic", "last"} {
		r, err := e.Enqueue(t.Context(), pawl.RawArgs("raw", []byte(`"`+says+`"`)), pawl.Attempts(1))
		if err != nil {
			t.Fatal(err)
		}
		want[r.ID.String()] = says
	}
	stop := run(t, e)
	for range want {
		<-ended
	}
	stop()
	flush(t, made)
	outcomes := map[string][3]string{
		"snooze": {"snoozed", "", ""}, "dead": {"dead", "*errors.errorString", ""},
		"panic": {"dead", "panic", "panic: oh"}, "last": {"dead", "*errors.errorString", "the last attempt"},
	}
	for _, s := range c.spans("process raw", 4) {
		says := want[attributes(map[string]string{}, s.Attributes)["messaging.message.id"]]
		wants(t, s, traces.Span_SPAN_KIND_CONSUMER, "pawl.job.outcome", outcomes[says][0], "error.type", outcomes[says][1])
		if message := s.Status.GetMessage(); says != "dead" && message != outcomes[says][2] || len(message) > 5000 {
			t.Errorf("%s: the status says %.200s", says, message)
		}
		if says != "panic" {
			continue
		}
		if event := attributes(map[string]string{}, s.Events[0].Attributes); !strings.Contains(event["exception.stacktrace"], "trace_test.go") {
			t.Errorf("a panic has no stack: %v", event)
		}
	}
}

// A remote worker gets the trace with the job.
func TestU6_RemoteWorkersGetTheTrace(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_METRICS_EXPORTER", "none")
	made := fromEnvironment(t, nil)
	e := engine(t, made, nil)
	url, stop := listen(t, serve.Config{Engine: e, Telemetry: made})
	for _, body := range []string{
		`{"kind":"far","args":1}`,
		`{"kind":"far","args":2,"headers":{"traceparent":"00-11111111111111111111111111111111-2222222222222222-01"}}`,
		`{"kind":"far","args":3,"headers":{"tenant":"acme"}}`,
	} {
		if status, text := ask(t, "POST", url+"/api/v1/jobs", body, ""); status != http.StatusCreated {
			t.Fatal(status, text)
		}
	}
	_, text := ask(t, "POST", url+"/api/v1/workers", `{"queues":["default"],"kinds":["far"],"slots":3}`, "")
	var worker struct{ Worker int64 }
	if err := json.Unmarshal([]byte(text), &worker); err != nil {
		t.Fatal(err)
	}
	_, text = ask(t, "POST", fmt.Sprintf("%s/api/v1/workers/%d/claim", url, worker.Worker), `{"limit":3}`, "")
	var claimed struct {
		Jobs []struct {
			Args    struct{ JSON int }
			Headers map[string]string
		}
	}
	if err := json.Unmarshal([]byte(text), &claimed); err != nil || len(claimed.Jobs) != 3 {
		t.Fatal(err, text)
	}
	stop()
	flush(t, made)
	enqueues := c.spans("enqueue far", 3)
	for _, j := range claimed.Jobs {
		n := j.Args.JSON
		want := fmt.Sprintf("00-%s-%x-01", callersTrace, enqueues[n-1].SpanId)
		if n == 2 { // it had one of its own
			want = "00-11111111111111111111111111111111-2222222222222222-01"
		}
		if j.Headers["traceparent"] != want {
			t.Errorf("job %d carries %v, want %s", n, j.Headers, want)
		}
		if n == 3 && j.Headers["tenant"] != "acme" {
			t.Errorf("its own headers are gone: %v", j.Headers)
		}
	}
	c.spans("POST /api/v1/workers/{worker}/claim", 1)
}

// Who is not known does not choose the trace, and so not what is sampled.
func TestU6_AStrangersTraceIsNotGoneOnWith(t *testing.T) {
	c := newCollector(t)
	clean(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.url, "OTEL_METRICS_EXPORTER", "none")
	made := fromEnvironment(t, nil)
	token, hash := auth.NewToken()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(auth.Token{Name: "ann", Role: auth.Viewer, Hash: hash}.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := listen(t, serve.Config{Engine: engine(t, made, nil), TokenFile: file, Telemetry: made})
	if status, text := ask(t, "GET", url+"/api/v1/queues", "", ""); status != http.StatusUnauthorized {
		t.Fatal(status, text)
	}
	if status, text := ask(t, "GET", url+"/api/v1/queues", "", token); status != http.StatusOK {
		t.Fatal(status, text)
	}
	stop()
	flush(t, made)
	got := c.spans("GET /api/v1/queues", 2)
	wants(t, got[0], traces.Span_SPAN_KIND_SERVER, "http.response.status_code", "401")
	if text(got[0].TraceId) == callersTrace {
		t.Error("a stranger's trace is gone on with")
	}
	if text(got[1].TraceId) != callersTrace {
		t.Error("the trace of a known caller is not gone on with")
	}
}
