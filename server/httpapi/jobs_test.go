package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

func TestU2_AJobIsEnqueuedRunAndRead(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	pawl.HandleRawResult(s.e, "sum", func(ctx context.Context, j *pawl.Job[pawl.Raw]) (pawl.Raw, error) {
		j.Log().Info("adding")
		return pawl.Raw(`{"sum":5}`), nil
	})
	s.run()
	var r httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"sum","args":{"a":2,"b":3},"tags":["x"],"headers":{"trace":"7"}}`, 201, &r)
	var j httpapi.Job
	s.call("GET", "/api/v1/jobs/"+r.ID+"?wait=30s", "", 200, &j)
	if j.State != "done" || string(j.Args.JSON) != `{"a":2,"b":3}` || string(j.Result.JSON) != `{"sum":5}` || j.Headers["trace"] != "7" {
		t.Errorf("%+v", j)
	}
	var logs httpapi.LogList
	s.call("GET", "/api/v1/jobs/"+r.ID+"/logs", "", 200, &logs)
	if len(logs.Lines) != 1 || !strings.Contains(logs.Lines[0].Text, "adding") {
		t.Errorf("%+v", logs)
	}
	var why pawl.Why
	s.call("GET", "/api/v1/jobs/"+r.ID+"/why", "", 200, &why)
	if why.Code != "ended" {
		t.Errorf("%+v", why)
	}
}

func TestU2_ARepeatedRequestEnqueuesOnce(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	var first, second httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"k"}`, 201, &first, "Idempotency-Key", "order-7")
	s.call("POST", "/api/v1/jobs", `{"kind":"k"}`, 201, &second, "Idempotency-Key", "order-7")
	if first.ID != second.ID || first.Duplicate || !second.Duplicate {
		t.Errorf("%+v, %+v", first, second)
	}
	id := pawl.ID{}.String()[:35] + "1"
	s.call("POST", "/api/v1/jobs", `{"kind":"k","id":"`+id+`"}`, 201, &first)
	s.call("POST", "/api/v1/jobs", `{"kind":"k","id":"`+id+`"}`, 201, &second)
	if first.ID != id || second.ID != id || !second.Duplicate {
		t.Errorf("%+v, %+v", first, second)
	}
	s.refused("POST", "/api/v1/jobs", `{"kind":"k","unique":{}}`, 422, "invalid", "Idempotency-Key", "Idempotency-Key", "x")
}

func TestU2_ListsArePagedByACursor(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	for n := range 25 {
		s.call("POST", "/api/v1/jobs", fmt.Sprintf(`{"kind":"mail.send","args":%d,"queue":"mail","in":"%dm"}`, n, n), 201, nil)
	}
	seen := map[string]bool{}
	pages, next := 0, ""
	for pages == 0 || next != "" {
		var l httpapi.JobList
		s.call("GET", "/api/v1/jobs?queue=mail&state=waiting&kind=mail.*&order=due&limit=10&after="+next, "", 200, &l)
		for _, j := range l.Jobs {
			if j.Args != nil || seen[j.ID] {
				t.Errorf("%+v", j)
			}
			seen[j.ID] = true
		}
		next = l.Next
		pages++
	}
	if len(seen) != 25 || pages != 3 {
		t.Errorf("%d jobs on %d pages", len(seen), pages)
	}
	var n httpapi.JobCount
	s.call("GET", "/api/v1/jobs/count?queue=mail&cap=10", "", 200, &n)
	if n.Jobs != 10 || !n.More {
		t.Errorf("%+v", n)
	}
}

func TestU2_JobsAreChanged(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var r httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"k","in":"1h"}`, 201, &r)
	job := "/api/v1/jobs/" + r.ID
	var c httpapi.Changed
	for _, step := range []struct{ method, path, body, want string }{
		{"POST", "/requeue", `{"queue":"mail"}`, "changed"}, {"POST", "/requeue", `{"queue":"mail"}`, "same"},
		{"POST", "/priority", `{"priority":2}`, "changed"}, {"POST", "/run", "", "changed"},
		{"POST", "/cancel", "", "changed"}, {"POST", "/cancel", "", "ended"}, {"POST", "/retry", "", "changed"}, {"DELETE", "", "", "changed"},
	} {
		if s.call(step.method, job+step.path, step.body, 200, &c, "Pawl-Note", "because"); c.Change != step.want {
			t.Errorf("%s: %s, want %s", step.path, c.Change, step.want)
		}
	}
	s.refused("POST", job+"/cancel", "", 404, "not-found", r.ID)
	audit, err := s.e.Audit(t.Context(), pawl.AuditFilter{}, pawl.AuditPage{Limit: 100})
	if err != nil || len(audit.Entries) < 6 {
		t.Fatalf("%+v, %v", audit, err)
	}
	for _, a := range audit.Entries {
		if a.By != "ann" || a.Note != "because" {
			t.Errorf("%+v", a)
		}
	}
}

func TestU2_BadInputNamesTheFieldAndTheBound(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	for _, c := range []struct{ method, path, body, detail string }{
		{"POST", "/jobs", `{"kind":""}`, "kind"},
		{"POST", "/jobs", `{"kind":"a b"}`, "kind"},
		{"POST", "/jobs", `{"kind":"k","priority":12}`, "priority"},
		{"POST", "/jobs", `{"kind":"k","in":"soon"}`, "in"},
		{"POST", "/jobs", `{"kind":"k","in":"1m","at":"2030-01-01T00:00:00Z"}`, "at"},
		{"POST", "/jobs", `{"kind":"k","at":"9999-12-31T23:59:59-23:59"}`, "9999"}, // the year 10000 in UTC
		{"POST", "/jobs", `{"kind":"k","colour":"red"}`, "colour"},
		{"GET", "/jobs?limit=5000", "", "limit"},
		{"GET", "/jobs?stat=dead", "", "stat"},
		{"GET", "/jobs?state=asleep", "", "state"},
		{"GET", "/jobs?after=xyz", "", "after"},
		{"GET", "/jobs/7", "", "id"},
		{"GET", "/jobs/" + pawl.ID{}.String() + "?wait=2h", "", "wait"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	s.refused("GET", "/api/v1/jobs/"+pawl.ID{}.String(), "", 404, "not-found", "")
	s.refused("PATCH", "/api/v1/jobs", "{}", 405, "method-not-allowed", "GET, POST")
	s.refused("GET", "/api/v1/nothing", "", 404, "not-found", "/api/v1/nothing")
	s.refused("POST", "/api/v1/jobs", `{"kind":`, 400, "bad-request", "")
	s.refused("POST", "/api/v1/jobs", `{"kind":"k","args":"`+strings.Repeat("x", 3<<20)+`"}`, 413, "too-large", "")
}

// A field under another spelling is none: {"KIND": …} is refused by its name, at any depth, and users' own values keep theirs.
func TestU2_NamesOfFieldsAreExact(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	for _, c := range []struct{ method, path, body, detail string }{
		{"POST", "/jobs", `{"KIND":"k"}`, "KIND: unexpected property, its name is kind"},
		{"POST", "/jobs", `{"kind":"k","Kind":"other"}`, "Kind: unexpected property, its name is kind"},
		{"POST", "/jobs", `{"kind":"k","\u212aey":"x"}`, "its name is key"}, // the sign of kelvin
		{"PATCH", "/queues/q/settings", `{"Total":5}`, "Total: unexpected property, its name is total"},
		{"PATCH", "/limits/l/settings", `{"per_Second":5}`, "per_Second: unexpected property, its name is per_second"},
		{"POST", "/schedules", `{"name":"s","CRON":"@daily","kind":"k"}`, "CRON: unexpected property, its name is cron"},
		{"POST", "/operations", `{"verb":"cancel","filter":{"Queue":"none"}}`, "filter.Queue: unexpected property, its name is queue"},
		{"POST", "/workers/1/notes", `{"notes":[{"id":"` + pawl.ID{}.String() + `","run":1,"progress":{"Done":1,"total":2}}]}`,
			"notes[0].progress.Done: unexpected"},
		{"GET", "/jobs?State=dead", "", "State"},
		{"GET", "/queues?LIMIT=1", "", "LIMIT"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	var l httpapi.JobList
	if s.call("GET", "/api/v1/jobs", "", 200, &l); len(l.Jobs) != 0 {
		t.Errorf("%d jobs came of what was refused", len(l.Jobs))
	}
	s.call("POST", "/api/v1/jobs", `{"kind":"k","args":{"Kind":1,"KIND":{"Queue":2}},"tags":["Kind"]}`, 201, nil)
	if s.call("GET", "/api/v1/jobs", "", 200, &l); len(l.Jobs) != 1 {
		t.Errorf("%d jobs", len(l.Jobs))
	}
}
