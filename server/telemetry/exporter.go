package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// tellEvery is how often the log is told that a collector does not take what it is sent.
const tellEvery = time.Minute

// maxReason bounds what a collector says of it.
const maxReason = 500

// failures tell of exports that failed, once an interval. The SDK would hand them to a
// global handler that writes to stderr each time.
type failures struct {
	log    *slog.Logger
	signal string

	mu    sync.Mutex
	last  time.Time
	count int // since then
}

func (f *failures) tell(ctx context.Context, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	now := time.Now()
	if !f.last.IsZero() && now.Sub(f.last) < tellEvery {
		return
	}
	reason := fmt.Sprintf("%.*s", maxReason, err.Error())
	f.log.WarnContext(ctx, "telemetry could not be exported, and is lost", "signal", f.signal, "failures", f.count, "error", reason)
	f.last, f.count = now, 0
}

// spanExporter tells of failures.
type spanExporter struct {
	sdktrace.SpanExporter
	failures failures
	idle     func() // closes connections
}

// ExportSpans sends spans; what cannot be sent is told, and dropped.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.failures.tell(ctx, e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// cut ends what a Shutdown could not wait for.
func (e *spanExporter) cut() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.SpanExporter.Shutdown(ended)
	e.idle()
}

// metricExporter tells of failures.
type metricExporter struct {
	sdkmetric.Exporter
	failures failures
}

// Export sends metrics; what cannot be sent is told, and dropped.
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	e.failures.tell(ctx, e.Exporter.Export(ctx, m))
	return nil
}

// newClient calls the collector of a signal. It is our own because that of the exporters
// follows redirects, with headers that are secret, and passes over certificates
// that cannot be read.
func newClient(signal string) (*http.Client, error) {
	timeout, err := otlpTimeout(signal)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, name := otlp(signal, "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s %.200q: holds no certificate", name, file)
		}
	}
	certificate, name := otlp(signal, "CLIENT_CERTIFICATE")
	key, keyName := otlp(signal, "CLIENT_KEY")
	if (certificate == "") != (key == "") {
		return nil, fmt.Errorf("%s and %s: both must be given, or none", name, keyName)
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", name, keyName, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: timeout}).DialContext, TLSClientConfig: config,
			ForceAttemptHTTP2: true, MaxIdleConns: 4, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: timeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
