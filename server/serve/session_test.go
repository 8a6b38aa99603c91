package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/serve"
)

// login begins a session.
func (s *served) login(secret string) (cookie *http.Cookie, who serve.Session) {
	s.t.Helper()
	answer, text := s.do("POST", "/session", `{"token":"`+secret+`"}`)
	if err := json.Unmarshal([]byte(text), &who); err != nil || answer.StatusCode != 201 || len(answer.Cookies()) != 1 {
		s.t.Fatalf("%s: %s", answer.Status, text)
	}
	return answer.Cookies()[0], who
}

func TestU5_ABrowserHasASession(t *testing.T) {
	people := newPeople(t, auth.Operator, auth.Viewer)
	s := start(t, people.file)
	cookie, who := s.login(people.secrets["operator"])
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge < 3600 ||
		who.Name != "the-operator" || who.Role != "operator" {
		t.Errorf("%v, %+v", cookie, who)
	}
	with := func(more ...string) []string {
		return append([]string{"Cookie", cookie.Name + "=" + cookie.Value}, more...)
	}
	s.want(200, "GET", "/api/v1/jobs", "", with()...)
	s.want(403, "POST", "/api/v1/jobs", draft, with()...)
	s.want(403, "POST", "/api/v1/jobs", draft, with(auth.CSRFHeader, "x")...)
	s.want(403, "POST", "/api/v1/jobs", draft, with(auth.CSRFHeader, who.CSRF, "Origin", "http://evil.example")...)
	s.none()
	s.want(201, "POST", "/api/v1/jobs", draft, with(auth.CSRFHeader, who.CSRF)...)
	if text := s.want(200, "GET", "/session", "", with()...); !strings.Contains(text, who.CSRF) {
		t.Errorf("a page that is loaded again has no CSRF token: %s", text)
	}
	s.want(403, "DELETE", "/session", "", with()...)
	s.want(204, "DELETE", "/session", "", with(auth.CSRFHeader, who.CSRF)...)
	s.want(401, "GET", "/api/v1/jobs", "", with()...)

	// One whose token is taken out ends.
	cookie, _ = s.login(people.secrets["viewer"])
	s.want(200, "GET", "/metrics", "", with()...)
	if err := os.WriteFile(people.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(401, "GET", "/metrics", "", with()...)
	s.want(401, "POST", "/session", `{"token":"`+people.secrets["viewer"]+`"}`)
	if log := s.log.String(); strings.Contains(log, people.secrets["viewer"]) || strings.Contains(log, cookie.Value) {
		t.Error("the log has a secret")
	}
}

func TestU5_BadLoginsAreRefusedAndLoggedOnce(t *testing.T) {
	people := newPeople(t, auth.Operator)
	s := start(t, people.file)
	wrong, _ := auth.NewToken()
	for range 5 {
		s.want(401, "POST", "/session", `{"token":"`+wrong+`"}`)
		s.want(401, "GET", "/api/v1/jobs", "", "Authorization", "Bearer "+wrong)
	}
	for body, status := range map[string]int{
		`{"token":""}`: 401, `{}`: 422, `{"TOKEN":"x"}`: 422, `{"token":7}`: 422, `{"tok":"x"}`: 422, `[`: 422,
		`{"token":"` + strings.Repeat("x", 10_000) + `"}`: 422,
	} {
		s.want(status, "POST", "/session", body)
	}
	s.want(415, "POST", "/session", "token="+people.secrets["operator"], "Content-Type", "application/x-www-form-urlencoded")
	s.want(403, "POST", "/session", `{"token":"`+people.secrets["operator"]+`"}`, "Origin", "http://evil.example")
	if log := s.log.String(); strings.Count(log, "a login was refused") != 1 || strings.Contains(log, wrong) {
		t.Error(log)
	}
}

func TestU5_ATokenIsHeldToItsRate(t *testing.T) {
	people := newPeople(t, auth.Operator, auth.Viewer)
	s := start(t, people.file, func(c *serve.Config) { c.Rate = 1 })
	counts := func(headers ...string) map[int]int {
		seen := map[int]int{}
		for range 20 {
			answer, _ := s.do("GET", "/session", "", headers...)
			seen[answer.StatusCode]++
			if answer.StatusCode == 429 && answer.Header.Get("Retry-After") == "" {
				t.Error("it does not say when to come again")
			}
		}
		return seen
	}
	for name, seen := range map[string]map[int]int{
		"operator": counts(people.as(auth.Operator)...), "viewer": counts(people.as(auth.Viewer)...), "nobody": counts(),
	} {
		if seen[429] == 0 || seen[200]+seen[401] < 2 { // each has a bucket of its own
			t.Errorf("%s: %v", name, seen)
		}
	}
}

func TestU5_ABrowserSignsInOnAPage(t *testing.T) {
	people := newPeople(t, auth.Operator)
	s, operatorToken := start(t, people.file), people.secrets["operator"]
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client.Jar = jar
	form := func(path string, status int, values url.Values) (*http.Response, string) {
		t.Helper()
		answer, text := s.do("POST", path, values.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", s.url)
		if answer.StatusCode != status {
			t.Fatalf("POST %s: %s %.300s", path, answer.Status, text)
		}
		return answer, text
	}
	answer, _ := s.do("GET", "/jobs", "")
	if to := answer.Header.Get("Location"); answer.StatusCode != 303 || to != "/login?back=%2Fjobs" {
		t.Fatalf("%s to %s", answer.Status, to)
	}
	_, text := s.do("GET", "/login?back=%2Fjobs", "")
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(text)[1]
	form("/login", 403, url.Values{"token": {operatorToken}})
	_, text = form("/login", 401, url.Values{"csrf": {csrf}, "token": {"not-a-token-9"}, "back": {"/jobs"}})
	if strings.Contains(text, "not-a-token-9") {
		t.Error("the page repeats the token")
	}
	answer, _ = form("/login", 303, url.Values{"csrf": {csrf}, "token": {operatorToken}, "back": {"/jobs"}})
	if to := answer.Header.Get("Location"); to != "/jobs" {
		t.Errorf("to %s", to)
	}
	answer, text = s.do("GET", "/jobs", "")
	if answer.StatusCode != 200 || !strings.Contains(text, "Sign out") || !strings.Contains(text, "operator") {
		t.Errorf("%s %.300s", answer.Status, text)
	}
	r, err := s.e.Enqueue(t.Context(), pawl.RawArgs("nobody.does", []byte("1")))
	if err != nil {
		t.Fatal(err)
	}
	form("/do/job/cancel", 403, url.Values{"id": {r.ID.String()}})
	form("/do/job/cancel", 303, url.Values{"id": {r.ID.String()}, "csrf": {csrf}})
	if j, err := s.e.Get(t.Context(), r.ID); err != nil || j.State != pawl.StateCancelled {
		t.Errorf("%v %v", j.State, err)
	}
	form("/logout", 303, url.Values{"csrf": {csrf}})
	if answer, _ = s.do("GET", "/jobs", ""); answer.StatusCode != 303 {
		t.Errorf("after the end of the session: %s", answer.Status)
	}
}
