package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawlwork/pawl/server/httpapi"
)

// Serve sends traces and metrics where the variables say, also what is left at its end, and
// shows their secrets to nobody.
func TestU6_ServeExportsByTheStandardVariables(t *testing.T) {
	const secret = "s3cret-of-the-collector"
	var mu sync.Mutex
	sent := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent[r.URL.Path] += r.Header.Get("X-Key") + string(b)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key="+secret)
	s := startServer(t)
	var r httpapi.Receipt
	s.call("POST", "/jobs", `{"kind":"pawl.demo.echo","args":{"value":1}}`, &r)
	var j httpapi.Job
	s.call("GET", "/jobs/"+r.ID+"?wait=50s", "", &j)
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 || j.State != "done" {
		t.Errorf("exit %d, %s: %s", code, j.State, s.text)
	}
	mu.Lock()
	for path, words := range map[string][]string{
		"/v1/traces":  {secret, "POST /api/v1/jobs", "enqueue pawl.demo.echo", "process pawl.demo.echo", "messaging.destination.name", r.ID},
		"/v1/metrics": {secret, "pawl_build_info", "pawl_http_requests_total"},
	} {
		for _, word := range words {
			if !strings.Contains(sent[path], word) {
				t.Errorf("%s was not sent %q", path, word)
			}
		}
	}
	mu.Unlock()
	out, problems, code := endOf(t, program(t, "config"))
	if text := out + problems + s.text.String(); code != 0 || strings.Contains(text, secret) {
		t.Errorf("exit %d: %s", code, text)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	out, problems, code = endOf(t, program(t, "serve", "--listen", "127.0.0.1:0"))
	if text := out + problems; code != exitUsage || !strings.Contains(text, "OTEL_EXPORTER_OTLP_PROTOCOL") || strings.Contains(text, secret) {
		t.Errorf("a protocol that is not supported: exit %d: %s", code, text)
	}
}
