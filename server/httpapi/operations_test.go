package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

// as lets everybody in with the role that the header Role names.
func as() auth.Auth {
	return auth.Func(func(r *http.Request) (auth.Identity, error) {
		role, err := auth.ParseRole(r.Header.Get("Role"))
		if err != nil {
			return auth.Identity{}, auth.ErrNoToken
		}
		return auth.Identity{Name: role.String(), Role: role}, nil
	})
}

func (s *served) enqueue(n int, draft string) []string {
	s.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		var r httpapi.Receipt
		s.call("POST", "/api/v1/jobs", draft, 201, &r)
		ids[i] = r.ID
	}
	return ids
}

func TestU2_ABulkOperationGoesThroughAllThatMatches(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	s.enqueue(12, `{"kind":"mail.send","queue":"mail","in":"1h"}`)
	s.enqueue(3, `{"kind":"other","queue":"mail","in":"1h"}`)

	var foreseen httpapi.Operation
	s.call("POST", "/api/v1/operations", `{"verb":"cancel","filter":{"kind":"mail.*"},"dry_run":true}`, 200, &foreseen)
	if foreseen.ID != "" || foreseen.State != "" || foreseen.Counts.Changed != 12 {
		t.Errorf("%+v", foreseen)
	}
	var n httpapi.JobCount
	if s.call("GET", "/api/v1/jobs/count?state=waiting", "", 200, &n); n.Jobs != 15 {
		t.Errorf("a dry run left %d waiting", n.Jobs)
	}

	var op httpapi.Operation
	s.call("POST", "/api/v1/operations", `{"verb":"cancel","filter":{"kind":"mail.*","queue":"mail"},"most":10}`, 200, &op, "Pawl-Note", "stop it")
	s.call("GET", "/api/v1/operations/"+op.ID+"?wait=30s", "", 200, &op)
	if op.State != "done" || op.Counts.Changed != 10 || op.Counts.Looked != 10 || op.By != "ann" || op.Note != "stop it" || op.Most != 10 ||
		op.Filter.Kind != "mail.*" || len(op.Filter.States) != 4 || op.Ended.IsZero() {
		t.Errorf("%+v", op)
	}
	if s.call("GET", "/api/v1/jobs/count?state=cancelled", "", 200, &n); n.Jobs != 10 {
		t.Errorf("%d cancelled", n.Jobs)
	}
	for _, step := range []struct {
		body, count string
		want        int
	}{
		{`{"verb":"retry","filter":{"kind":"mail.send"}}`, "state=waiting&kind=mail.send", 12},
		{`{"verb":"set-priority","priority":2,"filter":{"kind":"mail.send"}}`, "state=waiting", 15},
		{`{"verb":"requeue","queue":"default","filter":{"queue":"mail"}}`, "queue=default", 15},
		{`{"verb":"delete","filter":{"state":["waiting"],"kind":"other"}}`, "kind=other", 0},
	} {
		var op httpapi.Operation
		s.call("POST", "/api/v1/operations", step.body, 200, &op)
		s.call("GET", "/api/v1/operations/"+op.ID+"?wait=30s", "", 200, &op)
		if s.call("GET", "/api/v1/jobs/count?"+step.count, "", 200, &n); op.State != "done" || n.Jobs != step.want {
			t.Errorf("%s: %d jobs, want %d: %+v", step.body, n.Jobs, step.want, op)
		}
	}
	var j httpapi.JobList
	if s.call("GET", "/api/v1/jobs?limit=1", "", 200, &j); j.Jobs[0].Priority != 2 || j.Jobs[0].Queue != "default" {
		t.Errorf("%+v", j)
	}
}

func TestU2_OperationsAreListedAndCancelled(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	s.enqueue(3, `{"kind":"k","in":"1h"}`)
	var ids []string
	for range 5 {
		var op httpapi.Operation
		s.call("POST", "/api/v1/operations", `{"verb":"cancel","filter":{},"pace":1}`, 200, &op)
		ids = append(ids, op.ID)
	}
	var op httpapi.Operation
	if s.call("POST", "/api/v1/operations/"+ids[0]+"/cancel", "", 200, &op); op.State != "cancelled" {
		t.Errorf("%+v", op)
	}
	if s.call("GET", "/api/v1/operations/"+ids[1]+"?wait=1ms", "", 200, &op); op.State != "open" || op.Pace != 1 {
		t.Errorf("%+v", op)
	}
	var seen []string
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		var l httpapi.OperationList
		s.call("GET", "/api/v1/operations?limit=2&after="+next, "", 200, &l)
		for _, o := range l.Operations {
			seen = append([]string{o.ID}, seen...)
		}
		next = l.Next
	}
	if fmt.Sprint(seen) != fmt.Sprint(ids) {
		t.Errorf("%v, want %v", seen, ids)
	}
	missing := "/api/v1/operations/" + pawl.ID{}.String()
	s.refused("GET", missing, "", 404, "not-found", "")
	s.refused("GET", missing+"?wait=1s", "", 404, "not-found", "")
	s.refused("POST", missing+"/cancel", "", 404, "not-found", "")
	for _, c := range []struct{ method, path, body, detail string }{
		{"POST", "", `{"verb":"explode","filter":{}}`, "verb"},
		{"POST", "", `{"verb":"delete","filter":{}}`, "States"},
		{"POST", "", `{"verb":"retry","filter":{"state":["done"]}}`, "States"},
		{"POST", "", `{"verb":"requeue","filter":{}}`, "queue"},
		{"POST", "", `{"verb":"cancel","queue":"mail","filter":{}}`, "filter.queue"},
		{"POST", "", `{"verb":"cancel","priority":3,"filter":{}}`, "priority"},
		{"POST", "", `{"verb":"set-priority","filter":{}}`, "priority"},
		{"POST", "", `{"verb":"cancel"}`, "filter"},
		{"POST", "", `{"verb":"cancel","filter":{"quue":"x"}}`, "quue"},
		{"POST", "", `{"verb":"cancel","filter":{},"most":-1}`, "most"},
		{"GET", "?after=e30", "", "after"},
		{"GET", "?limit=101", "", "limit"},
		{"GET", "/7", "", "id"},
		{"GET", "/" + ids[0] + "?wait=1h", "", "wait"},
		{"POST", "/7/cancel", "", "id"},
	} {
		s.refused(c.method, "/api/v1/operations"+c.path, c.body, 422, "invalid", c.detail)
	}
}

func TestU2_ReadersChangeNothing(t *testing.T) {
	s := serve(t, as())
	for _, c := range []struct{ method, path, body, role string }{
		{"POST", "/operations", `{"verb":"cancel","filter":{}}`, "operator"},
		{"POST", "/operations/" + pawl.ID{}.String() + "/cancel", "", "operator"},
		{"POST", "/check", `{"repair":true}`, "admin"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 401, "unauthorized", "token")
		s.refused(c.method, "/api/v1"+c.path, c.body, 403, "forbidden", c.role, "Role", "viewer")
	}
	s.refused("POST", "/api/v1/check", `{"repair":true}`, 403, "forbidden", "operator", "Role", "operator")
	s.call("POST", "/api/v1/check", `{}`, 200, nil, "Role", "viewer")
	s.call("POST", "/api/v1/check", `{"repair":true}`, 200, nil, "Role", "admin")
	s.call("POST", "/api/v1/operations", `{"verb":"cancel","filter":{}}`, 200, nil, "Role", "operator")
	for _, path := range []string{"/operations", "/audit", "/metrics/series", "/failures"} {
		s.call("GET", "/api/v1"+path, "", 200, nil, "Role", "viewer")
	}
	s.refused("POST", "/api/v1/why", `{"ids":["`+pawl.ID{}.String()+`"]}`, 401, "unauthorized", "token")
}
