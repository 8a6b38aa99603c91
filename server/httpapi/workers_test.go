package httpapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestU2_WorkersServicesAndSettingsAreRead(t *testing.T) {
	s := working(t, func(c *pawl.Config) { c.Queues["mail"] = pawl.QueueConfig{Workers: 5, Total: 3} })
	var l httpapi.WorkerList
	s.call("GET", "/api/v1/workers", "", 200, &l)
	if len(l.Workers) != 1 {
		t.Fatalf("%+v", l)
	}
	w := l.Workers[0]
	if w.ID == 0 || w.Label == "" || w.Process == 0 || w.Owner != "billing" || w.Version != "v1" || w.Started.IsZero() || w.Beat.IsZero() || w.Lost {
		t.Errorf("%+v", w)
	}
	if _, knows := w.Kinds["hello"]; !knows || !slices.Contains(w.Queues, httpapi.WorkerQueue{Name: "mail", Slots: 5, Total: 3}) {
		t.Errorf("%+v", w)
	}
	if d, err := time.ParseDuration(w.LostAfter); err != nil || d <= 0 {
		t.Errorf("%s: %v", w.LostAfter, err)
	}
	var services httpapi.ServiceList
	s.call("GET", "/api/v1/services", "", 200, &services)
	i := slices.IndexFunc(services.Services, func(s httpapi.Service) bool { return strings.HasSuffix(s.Name, "keeper/rescue") })
	if i < 0 || services.Services[i].State == "" || services.Services[i].Kind == "" {
		t.Errorf("%+v", services)
	}
	s.call("POST", "/api/v1/queues/mail/pause", "", 200, nil)
	s.call("PUT", "/api/v1/upkeep/purge", `{"every":"90s"}`, 200, nil)
	var all httpapi.Settings
	s.call("GET", "/api/v1/settings", "", 200, &all)
	j := slices.IndexFunc(all.Queues, func(q httpapi.EffectiveQueue) bool { return q.Name == "mail" })
	if all.Revision == 0 || j < 0 || *all.Queues[j].Holds.Total != 3 || len(all.Pauses) != 1 || all.Pauses[0].Name != "mail" || len(all.Upkeep) != 1 {
		t.Errorf("%+v", all)
	}
	if v := all.Versions; len(v) != 1 || v[0].Owner != "billing" || v[0].Version != "v1" || !v[0].Live || v[0].Seen.IsZero() {
		t.Errorf("%+v", v)
	}
}

func TestU2_LoadsOfWorkersAreReadAndPaged(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	st := s.e.Store()
	now, err := st.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := now.Truncate(time.Minute).Add(-20 * time.Minute)
	var rows []store.MetricRow
	for n := range 3 {
		load := metric.Load{Span: time.Minute, CPU: time.Duration(n+1) * time.Second, Memory: 4096, Goroutines: 12}
		load.Calls.Add(time.Millisecond)
		rows = append(rows, store.MetricRow{
			Class: metric.OfWorkers, Start: start.Add(time.Duration(n) * 5 * time.Minute), Name: "shop-worker-1", Data: load.Append(nil),
		})
	}
	if err := st.(store.Metrics).AddMetrics(t.Context(), store.MetricFlush{Source: job.NewID(), Number: 1, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var all []httpapi.WorkerLoad
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		var l httpapi.WorkerLoadList
		s.call("GET", "/api/v1/workers/loads?step=1m&limit=2&worker=shop-*&after="+next, "", 200, &l)
		all, next = append(all, l.Loads...), l.Next
	}
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	for n, l := range all {
		if l.Worker != "shop-worker-1" || !l.Start.Equal(rows[n].Start) || l.Span != "1m0s" || l.CPU != (time.Duration(n+1)*time.Second).String() ||
			l.Memory != 4096 || l.Goroutines != 12 || l.Calls != 1 || l.CallMean == "0s" || l.CallP99 == "0s" {
			t.Errorf("%+v", l)
		}
	}
	var none httpapi.WorkerLoadList
	if s.call("GET", "/api/v1/workers/loads?worker=other", "", 200, &none); len(none.Loads) != 0 {
		t.Errorf("%+v", none)
	}
}

func TestU2_WorkersThatDoNotRunAreNone(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	var none map[string]json.RawMessage
	for path, field := range map[string]string{
		"/workers": "workers", "/services": "services", "/workers/loads": "loads", "/limits": "limits", "/queues": "queues",
		"/schedules": "schedules", "/counts": "counts", "/pauses": "pauses",
	} {
		none = nil
		if s.call("GET", "/api/v1"+path, "", 200, &none); string(none[field]) != "[]" {
			t.Errorf("%s: %s is %s", path, field, none[field])
		}
	}
	s.refused("GET", "/api/v1/workers?after=xyz", "", 422, "invalid", "after")
	s.refused("GET", "/api/v1/workers/loads?step=90s", "", 422, "invalid", "whole minutes")
	s.refused("GET", "/api/v1/workers/loads?step=soon", "", 422, "invalid", "step")
	s.refused("GET", "/api/v1/workers/loads?from=yesterday", "", 422, "invalid", "from")
	s.refused("GET", "/api/v1/workers/7", "", 405, "method-not-allowed", "")
	s.refused("GET", "/api/v1/services?x=1", "", 422, "invalid", "x")
}

func TestU2_UpkeepIsRunAndSet(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var l httpapi.UpkeepList
	s.call("GET", "/api/v1/upkeep", "", 200, &l)
	var names []string
	for _, u := range l.Rounds {
		names = append(names, u.Round)
		var r httpapi.UpkeepReport
		if s.call("POST", "/api/v1/upkeep/"+u.Round, "", 200, &r); r.Round != u.Round || r.Took == "" {
			t.Errorf("%+v", r)
		}
	}
	s.call("POST", "/api/v1/upkeep/purge", "", 200, nil, "Pawl-Note", "because")
	s.audited("purge", "run upkeep", "nothing to do")
	// the engine knows the same rounds
	if err := s.e.SetUpkeep(t.Context(), "nonsense", time.Minute); err == nil || !strings.Contains(err.Error(), strings.Join(names, " ")) {
		t.Errorf("%v, and there are %v", err, names)
	}
	var u httpapi.Upkeep
	s.call("PUT", "/api/v1/upkeep/purge", `{"every":"1m30s"}`, 200, &u, "Pawl-Note", "because")
	if u.Round != "purge" || u.Every != "1m30s" || u.By != "ann" || u.Note != "because" || u.Since.IsZero() {
		t.Errorf("%+v", u)
	}
	s.audited("purge", "set upkeep", "1m30s")
	var read httpapi.Upkeep
	if s.call("GET", "/api/v1/upkeep/purge", "", 200, &read); read != u {
		t.Errorf("%+v, want %+v", read, u)
	}
	u = httpapi.Upkeep{}
	if s.call("PUT", "/api/v1/upkeep/purge", `{"every":"default"}`, 200, &u); u != (httpapi.Upkeep{Round: "purge"}) {
		t.Errorf("%+v", u)
	}
	for _, c := range []struct{ method, path, body, detail string }{
		{"GET", "/upkeep/nonsense", "", "rescue"}, {"POST", "/upkeep/nonsense", "", "rescue"}, {"PUT", "/upkeep/nonsense", `{"every":"1m"}`, "rescue"},
		{"PUT", "/upkeep/purge", `{"every":"1ms"}`, "every"}, {"PUT", "/upkeep/purge", `{"every":"25h"}`, "every"},
		{"PUT", "/upkeep/purge", `{"every":"0s"}`, "every"}, {"PUT", "/upkeep/purge", `{}`, "every"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
}
