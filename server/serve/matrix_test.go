package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/server/serve"
)

// documented is a route, the role that the document says it needs, and the statuses that it says a call that passes may
// have. Problems are documented for all statuses at once ("default").
type documented struct {
	method, path string
	role         auth.Role
	statuses     []string
}

var (
	roleOf    = regexp.MustCompile(`^Needs the role (\w+)\.`)
	parameter = regexp.MustCompile(`\{[^}]*\}`)
)

// readRoutes are those of the OpenAPI document.
func readRoutes(t *testing.T, text string) (list []documented) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Description string
			Responses   map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			operation := document.Paths[path][method]
			m := roleOf.FindStringSubmatch(operation.Description)
			if m == nil {
				t.Errorf("%s %s: its description says no role: %q", method, path, operation.Description)
				continue
			}
			role, err := auth.ParseRole(m[1])
			if err != nil {
				t.Error(err)
				continue
			}
			list = append(list, documented{strings.ToUpper(method), path, role, slices.Sorted(maps.Keys(operation.Responses))})
		}
	}
	return list
}

// besides are the routes that the document of the API does not name.
var besides = []documented{
	{"GET", "/api/v1/openapi.json", auth.Nobody, []string{"200"}}, {"GET", "/api/v1/openapi.yaml", auth.Nobody, []string{"200"}},
	{"GET", "/api/v1/docs", auth.Nobody, []string{"200"}},
	{"GET", "/healthz", auth.Nobody, []string{"200"}}, {"GET", "/readyz", auth.Nobody, []string{"200"}},
	{"GET", "/metrics", auth.Viewer, []string{"200"}},
	{"GET", "/session", auth.Viewer, []string{"200"}}, {"DELETE", "/session", auth.Viewer, []string{"204"}},
	{"GET", "/debug/pprof/", auth.Admin, []string{"200"}}, {"GET", "/debug/pprof/cmdline", auth.Admin, []string{"200"}},
	{"GET", "/debug/pprof/heap", auth.Admin, []string{"200"}}, {"GET", "/debug/pprof/symbol", auth.Admin, []string{"200"}},
	{"GET", "/debug/pprof/trace?seconds=0.01", auth.Admin, []string{"200"}},
}

// allows says what is wrong with an answer to somebody who may: its status is one that the document lists, or it is a
// problem below 500 that has nothing to do with who calls.
func (d documented) allows(answer *http.Response, text string) string {
	if slices.Contains(d.statuses, strconv.Itoa(answer.StatusCode)) {
		return ""
	}
	var p httpapi.Problem
	switch {
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return "refused"
	case !slices.Contains(d.statuses, "default") || answer.StatusCode < 400 || answer.StatusCode >= 500:
		return fmt.Sprintf("not one of %v", d.statuses)
	case json.Unmarshal([]byte(text), &p) != nil || p.Status != answer.StatusCode || p.Kind == "":
		return "no problem"
	}
	return ""
}

// fill puts something into the places of a path.
func fill(path string) string {
	return parameter.ReplaceAllString(path, "00000000-0000-7000-8000-000000000001")
}

func TestU5_EveryRouteAsksForItsRole(t *testing.T) {
	people := newPeople(t, auth.Viewer, auth.Operator, auth.Admin)
	s := start(t, people.file, func(c *serve.Config) { c.Listen, c.Pprof = "0.0.0.0:0", true })
	s.url = strings.Replace(s.url, "0.0.0.0", "127.0.0.1", 1)
	routes := readRoutes(t, s.want(200, "GET", "/api/v1/openapi.json", ""))
	if len(routes) < 60 {
		t.Fatalf("only %d routes", len(routes))
	}
	routes = append(routes, besides...)

	// A token that was taken out of the file, and is the admin's otherwise.
	revoked, hash := auth.NewToken()
	before, err := os.ReadFile(people.path)
	if err != nil {
		t.Fatal(err)
	}
	line := auth.Token{Name: "revoked", Role: auth.Admin, Hash: hash}.String()
	if err := os.WriteFile(people.path, []byte(string(before)+"\n"+line), 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(200, "GET", "/metrics", "", "Authorization", "Bearer "+revoked)
	if err := os.WriteFile(people.path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	wrong, _ := auth.NewToken()

	strangers := []struct{ name, secret string }{{"no token", ""}, {"revoked", revoked}, {"wrong", wrong}}
	for _, route := range routes {
		path := fill(route.path)
		for _, who := range strangers {
			var headers []string
			if who.secret != "" {
				headers = []string{"Authorization", "Bearer " + who.secret}
			}
			if route.role == auth.Nobody {
				s.want(200, route.method, path, "", headers...)
				continue
			}
			s.turnedAway(401, "unauthorized", route.method, path, "", headers...)
		}
		for role := auth.Viewer; role <= auth.Admin; role++ {
			if role < route.role {
				s.turnedAway(403, "forbidden", route.method, path, "", people.as(role)...)
				continue
			}
			answer, text := s.do(route.method, path, "", people.as(role)...)
			if wrong := route.allows(answer, text); wrong != "" {
				t.Errorf("%s %s is for %s, and %s gets %s, %s: %s", route.method, path, route.role, role, answer.Status, wrong, text)
			}
		}
	}
	for _, who := range strangers { // a session is begun with a token, whatever the header says
		s.turnedAway(401, "unauthorized", "POST", "/session", `{"token":"`+who.secret+`"}`)
	}
	for role := auth.Viewer; role <= auth.Admin; role++ {
		s.want(201, "POST", "/session", `{"token":"`+people.secrets[role.String()]+`"}`)
	}
	for _, secret := range []string{revoked, wrong, people.secrets["admin"]} {
		if strings.Contains(s.log.String(), secret) {
			t.Error("the log has a token")
		}
	}
}

// turnedAway sends a request and wants exactly this refusal, and for a 401 the header that says what to show.
func (s *served) turnedAway(status int, kind, method, path, body string, headers ...string) {
	s.t.Helper()
	answer, text := s.do(method, path, body, headers...)
	var p httpapi.Problem
	_ = json.Unmarshal([]byte(text), &p) // of what is no problem nothing is as wanted
	asks := answer.Header.Get("WWW-Authenticate") != ""
	if answer.StatusCode != status || p.Kind != kind || p.Status != status || asks != (status == 401) {
		s.t.Errorf("%s %s: %s, want %d %s: %s", method, path, answer.Status, status, kind, text)
	}
}

func TestU5_OnLoopbackNobodyNeedsAToken(t *testing.T) {
	s := start(t, func(c *serve.Config) { c.Pprof = true })
	for _, route := range readRoutes(t, s.want(200, "GET", "/api/v1/openapi.json", "")) {
		answer, text := s.do(route.method, fill(route.path), "")
		if wrong := route.allows(answer, text); wrong != "" {
			t.Errorf("%s %s: %s, %s: %s", route.method, route.path, answer.Status, wrong, text)
		}
	}
	s.want(200, "GET", "/metrics", "")
	s.want(200, "GET", "/debug/pprof/cmdline", "")
	s.want(409, "POST", "/session", `{"token":"x"}`)
	if text := s.want(200, "GET", "/session", ""); !strings.Contains(text, `"name":"local","role":"admin"`) {
		t.Error(text)
	}
}

func TestU5_PprofOnlyByOption(t *testing.T) {
	s := start(t)
	s.want(404, "GET", "/debug/pprof/", "")
	s.want(404, "GET", "/debug/pprof/heap", "")
}

func TestU5_PayloadsAreHiddenFromViewers(t *testing.T) {
	people := newPeople(t, auth.Viewer, auth.Operator)
	open := start(t, people.file)
	hiding := start(t, people.file, func(c *serve.Config) { c.Engine, c.HidePayloads = open.e, true })
	local := start(t, func(c *serve.Config) { c.Engine, c.HidePayloads = open.e, true })
	var r struct{ ID string }
	text := open.want(201, "POST", "/api/v1/jobs", `{"kind":"k","args":"secret"}`, people.as(auth.Operator)...)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s       *served
		headers []string
		sees    bool
	}{
		"viewer":          {open, people.as(auth.Viewer), true},
		"viewer, hidden":  {hiding, people.as(auth.Viewer), false},
		"operator":        {hiding, people.as(auth.Operator), true},
		"without a token": {local, nil, false},
	} {
		if text := c.s.want(200, "GET", "/api/v1/jobs/"+r.ID, "", c.headers...); strings.Contains(text, "secret") != c.sees {
			t.Errorf("%s: %s", name, text)
		}
	}
}
