package serve_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/serve"
)

// documented is a route and the role that the document says it needs.
type documented struct {
	method, path string
	role         auth.Role
}

var (
	roleOf    = regexp.MustCompile(`^Needs the role (\w+)\.`)
	parameter = regexp.MustCompile(`\{[^}]*\}`)
)

// readRoutes are those of the OpenAPI document.
func readRoutes(t *testing.T, text string) (list []documented) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct{ Description string }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, operation := range document.Paths[path] {
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
			list = append(list, documented{strings.ToUpper(method), path, role})
		}
	}
	return list
}

// fill puts something into the places of a path.
func fill(path string) string {
	return parameter.ReplaceAllString(path, "00000000-0000-7000-8000-000000000001")
}

func TestU5_EveryRouteAsksForItsRole(t *testing.T) {
	people := newPeople(t, auth.Viewer, auth.Operator, auth.Admin)
	s := start(t, people.file, func(c *serve.Config) { c.Listen, c.Pprof = "0.0.0.0:0", true })
	s.url = strings.Replace(s.url, "[::]", "127.0.0.1", 1)
	routes := readRoutes(t, s.want(200, "GET", "/api/v1/openapi.json", ""))
	if len(routes) < 10 {
		t.Fatalf("only %d routes", len(routes))
	}
	routes = append(routes, documented{"GET", "/metrics", auth.Viewer}, documented{"GET", "/session", auth.Viewer},
		documented{"GET", "/debug/pprof/", auth.Admin}, documented{"GET", "/debug/pprof/cmdline", auth.Admin},
		documented{"GET", "/healthz", auth.Nobody}, documented{"GET", "/readyz", auth.Nobody})

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

	for _, route := range routes {
		path := fill(route.path)
		for name, headers := range map[string][]string{
			"no token": nil, "revoked": {"Authorization", "Bearer " + revoked}, "wrong": {"Authorization", "Bearer " + wrong},
		} {
			answer, text := s.do(route.method, path, "", headers...)
			want := http.StatusUnauthorized
			if route.role == auth.Nobody {
				want = http.StatusOK
			}
			if answer.StatusCode != want || want == http.StatusUnauthorized && answer.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s, %s: %s, want %d: %s", route.method, path, name, answer.Status, want, text)
			}
		}
		for role := auth.Viewer; role <= auth.Admin; role++ {
			answer, text := s.do(route.method, path, "", people.as(role)...)
			passed := answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusUnauthorized
			if passed != (role >= route.role) || answer.StatusCode >= 500 {
				t.Errorf("%s %s needs %s, and %s gets %s: %s", route.method, path, route.role, role, answer.Status, text)
			}
		}
	}
	for _, secret := range []string{revoked, wrong, people.secrets["admin"]} {
		if strings.Contains(s.log.String(), secret) {
			t.Error("the log has a token")
		}
	}
}

func TestU5_OnLoopbackNobodyNeedsAToken(t *testing.T) {
	s := start(t, func(c *serve.Config) { c.Pprof = true })
	for _, route := range readRoutes(t, s.want(200, "GET", "/api/v1/openapi.json", "")) {
		answer, text := s.do(route.method, fill(route.path), "")
		if answer.StatusCode == 401 || answer.StatusCode == 403 || answer.StatusCode >= 500 {
			t.Errorf("%s %s: %s: %s", route.method, route.path, answer.Status, text)
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
