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

func nightly(c *pawl.Config) {
	c.Schedules = []pawl.Schedule{{
		Name: "nightly", Cron: "0 3 * * *", Zone: "Europe/Berlin", Job: pawl.RawArgs("report", []byte(`{"of": "yesterday"}`)),
		Options: []pawl.EnqueueOption{pawl.Queue("mail"), pawl.Needs("gpu"), pawl.Headers(map[string]string{"trace": "7"})},
	}}
}

func TestU2_ASchedulesSettingsAreSetOverWhatCodeDeclares(t *testing.T) {
	s := working(t, nightly)
	const path = "/api/v1/schedules/nightly"
	var x httpapi.Schedule
	s.call("GET", path, "", 200, &x)
	if x.Paused || x.Next.IsZero() || x.Owner != "billing" || x.Version != "v1" || x.Holds.Cron != "0 3 * * *" || x.Holds.Zone != "Europe/Berlin" ||
		x.Holds.Kind != "report" || string(x.Holds.Args.JSON) != `{"of":"yesterday"}` || x.Holds.Queue != "mail" || x.Holds.Headers["trace"] != "7" {
		t.Errorf("%+v", x)
	}
	var l httpapi.ScheduleList
	if s.call("GET", "/api/v1/schedules", "", 200, &l); len(l.Schedules) != 1 || l.Schedules[0].Name != "nightly" || l.Schedules[0].Holds.Args != nil {
		t.Errorf("%+v", l)
	}
	x = httpapi.Schedule{}
	s.call("PATCH", path+"/settings", `{"cron":"30 4 * * *","args":{"of":"today"},"needs":["cpu"],"skip_if_active":true,"timeout":"90s"}`,
		200, &x, "Pawl-Note", "because")
	if x.Holds.Cron != "30 4 * * *" || string(x.Holds.Args.JSON) != `{"of":"today"}` || !slices.Equal(x.Holds.Needs, []string{"cpu"}) ||
		!*x.Holds.SkipIfActive || x.Holds.Timeout != "1m30s" || x.Declared.Cron != "0 3 * * *" || x.By != "ann" || x.Note != "because" {
		t.Errorf("%+v", x)
	}
	if want := []string{"args", "cron", "needs", "skip_if_active", "timeout"}; !slices.Equal(slices.Sorted(slices.Values(x.Overridden)), want) {
		t.Errorf("%v, want %v", x.Overridden, want)
	}
	s.audited("nightly", "set schedule", "cron")
	x = httpapi.Schedule{}
	s.call("DELETE", path+"/settings?field=args,needs", "", 200, &x)
	if string(x.Holds.Args.JSON) != `{"of":"yesterday"}` || !slices.Equal(x.Holds.Needs, []string{"gpu"}) || x.Holds.Cron != "30 4 * * *" {
		t.Errorf("%+v", x)
	}
	x = httpapi.Schedule{}
	if s.call("DELETE", path+"/settings", "", 200, &x); len(x.Overridden) != 0 || x.Holds.Cron != "0 3 * * *" {
		t.Errorf("%+v", x)
	}
	s.refused("DELETE", path, "", 422, "invalid", "declared by code")
}

func TestU2_AScheduleIsCreatedPausedTriggeredAndDeleted(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var x httpapi.Schedule
	s.call("POST", "/api/v1/schedules",
		`{"name":"hourly","cron":"@hourly","kind":"tidy","args":[1, 2],"queue":"mail","priority":2,"attempts":3,"timeout":"5m",`+
			`"tags":["a"],"skip_if_active":true,"catch_up":"none"}`,
		201, &x, "Pawl-Note", "because")
	if h := x.Holds; x.Name != "hourly" ||
		h.Kind != "tidy" || string(h.Args.JSON) != `[1,2]` || h.Queue != "mail" || h.Priority != 2 || h.Attempts != 3 ||
		h.Timeout != "5m0s" || !*h.SkipIfActive || h.CatchUp != "none" || x.Owner != "" || x.By != "ann" || x.Next.IsZero() {
		t.Errorf("%+v", x)
	}
	s.audited("hourly", "set schedule", "tidy")
	const path = "/api/v1/schedules/hourly"
	x = httpapi.Schedule{}
	if s.call("POST", path+"/pause", "", 200, &x, "Pawl-Note", "because"); !x.Paused || !x.Next.IsZero() {
		t.Errorf("%+v", x)
	}
	s.audited("hourly", "pause schedule", "paused")
	var first, second httpapi.Receipt
	s.call("POST", path+"/trigger", "", 201, &first, "Pawl-Note", "because")
	s.call("POST", path+"/trigger", "", 201, &second, "Pawl-Note", "because")
	if first.Duplicate || !second.Duplicate || first.ID != second.ID {
		t.Errorf("%+v, %+v", first, second)
	}
	s.audited("hourly", "trigger schedule", "")
	var j httpapi.Job
	if s.call("GET", "/api/v1/jobs/"+first.ID, "", 200, &j); j.Kind != "tidy" || j.Queue != "mail" || j.Priority != 2 || string(j.Args.JSON) != `[1,2]` {
		t.Errorf("%+v", j)
	}
	x = httpapi.Schedule{}
	if s.call("POST", path+"/resume", "", 200, &x); x.Paused || x.Next.IsZero() {
		t.Errorf("%+v", x)
	}
	s.refused("DELETE", path+"/settings", "", 422, "invalid", "Delete")
	s.refused("POST", "/api/v1/schedules", `{"name":"hourly","cron":"@hourly","kind":"tidy"}`, 422, "invalid", "there already")
	s.call("DELETE", path, "", 204, nil)
	s.refused("GET", path, "", 404, "not-found", "hourly")
}

func TestU2_AScheduleWithoutArgumentsEnqueuesNull(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	s.call("POST", "/api/v1/schedules", `{"name":"n","cron":"@hourly","kind":"k"}`, 201, nil)
	enqueues := func(want string) {
		t.Helper()
		var r httpapi.Receipt
		s.call("POST", "/api/v1/schedules/n/trigger", "", 201, &r)
		var j httpapi.Job
		if s.call("GET", "/api/v1/jobs/"+r.ID, "", 200, &j); j.Args == nil || string(j.Args.JSON) != want {
			t.Errorf("%+v, want %s", j.Args, want)
		}
	}
	enqueues("null")
	s.call("PATCH", "/api/v1/schedules/n/settings", `{"args":7}`, 200, nil)
	enqueues("7")
	s.call("PATCH", "/api/v1/schedules/n/settings", `{"args":null}`, 200, nil)
	enqueues("null")
}

func TestU2_ASchedulesPayloadIsHidden(t *testing.T) {
	who := auth.Func(func(r *http.Request) (auth.Identity, error) {
		return auth.Identity{Name: "guest", Role: auth.Admin, Hidden: r.Header.Get("Hidden") != ""}, nil
	})
	s := serve(t, who)
	s.call("POST", "/api/v1/schedules", `{"name":"n","cron":"@hourly","kind":"k","args":"geheim","headers":{"h":"geheim"}}`, 201, nil)
	for _, path := range []string{"/api/v1/schedules/n", "/api/v1/schedules", "/api/v1/settings"} {
		var seen map[string]any
		s.call("GET", path, "", 200, &seen, "Hidden", "yes")
		if text := strings.ToLower(mustJSON(t, seen)); strings.Contains(text, "geheim") {
			t.Errorf("%s: %s", path, text)
		}
	}
	var x httpapi.Schedule
	if s.call("GET", "/api/v1/schedules/n", "", 200, &x); string(x.Holds.Args.JSON) != `"geheim"` || x.Holds.Headers["h"] != "geheim" {
		t.Errorf("%+v", x)
	}
}

func TestU2_BadInputAboutSchedulesIsRefused(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	s.call("POST", "/api/v1/schedules", `{"name":"n","cron":"@hourly","kind":"k"}`, 201, nil)
	for _, c := range []struct{ method, path, body, detail string }{
		{"POST", "/schedules", `{"name":"m","cron":"@hourly"}`, "kind"},
		{"POST", "/schedules", `{"name":"m","kind":"k"}`, "cron"},
		{"POST", "/schedules", `{"name":"a b","cron":"@hourly","kind":"k"}`, "schedule"},
		{"POST", "/schedules", `{"name":"m","cron":"61 * * * *","kind":"k"}`, "61"},
		{"POST", "/schedules", `{"name":"m","cron":"@hourly","zone":"Europe/Atlantis","kind":"k"}`, "Atlantis"},
		{"POST", "/schedules", `{"name":"m","cron":"@hourly","kind":"k","timeout":"none"}`, "timeout"},
		{"POST", "/schedules", `{"name":"m","cron":"@hourly","kind":"k","args":"` + strings.Repeat("x", 70<<10) + `"}`, "65536"},
		{"POST", "/schedules", `{"name":"m","cron":"@hourly","kind":"k","skip_if_active":true,"unique":{}}`, "SkipIfActive"},
		{"PATCH", "/schedules/n/settings", `{}`, "must set a field"},
		{"PATCH", "/schedules/n/settings", `{"cron":"nonsense"}`, "nonsense"},
		{"PATCH", "/schedules/n/settings", `{"priority":12}`, "priority"},
		{"PATCH", "/schedules/n/settings", `{"tags":[]}`, "tags"},
		{"PATCH", "/schedules/n/settings", `{"cron":"@daily","tags":null}`, "tags"},
		{"PATCH", "/schedules/n/settings", `{"paused":true}`, "paused"},
		{"PATCH", "/schedules/n/settings", `{"catch_up":"some"}`, "catch_up"},
		{"DELETE", "/schedules/n/settings?field=colour", "", "field"},
		{"GET", "/schedules/a%20b", "", "schedule"},
		{"GET", "/schedules?after=xyz", "", "after"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"DELETE", "", ""}, {"PATCH", "/settings", `{"cron":"@daily"}`}, {"DELETE", "/settings", ""},
		{"POST", "/pause", ""}, {"POST", "/resume", ""}, {"POST", "/trigger", ""},
	} {
		s.refused(c.method, "/api/v1/schedules/nobody"+c.path, c.body, 404, "not-found", "nobody")
	}
}
