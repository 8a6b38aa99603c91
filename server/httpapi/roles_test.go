package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

// described is a route of the served OpenAPI document.
type described struct {
	Method, Path, Role, Summary, Tag string
}

// describedRoutes reads the routes of the document, by tag, path and method.
func describedRoutes(t *testing.T, s *served) (routes []described, kinds []string) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Summary     string   `json:"summary"`
			Description string   `json:"description"`
			Tags        []string `json:"tags"`
		} `json:"paths"`
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct {
						Kind struct {
							Enum []string `json:"enum"`
						} `json:"kind"`
					} `json:"properties"`
				} `json:"Problem"`
			} `json:"schemas"`
		} `json:"components"`
	}
	s.loose("/api/v1/openapi.json", &doc)
	for path, item := range doc.Paths {
		for method, op := range item {
			role := strings.TrimSuffix(strings.TrimPrefix(op.Description, "Needs the role "), ".")
			routes = append(routes, described{strings.ToUpper(method), strings.TrimPrefix(path, httpapi.Prefix), role, op.Summary, op.Tags[0]})
		}
	}
	slices.SortFunc(routes, func(x, y described) int {
		return strings.Compare(x.Tag+" "+x.Path+" "+x.Method, y.Tag+" "+y.Path+" "+y.Method)
	})
	return routes, doc.Components.Schemas.Problem.Properties.Kind.Enum
}

// ofOperators are the tags whose routes only read and change settings: none of them streams.
var ofOperators = []string{"queues", "pauses", "schedules", "limits", "workers", "settings", "upkeep", "topics", "cursors", "groups"}

func TestU2_ARouteIsForItsRole(t *testing.T) {
	s := serve(t, auth.Func(func(r *http.Request) (auth.Identity, error) {
		name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if name == "" {
			return auth.Identity{}, auth.ErrNoToken
		}
		role, err := auth.ParseRole(name)
		if err != nil {
			return auth.Identity{}, auth.ErrBadToken
		}
		return auth.Identity{Name: name, Role: role}, nil
	}))
	want := map[string]auth.Role{
		"POST /freeze": auth.Admin, "POST /unfreeze": auth.Admin, "POST /upkeep/{round}": auth.Admin, "PUT /upkeep/{round}": auth.Admin,
	}
	routes, _ := describedRoutes(t, s)
	asked := 0
	for _, route := range routes {
		if !slices.Contains(ofOperators, route.Tag) {
			continue
		}
		asked++
		needs, ok := want[route.Method+" "+route.Path]
		if !ok {
			if needs = auth.Operator; route.Method == http.MethodGet {
				needs = auth.Viewer
			}
		}
		if route.Role != needs.String() {
			t.Errorf("%s %s: the document says %s, want %s", route.Method, route.Path, route.Role, needs)
		}
		path := httpapi.Prefix + strings.NewReplacer("{name}", "nobody", "{round}", "gates").Replace(route.Path)
		s.refused(route.Method, path, "", 401, "unauthorized", "token")
		s.refused(route.Method, path, "", 401, "unauthorized", "token", "Authorization", "Bearer wrong")
		for role := auth.Viewer; role <= auth.Admin; role++ {
			status := s.status(route.Method, path, "", "Authorization", "Bearer "+role.String())
			if refused := status == http.StatusForbidden; refused != (role < needs) || status == http.StatusUnauthorized || status >= 500 {
				t.Errorf("%s %s as %s: %d", route.Method, route.Path, role, status)
			}
		}
	}
	if asked < 35 {
		t.Errorf("only %d routes", asked)
	}
}

func TestU2_StrangeNamesAreNoFaultOfTheServer(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	routes, _ := describedRoutes(t, s)
	for _, name := range []string{
		"%00", "%ff%fe", "%2F", "..%2F..%2Fetc", "%20", "*", "%3F", "a%3Eb", "a,b", "%E2%80%AE", "%F0%9F%92%A9",
		"'%22--", "[", "%5C", strings.Repeat("x", 128),
		strings.Repeat("%C3%A9", 128),
	} {
		for _, route := range routes {
			if !slices.Contains(ofOperators, route.Tag) || !strings.Contains(route.Path, "{name}") {
				continue
			}
			path := httpapi.Prefix + strings.Replace(route.Path, "{name}", name, 1)
			for _, body := range []string{"", "{}", "[]", "null", `{"for":"1m"}`, `{"total":5}`, `{"per_second":5}`, `{"cron":"@daily"}`, `{"to":"end"}`, `{"all":true}`} {
				if status := s.status(route.Method, path, body, "Content-Type", "application/json"); status >= 500 {
					t.Errorf("%s %s %s: %d", route.Method, path, body, status)
				}
			}
		}
	}
}

// status sends a request, and tells what is answered.
func (s *served) status(method, path, body string, headers ...string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// loose reads an answer of which only some fields matter.
func (s *served) loose(path string, out any) {
	s.t.Helper()
	var all json.RawMessage
	s.call("GET", path, "", 200, &all)
	if err := json.Unmarshal(all, out); err != nil {
		s.t.Fatal(err)
	}
}
