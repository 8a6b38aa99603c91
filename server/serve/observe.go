package serve

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// seen is what a server counts of requests.
type seen struct {
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

func newSeen(r prometheus.Registerer, c *conns) *seen {
	s := &seen{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_http_requests_total", Help: "Requests that this process has answered, by method and status.",
		}, []string{"method", "code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_http_refused_total", Help: "Requests that were refused before a route was asked, by kind of problem.",
		}, []string{"kind"}),
	}
	connections := func(name, help string, of func(open, quiet int) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of(c.count())) })
	}
	r.MustRegister(s.requests, s.refused,
		connections("pawl_http_connections", "Connections that are open.", func(open, _ int) int { return open }),
		connections("pawl_http_active_connections", "Connections with a request under way.", func(open, quiet int) int { return open - quiet }),
	)
	return s
}

// traced begins the span of a request. Probes and scrapes have none: they are many and tell
// nothing.
func (s *server) traced(r *http.Request) (*http.Request, func(status int)) {
	if isProbe(r) || r.URL.Path == metricsPath {
		return r, func(int) {}
	}
	_, err := known(r)
	return s.Telemetry.Request(r, err == nil)
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// observe counts an answer. Queries are not logged: they may hold what is nobody's
// business.
func (s *server) observe(w *answer, r *http.Request, began time.Time) {
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "other" // anybody may make up more
	}
	s.seen.requests.WithLabelValues(method, strconv.Itoa(w.status)).Inc()
	s.Logger.DebugContext(r.Context(), "request", "method", method, "path", r.URL.Path, "status", w.status, "took", time.Since(began))
}
