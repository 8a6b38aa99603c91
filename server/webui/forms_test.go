package webui_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/webui"
)

// reader is a browser without JavaScript.
type reader struct {
	t      *testing.T
	c      *control
	client *http.Client
}

func (c *control) reader() *reader {
	c.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := &http.Transport{}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &reader{c.t, c, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// do sends a request; headers come in pairs.
func (r *reader) do(method, path string, form url.Values, headers ...string) (*http.Response, string) {
	r.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.c.url+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	answer, err := r.client.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer, string(text)
}

// get wants a page.
func (r *reader) get(path string) string {
	r.t.Helper()
	answer, text := r.do("GET", path, nil)
	if answer.StatusCode != 200 {
		r.t.Fatalf("GET %s: %s %.300s", path, answer.Status, text)
	}
	return text
}

var hiddenToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func tokenOf(t *testing.T, text string) string {
	t.Helper()
	m := hiddenToken.FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the page has no form with a token")
	}
	return m[1]
}

func TestU7_PagesReadAndPostWithoutJavaScript(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	for path, wants := range map[string][]string{
		"/":                        {"things need someone", "legacy-sync", "<svg class=\"plot h3\"", "report.nightly"},
		"/jobs":                    {"no live worker serves queue legacy-sync", "order.charge"},
		"/jobs/dead":               {"invoice.render", "8 dead jobs"},
		"/jobs/" + s.dead.String(): {"attempt 3 of 3 failed", "tax profile has no VAT id", "vat_id"},
	} {
		text := r.get(path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
	path := "/jobs/" + s.dead.String()
	token := tokenOf(t, r.get(path))
	answer, _ := r.do("POST", "/do/job/retry", url.Values{"csrf": {token}, "id": {s.dead.String()}, "back": {path}})
	if answer.StatusCode != 303 || answer.Header.Get("Location") != path {
		t.Fatalf("%s to %s", answer.Status, answer.Header.Get("Location"))
	}
	if text := r.get(path); !strings.Contains(text, "Retried <bdi>") && !strings.Contains(text, "Retried invoice.render") {
		t.Error("the page after it does not say what was done")
	}
	_, text := r.do("GET", "/ask/job/delete?id="+s.dead.String()+"&back="+path, nil)
	if !strings.Contains(text, "for good?") {
		t.Errorf("%.500s", text)
	}
	answer, _ = r.do("POST", "/do/job/delete", url.Values{"csrf": {tokenOf(t, text)}, "id": {s.dead.String()}, "back": {path}, "note": {"n"}})
	if answer.StatusCode != 303 {
		t.Errorf("delete: %s", answer.Status)
	}
	for back, want := range map[string]string{"//evil.example/": "/", "https://evil.example/": "/", "/jobs": "/jobs", "/\\evil": "/",
		"": "/"} {
		answer, _ = r.do("POST", "/do/job/retry", url.Values{"csrf": {token}, "id": {s.charged.String()}, "back": {back}})
		if got := answer.Header.Get("Location"); got != want {
			t.Errorf("back to %q: %s %s, want %s", back, answer.Status, got, want)
		}
	}
}

func TestU7_AFormOfAnotherPageIsRefused(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	token := tokenOf(t, r.get("/jobs/"+s.dead.String()))
	form := func(token string) url.Values { return url.Values{"csrf": {token}, "id": {s.dead.String()}} }
	other := s.reader()
	foreign := tokenOf(t, other.get("/jobs/"+s.dead.String()))
	for name, c := range map[string]struct {
		token   string
		headers []string
	}{
		"no token": {"", nil}, "a token of another browser": {foreign, nil}, "nonsense": {"x", nil}, "zeros": {strings.Repeat("A", 86), nil},
		"a foreign origin": {token, []string{"Origin", "https://evil.example"}}, "another port": {token,
			[]string{"Origin", "http://127.0.0.1:1"}}, "no origin": {token, []string{"Origin", "null"}},
		"a foreign site": {token, []string{"Sec-Fetch-Site", "cross-site"}}, "the same site": {token, []string{"Sec-Fetch-Site", "same-site"}},
	} {
		answer, text := r.do("POST", "/do/job/delete", form(c.token), c.headers...)
		if answer.StatusCode != 403 || !strings.Contains(text, "was not sent by a page of this server") {
			t.Errorf("%s: %s %.200s", name, answer.Status, text)
		}
	}
	if _, err := s.e.Get(t.Context(), s.dead); err != nil {
		t.Fatal(err)
	}
	if answer, _ := r.do("GET", "/do/job/delete?id="+s.dead.String(), nil); answer.StatusCode < 400 {
		t.Errorf("a link may change nothing: %s", answer.Status)
	}
	answer, _ := r.do("POST", "/do/job/delete", form(""), "Pawl-CSRF", token, "HX-Request", "true", "Origin", strings.TrimSuffix(s.url, "/"))
	if answer.StatusCode != 200 {
		t.Errorf("its own: %s", answer.Status)
	}
}

func TestU7_NothingIsInlineAndNothingComesFromElsewhere(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	inline := regexp.MustCompile(`(?i)<[^>]+\s(style|on[a-z]+|hx-on[^=]*)\s*=|<script(?:\s[^>]*)?>[^<]|javascript:|<style`)
	elsewhere := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`)
	for _, path := range []string{"/", "/jobs", "/jobs/dead", "/jobs/retries", "/jobs/" + s.dead.String(), "/jobs/" + s.running.String(),
		"/find", "/find?q=x", "/nowhere", "/ask/job/delete?id=" + s.dead.String()} {
		answer, text := r.do("GET", path, nil, "Accept", "text/html")
		if got := answer.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: policy %q", path, got)
		}
		if bad := inline.FindString(text); bad != "" {
			t.Errorf("%s has inline %q", path, bad)
		}
		if bad := elsewhere.FindString(text); bad != "" {
			t.Errorf("%s asks elsewhere: %q", path, bad)
		}
	}
}

func TestU7_AViewerSeesNoButtonItMayNotUse(t *testing.T) {
	s := openShop(t, as(auth.Viewer))
	r := s.reader()
	for _, path := range []string{"/", "/jobs", "/jobs/dead", "/jobs/retries", "/jobs/" + s.dead.String(), "/jobs/" + s.running.String(),
		"/jobs/" + s.paused.String()} {
		text := r.get(path)
		for _, bad := range []string{"/do/", "/ask/", "<input class=\"cb\"", "id=\"bulk\""} {
			if strings.Contains(text, bad) {
				t.Errorf("%s shows a viewer %s", path, bad)
			}
		}
	}
	admin := openShop(t)
	token := tokenOf(t, admin.reader().get("/jobs/"+admin.dead.String()))
	for _, path := range []string{"/do/job/retry", "/do/job/delete", "/do/jobs/delete", "/do/operation/stop"} {
		answer, text := r.do("POST", path, url.Values{"csrf": {token}, "id": {s.dead.String()}})
		if answer.StatusCode != 403 || !strings.Contains(text, "needs the role operator") {
			t.Errorf("%s: %s", path, answer.Status)
		}
		answer, _ = r.do("GET", strings.Replace(path, "/do/", "/ask/", 1)+"?id="+s.dead.String(), nil)
		if answer.StatusCode != 403 {
			t.Errorf("asks %s: %s", path, answer.Status)
		}
	}
	if j, err := s.e.Get(t.Context(), s.dead); err != nil || j.State != pawl.StateDead {
		t.Errorf("%v %v", j.State, err)
	}
}

func TestU7_PayloadsAndLogsAreHiddenWhereTheyAre(t *testing.T) {
	s := openShop(t, func(s *setup) {
		s.who = auth.Func(func(*http.Request) (auth.Identity, error) {
			return auth.Identity{Name: "v", Role: auth.Viewer, Hidden: true}, nil
		})
	})
	r := s.reader()
	for _, path := range []string{"/jobs", "/jobs/" + s.dead.String(), "/jobs/" + s.charged.String(), "/jobs?q=129.00",
		"/live/jobs/" + s.dead.String() + "/x"} {
		_, text := r.do("GET", path, nil)
		for _, secret := range []string{"129.00</span>", "48329</span>", "tax profile", "card charged", "{&#34;order"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q", path, secret)
			}
		}
	}
	if text := r.get("/jobs/" + s.dead.String()); !strings.Contains(text, "Arguments are hidden for viewers.") {
		t.Error("it does not say that arguments are hidden")
	}
	if text := r.get("/jobs?q=129.00&created=24h"); strings.Contains(text, "tr role=\"row\" id=") {
		t.Error("hidden arguments are found by their text")
	}
	if answer, _ := r.do("GET", "/jobs/"+s.dead.String()+"/args", nil); answer.StatusCode != 403 {
		t.Errorf("a download: %s", answer.Status)
	}
}

func TestU7_DownloadsAreExactAndNeverShown(t *testing.T) {
	s := openShop(t)
	answer, text := s.reader().do("GET", "/jobs/"+s.charged.String()+"/args", nil)
	if text != `{"order":48370,"amount":"129.00"}` || answer.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		!strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s %v", text, answer.Header)
	}
}

func TestU7_StaticFilesAreKeptForAYearByTheirHash(t *testing.T) {
	c := serve(t)
	r := c.reader()
	text := r.get("/")
	files := regexp.MustCompile(`(?:src|href)="(/static/[^"#]+)"`).FindAllStringSubmatch(text, -1)
	if len(files) < 5 {
		t.Fatalf("%v", files)
	}
	for _, f := range files {
		answer, _ := r.do("GET", f[1], nil, "Accept-Encoding", "gzip")
		if answer.StatusCode != 200 || answer.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			answer.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %s %v", f[1], answer.Status, answer.Header)
		}
	}
	if answer, _ := r.do("GET", "/static/000000000000/style.css", nil); answer.StatusCode != 404 {
		t.Errorf("another hash: %s", answer.Status)
	}
}

func TestU7_TheOverviewsFirstLoadIsSmall(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/")
	b.wait(`document.documentElement.dataset.charts === "ready"`)
	sizes := eval[map[string]int](b, `Object.fromEntries(
		[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
		.filter((e) => !e.name.includes("/live")).map((e) => [e.name.replace(/.*\//, "") || "page", e.transferSize]))`)
	total := 0
	for _, n := range sizes {
		total += n
	}
	if total > 100_000 {
		t.Errorf("%d bytes: %v", total, sizes)
	}
	t.Logf("%d bytes: %v", total, sizes)
}

func TestU7_ItIsMountedUnderAnyPath(t *testing.T) {
	s := openShop(t, func(s *setup) { s.options.Prefix = "/ops/pawl" })
	b := open(t, s.control, "/")
	b.has("#need", "legacy-sync")
	wrong := eval[[]string](b, `[...document.querySelectorAll("[href], [src], [action], [hx-get], [hx-post], [sse-connect]")].flatMap((e) =>
		["href", "src", "action", "hx-get", "hx-post", "sse-connect"].map((n) => e.getAttribute(n))
		.filter((v) => v && !v.replace(location.origin, "").startsWith("/ops/pawl/") && !v.startsWith("#")))`)
	if len(wrong) > 0 {
		t.Errorf("links that leave it: %v", wrong)
	}
	b.press("gd")
	b.has("h1", "Dead jobs")
	b.settled()
	b.press("j\r")
	b.has("#head", "Dead since")
	b.settled()
	b.press("r")
	b.has("#toasts", "Retried invoice.render")
	answer, err := http.Get(strings.TrimSuffix(s.url, "/ops/pawl") + "/ops/pawl")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.Request.URL.Path != "/ops/pawl/" {
		t.Errorf("%s", answer.Request.URL)
	}
}

func TestU7_StripPrefixMountsItToo(t *testing.T) {
	c := serve(t)
	h := http.StripPrefix("/x", webui.Handler(c.e, auth.Open("x"), webui.Options{Prefix: "/x"}))
	r, _ := http.NewRequest("GET", "/x/jobs", nil)
	w := &recorded{header: http.Header{}}
	h.ServeHTTP(w, r)
	if w.status != 200 || !strings.Contains(w.text.String(), `href="/x/jobs"`) {
		t.Errorf("%d %.300s", w.status, w.text.String())
	}
}

// recorded is an answer.
type recorded struct {
	header http.Header
	status int
	text   strings.Builder
}

func (w *recorded) Header() http.Header         { return w.header }
func (w *recorded) WriteHeader(status int)      { w.status = status }
func (w *recorded) Write(b []byte) (int, error) { return w.text.Write(b) }
