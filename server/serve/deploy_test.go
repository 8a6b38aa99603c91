package serve

import (
	"encoding/json"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pawlwork/pawl/server/metrics"
)

var (
	metricName = regexp.MustCompile(`\b(pawl_[a-z0-9_]+)`)
	describes  = regexp.MustCompile(`fqName: "([^"]+)"`)
	alertName  = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	runbookAt  = regexp.MustCompile(`(?m)^ +runbook: deploy/runbook\.md#(\w+)$`)
	entryOf    = regexp.MustCompile(`(?m)^## (\w+)$`)
)

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exposed are the names of all metrics that a server may show, but for those of Go and the process.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	noted := noting{prometheus.NewRegistry(), map[prometheus.Collector]bool{metrics.New(nil, metrics.Options{}): true}}
	newSeen(noted, newConns(listener, 1))
	for c := range noted.collectors {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			names[describes.FindStringSubmatch(d.String())[1]] = true
		}
	}
	return names
}

// noting remembers what is registered.
type noting struct {
	prometheus.Registerer
	collectors map[prometheus.Collector]bool
}

func (n noting) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		n.collectors[c] = true
	}
	n.Registerer.MustRegister(list...)
}

func TestU6_DashboardAndRulesNameMetricsThatExist(t *testing.T) {
	names := exposed(t)
	if len(names) < 35 {
		t.Fatalf("only %v", slices.Sorted(maps.Keys(names)))
	}
	for _, file := range []string{"grafana-dashboard.json", "alerts.yaml", "runbook.md"} {
		text := deployed(t, file)
		found := metricName.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range found {
			plain := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				plain = strings.TrimSuffix(plain, suffix)
			}
			if !names[name] && !names[plain] && name != "pawl_worker_" {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
	if !json.Valid([]byte(deployed(t, "grafana-dashboard.json"))) {
		t.Error("the dashboard is no JSON")
	}
}

func TestU6_EveryAlertHasARunbookEntry(t *testing.T) {
	names := func(re *regexp.Regexp, file string) (list []string) {
		for _, m := range re.FindAllStringSubmatch(deployed(t, file), -1) {
			list = append(list, strings.ToLower(m[1]))
		}
		return list
	}
	alerts, links, entries := names(alertName, "alerts.yaml"), names(runbookAt, "alerts.yaml"), names(entryOf, "runbook.md")
	if len(alerts) < 10 || !slices.Equal(alerts, links) || !slices.Equal(alerts, entries) {
		t.Errorf("alerts %v\nlink to %v\nthe runbook has %v", alerts, links, entries)
	}
}

func TestU6_NamesOfRequestsFollowTheConventions(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	registry := prometheus.NewPedanticRegistry()
	s := newSeen(registry, newConns(listener, 1))
	s.requests.WithLabelValues("GET", "200").Inc()
	s.refused.WithLabelValues("forbidden").Inc()
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// Only a stream is ended when the stop begins.
func TestU1_AStreamIsKnownByItsType(t *testing.T) {
	for kind, want := range map[string]bool{
		"text/event-stream": true, "text/event-stream; charset=utf-8": true, "application/json": false, "": false,
	} {
		for name, send := range map[string]func(*answer){
			"header": func(a *answer) { a.WriteHeader(200) }, "body": func(a *answer) { _, _ = a.Write([]byte("x")) }, "flush": (*answer).Flush,
		} {
			ended := false
			a := &answer{ResponseWriter: httptest.NewRecorder(), endless: func() { ended = true }}
			if kind != "" {
				a.Header().Set("Content-Type", kind)
			}
			if send(a); ended != want {
				t.Errorf("%s, %s: %v", kind, name, ended)
			}
		}
	}
}
