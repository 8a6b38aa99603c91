package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

func TestU2_WhyPutsJobsWithOneCauseTogether(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	later := s.enqueue(3, `{"kind":"k","in":"1h"}`)
	alone := s.enqueue(1, `{"kind":"k","queue":"nobody"}`)
	ids := append(slices.Clone(alone), later...)
	ids = append(ids, pawl.ID{}.String())
	var g httpapi.WhyGroups
	s.call("POST", "/api/v1/why", `{"ids":["`+strings.Join(ids, `","`)+`"]}`, 200, &g)
	if len(g.Groups) != 2 || g.Groups[0].Why.Code != pawl.WhyScheduled || fmt.Sprint(g.Groups[0].Jobs) != fmt.Sprint(later) ||
		g.Groups[1].Why.Code != pawl.WhyNoWorker || fmt.Sprint(g.Groups[1].Jobs) != fmt.Sprint(alone) {
		t.Errorf("%+v", g)
	}
	s.call("POST", "/api/v1/why", `{"ids":["`+pawl.ID{}.String()+`"]}`, 200, &g)
	if len(g.Groups) != 0 {
		t.Errorf("%+v", g)
	}
	for body, detail := range map[string]string{
		`{"ids":[]}`: "ids", `{}`: "ids", `{"ids":["x"]}`: "ids", `{"ids":null}`: "ids",
		`{"ids":["` + strings.Repeat(pawl.ID{}.String()+`","`, 1000) + pawl.ID{}.String() + `"]}`: "1000",
	} {
		s.refused("POST", "/api/v1/why", body, 422, "invalid", detail)
	}
}

func TestU2_TheAuditLogIsPagedAndFiltered(t *testing.T) {
	s := serve(t, as())
	for n := range 7 {
		s.call("POST", "/api/v1/jobs", fmt.Sprintf(`{"kind":"k","args":%d,"in":"1h"}`, n), 201, nil, "Role", "operator")
	}
	var jobs httpapi.JobList
	s.call("GET", "/api/v1/jobs", "", 200, &jobs, "Role", "viewer")
	for i, j := range jobs.Jobs {
		role := "operator"
		if i == 6 {
			role = "admin"
		}
		s.call("POST", "/api/v1/jobs/"+j.ID+"/cancel", "", 200, nil, "Role", role, "Pawl-Note", fmt.Sprint("n", i))
	}
	var notes []string
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		var l httpapi.AuditList
		s.call("GET", "/api/v1/audit?limit=3&action=cancel&after="+next, "", 200, &l, "Role", "viewer")
		for _, e := range l.Entries {
			notes = append(notes, e.Note)
		}
		next = l.Next
	}
	if fmt.Sprint(notes) != "[n6 n5 n4 n3 n2 n1 n0]" {
		t.Error(notes)
	}
	var l httpapi.AuditList
	s.call("GET", "/api/v1/audit?by=admin", "", 200, &l, "Role", "viewer")
	if len(l.Entries) != 1 || l.Entries[0].Target != jobs.Jobs[6].ID || l.Entries[0].Action != "cancel" || l.Entries[0].Time.IsZero() {
		t.Errorf("%+v", l)
	}
	s.call("GET", "/api/v1/audit?target="+jobs.Jobs[2].ID, "", 200, &l, "Role", "viewer")
	if len(l.Entries) != 1 || l.Entries[0].Note != "n2" {
		t.Errorf("%+v", l)
	}
	for path, want := range map[string]int{
		"?until=" + url.QueryEscape(l.Entries[0].Time.Add(-time.Hour).Format(time.RFC3339)):                             0,
		"?since=" + url.QueryEscape(l.Entries[0].Time.Add(-time.Hour).Format(time.RFC3339)) + "&by=operator&limit=1000": 6,
	} {
		var l httpapi.AuditList
		if s.call("GET", "/api/v1/audit"+path, "", 200, &l, "Role", "viewer"); len(l.Entries) != want {
			t.Errorf("%s: %+v", path, l)
		}
	}
	for path, detail := range map[string]string{"?limit=0": "limit", "?after=%20": "after", "?since=yesterday": "since", "?who=me": "who"} {
		s.refused("GET", "/api/v1/audit"+path, "", 422, "invalid", detail, "Role", "viewer")
	}
}

func TestU2_ACheckCountsAndGoesOn(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	s.enqueue(5, `{"kind":"k","in":"1h"}`)
	var r httpapi.CheckReport
	s.call("POST", "/api/v1/check", `{"totals":true,"grace":"1h"}`, 200, &r)
	if r.Live != 5 || r.Found != 0 || len(r.Totals) != 1 || r.Totals[0] != (httpapi.StateCount{Queue: "default", State: "waiting", Jobs: 5}) || r.Next != "" {
		t.Errorf("%+v", r)
	}
	looked := int64(0)
	calls := 0
	for next := ""; calls == 0 || next != ""; calls++ {
		var r httpapi.CheckReport
		s.call("POST", "/api/v1/check", fmt.Sprintf(`{"rows":2,"after":%q}`, next), 200, &r)
		looked += r.Live
		next = r.Next
	}
	if looked != 5 || calls < 2 {
		t.Errorf("%d jobs in %d calls", looked, calls)
	}
	for body, detail := range map[string]string{
		`{"grace":"soon"}`: "grace", `{"grace":"9999h"}`: "720h", `{"rows":-1}`: "rows", `{"rows":0}`: "rows", `{"fix":true}`: "fix", `{"after":"nonsense"}`: "after",
	} {
		s.refused("POST", "/api/v1/check", body, 422, "invalid", detail)
	}
}

// A repair mends a job whose row says nothing that can be, and names who asked.
func TestU2_ARepairIsAudited(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	ids := s.enqueue(1, `{"kind":"k"}`)
	if _, err := s.e.DB().ExecContext(t.Context(), `UPDATE pawl_job SET state = 3, run = 1, worker = 77`); err != nil {
		t.Fatal(err)
	}
	var r httpapi.CheckReport
	if s.call("POST", "/api/v1/check", `{}`, 200, &r); r.Found == 0 || r.Faults[0].Job != ids[0] || r.Faults[0].Rule == "" {
		t.Fatalf("%+v", r)
	}
	if s.call("POST", "/api/v1/check", `{"repair":true}`, 200, &r); r.Repaired == 0 || r.Found != 0 || r.Repairs[0].Answer != "done" {
		t.Errorf("%+v", r)
	}
	var l httpapi.AuditList
	if s.call("GET", "/api/v1/audit?action=repair", "", 200, &l); len(l.Entries) == 0 || l.Entries[0].By != "ann" {
		t.Errorf("%+v", l)
	}
}

func TestU2_SeriesAndFailuresTellWhatJobsCameTo(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	pawl.HandleRawResult(s.e, "good", func(ctx context.Context, j *pawl.Job[pawl.Raw]) (pawl.Raw, error) { return nil, nil })
	pawl.HandleRawResult(s.e, "bad", func(ctx context.Context, j *pawl.Job[pawl.Raw]) (pawl.Raw, error) {
		return nil, pawl.Dead(errors.New("mailbox full"))
	})
	good := s.enqueue(3, `{"kind":"good"}`)
	bad := s.enqueue(2, `{"kind":"bad","key":"acme","queue":"mail"}`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.e.Run(ctx) }()
	for _, id := range append(good, bad...) {
		s.call("GET", "/api/v1/jobs/"+id+"?wait=30s", "", 200, nil)
	}
	stop()
	if err := <-ended; err != nil { // it has handed over what it measured
		t.Fatal(err)
	}
	span := "from=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)) + "&to=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	var l httpapi.SeriesList
	s.call("GET", "/api/v1/metrics/series?"+span, "", 200, &l)
	if len(l.Series) != 2 || l.Series[0].Kind != "good" || l.Series[1].Queue != "mail" || l.Series[0].Points[0].Counts["done"] != 3 ||
		l.Series[1].Points[0].Counts["dead"] != 2 || l.Series[0].Points[0].RunTime.Count != 3 {
		t.Fatalf("%+v", l)
	}
	if d, err := time.ParseDuration(l.Series[0].Points[0].TotalTime.P99); err != nil || d <= 0 {
		t.Errorf("%v, %v", d, err)
	}
	l = httpapi.SeriesList{}
	s.call("GET", "/api/v1/metrics/series?total=true&"+span, "", 200, &l)
	if len(l.Series) != 1 || l.Series[0].Kind != "" || len(l.Series[0].Points) != 1 || l.Series[0].Points[0].Counts["began"] != 5 {
		t.Errorf("%+v", l)
	}
	done := uint64(0)
	l = httpapi.SeriesList{}
	s.call("GET", "/api/v1/metrics/series?step=1m&queue=def*&kind=good&"+span, "", 200, &l)
	for _, p := range l.Series[0].Points {
		if done += p.Counts["done"]; p.Span != "1m0s" {
			t.Errorf("%+v", p)
		}
	}
	if len(l.Series) != 1 || done != 3 {
		t.Errorf("%+v", l)
	}
	var g httpapi.FailureGroups
	s.call("GET", "/api/v1/failures?"+span, "", 200, &g)
	if len(g.Groups) != 1 || g.Groups[0].Failed != 2 || g.Groups[0].Dead != 2 || g.Groups[0].Kind != "bad" || g.Groups[0].Keys[0] != "acme" ||
		!strings.Contains(g.Groups[0].Message, "mailbox full") || !slices.Contains(bad, g.Groups[0].Last.Job) {
		t.Errorf("%+v", g)
	}
	s.call("GET", "/api/v1/failures?kind=good&"+span, "", 200, &g)
	if len(g.Groups) != 0 {
		t.Errorf("%+v", g)
	}
	s.call("GET", "/api/v1/failures?range=1h&fingerprint=00", "", 200, &g)
	if len(g.Groups) != 0 || g.To.Sub(g.From) != time.Hour {
		t.Errorf("%+v", g)
	}
	for path, detail := range map[string]string{
		"/metrics/series?step=90s": "step", "/metrics/series?range=720h&step=1m": "steps", "/metrics/series?range=1h&from=2026-01-01T00:00:00Z": "from",
		"/metrics/series?from=2030-01-01T00:00:00Z&to=2029-01-01T00:00:00Z": "after", "/failures?range=a": "range", "/failures?limit=0": "limit",
		"/failures?from=1000-01-01T00:00:00Z": "later", "/metrics/series?total=maybe": "total",
		"/metrics/series?to=0000-01-01T00:00:00Z": "from",
	} {
		s.refused("GET", "/api/v1"+path, "", 422, "invalid", detail)
	}
}

// The audit log says what was changed of a schedule, and its arguments are a payload.
func TestU5_TheAuditLogHidesPayloads(t *testing.T) {
	s := serve(t, auth.Func(func(r *http.Request) (auth.Identity, error) {
		if r.Header.Get("Hidden") != "" {
			return auth.Identity{Name: "guest", Role: auth.Viewer, Hidden: true}, nil
		}
		return auth.Identity{Name: "ann", Role: auth.Admin}, nil
	}))
	const schedule = "/api/v1/schedules/n"
	s.call("POST", "/api/v1/schedules", `{"name":"n","cron":"@hourly","kind":"k","args":"geheim-1","headers":{"h":"geheim-2"}}`, 201, nil)
	s.call("PATCH", schedule+"/settings", `{"args":{"card":"geheim-3"},"headers":{"h":"geheim-4"}}`, 200, nil)
	s.call("PATCH", schedule+"/settings", `{"args":1}`, 200, nil)
	s.call("POST", schedule+"/pause", "", 200, nil)
	s.call("POST", schedule+"/trigger", "", 201, nil)
	s.call("DELETE", schedule, "", 204, nil)
	s.call("PATCH", "/api/v1/queues/mail/settings", `{"total":80}`, 200, nil)
	var r httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"k","args":"geheim-5","headers":{"h":"geheim-6"},"in":"1h"}`, 201, &r)
	for _, path := range []string{"/requeue", "/priority", "/cancel", "/retry"} {
		body := map[string]string{"/requeue": `{"queue":"mail"}`, "/priority": `{"priority":1}`}[path]
		s.call("POST", "/api/v1/jobs/"+r.ID+path, body, 200, nil)
	}
	s.call("POST", "/api/v1/operations", `{"verb":"cancel","filter":{"kind":"k"}}`, 200, nil)

	var seen, all httpapi.AuditList
	s.call("GET", "/api/v1/audit", "", 200, &seen, "Hidden", "yes")
	s.call("GET", "/api/v1/audit", "", 200, &all)
	if text := mustJSON(t, seen); strings.Contains(text, "geheim") {
		t.Errorf("a viewer sees %s", text)
	}
	text := mustJSON(t, all)
	for n := 1; n <= 4; n++ {
		if secret := fmt.Sprint("geheim-", n); !strings.Contains(text, secret) {
			t.Errorf("an admin does not see %s in %s", secret, text)
		}
	}
	if len(seen.Entries) != len(all.Entries) || len(all.Entries) < 11 {
		t.Errorf("%d entries, %d", len(seen.Entries), len(all.Entries))
	}
	for i, e := range seen.Entries {
		if e.Action == "set queue" && !strings.Contains(e.Detail, "80") || e.Action == "trigger schedule" && e.Detail == "" {
			t.Errorf("hidden without need: %+v", all.Entries[i])
		}
	}
}
