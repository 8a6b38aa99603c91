package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

func TestU2_ALimitsSettingsAreSetOverWhatCodeDeclares(t *testing.T) {
	s := working(t, func(c *pawl.Config) {
		c.Limits = []pawl.Limit{
			{Name: "github", Burst: 100, PerSecond: 1.5},
			{Name: "tenants", Queue: "mail", PerKey: true, Concurrent: 2, Weights: map[string]int{"acme": 3}},
		}
	})
	var l httpapi.LimitList
	s.call("GET", "/api/v1/limits", "", 200, &l)
	if len(l.Limits) != 2 || l.Limits[0].Name != "github" || l.Limits[1].Name != "tenants" {
		t.Fatalf("%+v", l)
	}
	if h := l.Limits[1].Holds; h.Queue != "mail" || !*h.PerKey || *h.Concurrent != 2 || h.Weights["acme"] != 3 ||
		h.Burst != nil || h.Ordered != nil {
		t.Errorf("%+v", h)
	}
	const settings = "/api/v1/limits/github/settings"
	var x httpapi.Limit
	s.call("PATCH", settings, `{"per_second":0.5,"burst":7}`, 200, &x, "Pawl-Note", "because")
	if *x.Holds.PerSecond != 0.5 || *x.Holds.Burst != 7 || *x.Declared.Burst != 100 || x.Owner != "billing" || x.By != "ann" ||
		!slices.Equal(x.Overridden, []string{"burst", "per_second"}) {
		t.Errorf("%+v", x)
	}
	s.audited("github", "set limit", "burst")
	x = httpapi.Limit{}
	if s.call("DELETE", settings+"?field=burst", "", 200, &x); *x.Holds.Burst != 100 || *x.Holds.PerSecond != 0.5 {
		t.Errorf("%+v", x)
	}
	x = httpapi.Limit{}
	if s.call("DELETE", settings, "", 200, &x); *x.Holds.PerSecond != 1.5 || len(x.Overridden) != 0 {
		t.Errorf("%+v", x)
	}
	s.call("PATCH", "/api/v1/limits/tenants/settings", `{"concurrent":1,"ordered":true,"weights":{"acme":5,"x":2}}`, 200, &x)
	if !*x.Holds.Ordered || x.Holds.Weights["acme"] != 5 || x.Holds.Weights["x"] != 2 {
		t.Errorf("%+v", x)
	}
}

func TestU2_TokensOfALimitAreAcquiredAndDrained(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	const limit = "/api/v1/limits/github"
	s.call("PATCH", limit+"/settings", `{"per_second":0.01,"burst":3}`, 200, nil)
	var x httpapi.Acquired
	if s.call("POST", limit+"/acquire", `{}`, 200, &x); x.Tokens != 1 {
		t.Errorf("%+v", x)
	}
	if s.call("POST", limit+"/acquire", `{"tokens":2,"wait":"30s"}`, 200, &x); x.Tokens != 2 {
		t.Errorf("%+v", x)
	}
	s.refused("POST", limit+"/acquire", `{"tokens":1,"wait":"30s"}`, 429, "rate-limited", "github")
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+limit+"/acquire", strings.NewReader(`{"tokens":1,"wait":"30s"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	late, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	late.Body.Close()
	if after := late.Header.Get("Retry-After"); late.StatusCode != 429 || len(after) < 2 {
		t.Errorf("%s, Retry-After %q", late.Status, after)
	}
	s.refused("POST", limit+"/acquire", `{"tokens":4}`, 422, "invalid", "burst")

	s.call("PATCH", "/api/v1/limits/other/settings", `{"per_second":1000,"burst":1000}`, 200, nil)
	s.call("POST", "/api/v1/limits/other/drain", `{"for":"1h"}`, 204, nil, "Pawl-Note", "because")
	s.audited("other", "drain limit", "")
	s.refused("POST", "/api/v1/limits/other/acquire", `{"wait":"20s"}`, 429, "rate-limited", "other")
	s.call("POST", "/api/v1/limits/other/undrain", "", 204, nil, "Pawl-Note", "because")
	s.audited("other", "undrain limit", "")
	s.call("POST", "/api/v1/limits/other/acquire", `{"wait":"20s"}`, 200, nil)
	var gone httpapi.Limit
	if s.call("DELETE", "/api/v1/limits/other/settings", "", 200, &gone); gone.Name != "other" || gone.Holds.PerSecond != nil {
		t.Errorf("%+v", gone)
	}
	s.refused("GET", "/api/v1/limits/other", "", 404, "not-found", "other")

	s.call("PATCH", "/api/v1/limits/tenants/settings", `{"per_second":0.01,"burst":1,"per_key":true,"queue":"mail"}`, 200, nil)
	for _, key := range []string{"acme", "other"} { // each has its own
		s.call("POST", "/api/v1/limits/tenants/acquire", `{"key":"`+key+`"}`, 200, nil)
		s.refused("POST", "/api/v1/limits/tenants/acquire", `{"key":"`+key+`"}`, 429, "rate-limited", "tenants")
	}
}

func TestU2_BadInputAboutLimitsIsRefused(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	s.call("PATCH", "/api/v1/limits/l/settings", `{"per_second":5}`, 200, nil)
	s.call("PATCH", "/api/v1/limits/keyed/settings", `{"per_second":5,"per_key":true,"queue":"mail"}`, 200, nil)
	for _, c := range []struct{ method, path, body, detail string }{
		{"PATCH", "/limits/l/settings", `{}`, "must set a field"},
		{"PATCH", "/limits/l/settings", `{"per_second":0}`, "per_second"},
		{"PATCH", "/limits/l/settings", `{"per_second":-0.5}`, "PerSecond"},
		{"PATCH", "/limits/l/settings", `{"per_second":1e300}`, "per_second"},
		{"PATCH", "/limits/l/settings", `{"burst":0}`, "burst"},
		{"PATCH", "/limits/l/settings", `{"concurrent":0}`, "concurrent"},
		{"PATCH", "/limits/l/settings", `{"concurrent":5}`, "Concurrent"},
		{"PATCH", "/limits/l/settings", `{"per_key":false}`, "per_key"},
		{"PATCH", "/limits/l/settings", `{"weights":{"a":0}}`, "eights"},
		{"PATCH", "/limits/l/settings", `{"weights":null}`, "weights"},
		{"PATCH", "/limits/new/settings", `{"burst":5}`, "Burst"},
		{"PATCH", "/limits/a%20b/settings", `{"burst":5}`, "limit"},
		{"DELETE", "/limits/l/settings?field=colour", "", "field"},
		{"POST", "/limits/l/drain", `{"for":"25h"}`, "24h"},
		{"POST", "/limits/l/drain", `{"for":"0s"}`, "more than 0"},
		{"POST", "/limits/l/drain", `{"for":"1m","key":"k"}`, "per key"},
		{"POST", "/limits/keyed/drain", `{"for":"1m"}`, "per key"},
		{"POST", "/limits/keyed/acquire", `{}`, "per key"},
		{"POST", "/limits/l/acquire", `{"key":"k"}`, "per key"},
		{"POST", "/limits/l/acquire", `{"tokens":0}`, "tokens"},
		{"POST", "/limits/l/acquire", `{"wait":"2m"}`, "wait"},
		{"POST", "/limits/l/acquire", `{"wait":"0s"}`, "wait"},
		{"GET", "/limits/a%20b", "", "limit"},
		{"GET", "/limits?after=xyz", "", "after"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"DELETE", "/settings", ""}, {"POST", "/drain", `{"for":"1m"}`}, {"POST", "/undrain", ""}, {"POST", "/acquire", `{}`},
	} {
		s.refused(c.method, "/api/v1/limits/nobody"+c.path, c.body, 404, "not-found", "nobody")
	}
}

// Tokens that are there are had, also after more of them were refused. It runs on both stores: these keep the bucket.
func TestJ17_FewTokensAreHadAfterManyWereRefused(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	s.call("PATCH", "/api/v1/limits/slow/settings", `{"per_second":0.001,"burst":3}`, 200, nil)
	s.call("POST", "/api/v1/limits/slow/acquire", `{"tokens":1}`, 200, nil)
	s.refused("POST", "/api/v1/limits/slow/acquire", `{"tokens":3,"wait":"1s"}`, 429, "rate-limited", "3 of limit slow come in 16m")
	s.call("POST", "/api/v1/limits/slow/acquire", `{"tokens":2}`, 200, nil)
	s.refused("POST", "/api/v1/limits/slow/acquire", `{"tokens":1,"wait":"1s"}`, 429, "rate-limited", "1 of limit slow come in")
}
