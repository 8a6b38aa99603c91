package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/serve"
)

const draft = `{"kind":"k"}`

// none wants that nothing was enqueued.
func (s *served) none() {
	s.t.Helper()
	if n, err := s.e.Count(s.t.Context(), pawl.Filter{}, 0); err != nil || n.Jobs != 0 {
		s.t.Errorf("%d jobs, %v", n.Jobs, err)
	}
}

func port(url string) string { return url[strings.LastIndex(url, ":")+1:] }

func TestU5_AForeignHostIsRefused(t *testing.T) {
	s := start(t)
	p := port(s.url)
	for _, host := range []string{"localhost:" + p, "LocalHost:" + p, "127.0.0.1:" + p, "[::1]:" + p} {
		s.want(200, "GET", "/healthz", "", "Host", host)
		s.want(200, "GET", "/api/v1/jobs", "", "Host", host)
	}
	// A name that somebody else has made to lead here.
	for _, host := range []string{
		"evil.example:" + p, "evil.example", "localhost", "127.0.0.1", "localhost:1", "localhost.evil.example:" + p,
		"127.0.0.1.nip.example:" + p, "[::1]", "127.0.0.2:" + p, "0.0.0.0:" + p,
	} {
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/session", "/api/v1/jobs", "/api/v1/openapi.json"} {
			s.want(403, "GET", path, "", "Host", host)
		}
		s.want(403, "POST", "/api/v1/jobs", draft, "Host", host, "Origin", "http://"+host)
	}
	s.none()
}

func TestU5_NamesFromOutsideAreThoseConfigured(t *testing.T) {
	people := newPeople(t, auth.Operator)
	outside := func(hosts ...string) *served {
		s := start(t, people.file, func(c *serve.Config) { c.Listen, c.Hosts = "0.0.0.0:0", hosts })
		s.url = strings.Replace(s.url, "0.0.0.0", "127.0.0.1", 1)
		return s
	}
	named := outside("Pawl.Example.org", "10.0.0.7:8443")
	call := func(s *served, status int, host string) {
		t.Helper()
		s.want(status, "GET", "/api/v1/jobs", "", append(people.as(auth.Operator), "Host", host)...)
	}
	for host, status := range map[string]int{
		"pawl.example.org": 200, "10.0.0.7:8443": 200, "localhost:" + port(named.url): 200,
		"pawl.example.org:81": 403, "evil.example": 403, "10.0.0.7": 403,
	} {
		call(named, status, host)
	}
	named.want(200, "GET", "/healthz", "", "Host", "10.1.2.3:7340") // a probe
	named.want(200, "GET", "/readyz", "", "Host", "10.1.2.3:7340")
	call(outside(), 200, "any.example")
}

func TestU5_AForeignOriginIsRefused(t *testing.T) {
	s := start(t)
	host := s.url[len("http://"):]
	for _, headers := range [][]string{
		{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "http://localhost:1"}, {"Origin", "http://" + host + ".evil.example"},
		{"Origin", "file://" + host}, {"Origin", "http://evil.example#" + host}, {"Origin", ""},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site", "Origin", s.url},
	} {
		s.want(403, "POST", "/api/v1/jobs", draft, headers...)
		s.want(403, "DELETE", "/api/v1/jobs/00000000-0000-7000-8000-000000000001", "", headers...)
		s.want(403, "DELETE", "/session", "", headers...)
		s.want(200, "GET", "/api/v1/jobs", "", headers...) // the browser keeps the answer from the page
	}
	s.none()
	s.want(201, "POST", "/api/v1/jobs", draft, "Origin", s.url, "Sec-Fetch-Site", "same-origin")
	s.want(201, "POST", "/api/v1/jobs", draft, "Sec-Fetch-Site", "none")
	answer, _ := s.do("OPTIONS", "/api/v1/jobs", "", "Origin", "http://evil.example", "Access-Control-Request-Method", "DELETE")
	if answer.StatusCode < 400 || answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight is answered with %s, %v", answer.Status, answer.Header)
	}
}

func TestU5_AFormPostIsRefused(t *testing.T) {
	s := start(t)
	for _, kind := range []string{
		"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "Text/Plain;charset=utf-8", "", "nonsense;;",
	} {
		s.want(415, "POST", "/api/v1/jobs", draft, "Content-Type", kind)
		s.want(415, "POST", "/session", `{"token":"x"}`, "Content-Type", kind)
	}
	s.none()
	s.want(201, "POST", "/api/v1/jobs", draft, "Content-Type", "application/json; charset=utf-8")
}

func TestU5_AnswersCarrySecurityHeaders(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/", "/healthz", "/metrics", "/session", "/api/v1/jobs", "/nothing"} {
		answer, _ := s.do("GET", path, "")
		referrer := "no-referrer"
		if path == "/" || path == "/nothing" { // a form of a page has to say where it comes from, to us and nobody else
			referrer = "same-origin"
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": referrer,
			"Cache-Control": "no-store", "Content-Security-Policy": "frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := answer.Header.Get(name); !strings.Contains(got, want) {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

// Routes of somebody else are behind the same gate, and know who calls.
func TestU5_MoreRoutesAreBehindTheGate(t *testing.T) {
	p := newPeople(t, auth.Viewer, auth.Operator)
	s := start(t, p.file, func(c *serve.Config) {
		c.Routes = []serve.Route{{Pattern: "POST /demo/do", Role: auth.Operator, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, auth.From(r.Context()).Name)
		})}}
	})
	s.want(401, "POST", "/demo/do", "")
	s.want(403, "POST", "/demo/do", "", p.as(auth.Viewer)...)
	s.want(403, "POST", "/demo/do", "", append(p.as(auth.Operator), "Origin", "https://elsewhere.example")...)
	s.want(404, "GET", "/demo/do", "", p.as(auth.Operator)...)
	if name := s.want(200, "POST", "/demo/do", "", p.as(auth.Operator)...); name != "the-operator" {
		t.Errorf("called by %q", name)
	}
}
