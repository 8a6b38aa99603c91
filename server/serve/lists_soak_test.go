//go:build soak

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/serve"
)

// TestSoak_U2_ListsAndCountsAmongMillions asks every route that lists or counts, over HTTP, beside two million jobs in 500
// queues of 50 workers. None takes 200 ms, but for sums of metrics over a day or a month of all queues: those add up hundreds of
// thousands of rows, and are only measured.
func TestSoak_U2_ListsAndCountsAmongMillions(t *testing.T) {
	const most = 200 * time.Millisecond
	jobs := size(t, "PAWL_SOAK_JOBS", 2_000_000)
	onStores(t, func(t *testing.T, address string) {
		c := crowd{jobs: jobs, queues: 500, workers: 50}
		s := start(t, func(config *serve.Config) { config.Engine = open(t, address, pawl.Config{}) })
		c.fill(t, s.e)
		for n := range 200 {
			s.want(201, "POST", "/api/v1/schedules", fmt.Sprintf(`{"name":"s%d","cron":"%d 3 * * *","kind":"k"}`, n, n%60))
			s.want(200, "PATCH", fmt.Sprintf("/api/v1/limits/l%d/settings", n), `{"per_second":1000,"burst":1000}`)
			s.want(200, "PATCH", fmt.Sprintf("/api/v1/queues/q%03d/settings", n), `{"total":1000}`)
		}
		for range 20 {
			s.want(200, "POST", "/api/v1/operations", `{"verb":"cancel","filter":{"queue":"none","state":["waiting"]}}`)
		}
		t.Logf("%-90s %8s %8s %8s  %s", "ms:", "first", "middle", "longest", "answer")
		for _, one := range s.lists() {
			if !strings.Contains(one, os.Getenv("PAWL_SOAK_ONLY")) { // to look into one of them
				continue
			}
			first, times, said := s.ask(one)
			t.Logf("%-90.90s %8.1f %8.1f %8.1f  %s", one, ms(first), ms(times[len(times)/2]), ms(times[len(times)-1]), said)
			if times[len(times)-1] > most && !slices.Contains(sums, one) {
				t.Errorf("%s took %v, want at most %v", one, times[len(times)-1], most)
			}
		}
	})
}

// sums go through as many rows as there were queues and minutes.
var sums = []string{
	"/failures?range=24h", "/failures?range=720h", "/metrics/series?range=24h&step=1h&total=true", "/metrics/series?range=720h&step=24h&queue=q001",
	"/metrics/series?range=720h&step=24h&total=true",
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// lists are all questions. One with a body is a POST.
func (s *served) lists() (list []string) {
	now := time.Now().UTC()
	ago := func(d time.Duration) string { return url.QueryEscape(now.Add(-d).Format(time.RFC3339)) }
	day := 24 * time.Hour
	fingerprint := job.Fingerprint("no answer from 10.1.2.3")
	for _, filter := range []string{
		"", "state=waiting", "state=waiting&queue=q001", "state=waiting&queue=q333", "queue=q001", "queue=q333", "queue=none", "state=running", "state=running&queue=q002", "worker=17",
		"state=suspended", "state=blocked", "state=done", "state=done&queue=q001", "state=dead", "state=dead,cancelled", "state=dead&queue=q001", "state=dead&queue=q333", "state=dead&kind=none",
		"kind=k3", "kind=k*", "kind=none", "key=c77", "key=none", "tag=red", "tag=none", "fingerprint=" + fingerprint, "fingerprint=0000000000000000", "state=dead&fingerprint=" + fingerprint,
		"due_before=" + ago(0) + "&state=waiting&queue=q001", "due_after=" + ago(0) + "&state=waiting&queue=q001", "due_after=" + ago(0),
		"created_after=" + ago(20*day) + "&created_before=" + ago(10*day), "finished_after=" + ago(20*day) + "&finished_before=" + ago(10*day), "state=dead&finished_after=" + ago(20*day) + "&finished_before=" + ago(10*day),
	} {
		list = append(list, "/jobs?"+filter, "/jobs/count?"+filter)
	}
	for _, order := range []string{"order=due&state=waiting&queue=q001", "order=due&state=waiting&queue=q333", "order=finish&state=dead", "order=finish&state=dead,cancelled&queue=q001", "order=worker&state=running"} {
		list = append(list, "/jobs?"+order)
	}
	list = append(list, "/jobs?limit=1000", "/jobs?state=waiting&queue=q001&limit=1000", "/jobs?state=dead&order=finish&limit=1000")
	for _, paged := range []string{"/jobs?limit=100", "/jobs?kind=none&limit=100", "/jobs?state=dead&order=finish", "/audit?limit=100", "/operations?limit=5", "/queues?limit=100"} {
		if next := s.next(paged); next != "" {
			list = append(list, paged+"&after="+url.QueryEscape(next))
		}
	}
	var page struct{ Jobs []struct{ ID string } }
	s.read("/jobs?state=waiting&queue=q001&limit=1000", &page)
	var ids []string
	for _, j := range page.Jobs {
		ids = append(ids, j.ID)
	}
	some, _ := json.Marshal(map[string][]string{"ids": ids[:min(len(ids), 100)]})
	list = append(list, "/jobs/"+ids[0], "/jobs/"+ids[0]+"/why", "/jobs/"+ids[0]+"/logs", "/why "+string(some))
	return append(append(list,
		"/counts", "/queues", "/queues?limit=1000", "/queues/q001", "/queues/q333", "/pauses", "/schedules", "/schedules?limit=1000", "/schedules/s7", "/limits", "/limits?limit=1000", "/limits/l7",
		"/workers", "/workers?limit=1000", "/workers/loads", "/workers/loads?step=5m", "/services", "/settings", "/upkeep", "/operations", "/audit", "/audit?target=q7", "/audit?by=ann3&action=retry", "/audit?by=nobody",
		"/audit?since="+ago(2*day)+"&until="+ago(day), "/failures", "/failures?kind=k3",
		"/metrics/series", "/metrics/series?total=true&step=1m", "/metrics/series?step=5m&queue=q001", "/metrics/series?range=24h&step=5m&queue=q001",
	), sums...)
}

// next is the cursor of a page.
func (s *served) next(path string) string {
	var page struct{ Next string }
	s.read(path, &page)
	return page.Next
}

func (s *served) read(path string, out any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.want(200, "GET", "/api/v1"+path, "")), out); err != nil {
		s.t.Fatal(err)
	}
}

// ask asks six times, and sorts how long all but the first took.
func (s *served) ask(one string) (first time.Duration, times []time.Duration, said string) {
	s.t.Helper()
	for n := range 6 {
		began := time.Now()
		method, path, text := "GET", one, ""
		if at, b, ok := strings.Cut(one, " "); ok {
			method, path, text = "POST", at, b
		}
		r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/api/v1"+path, strings.NewReader(text))
		if err != nil {
			s.t.Fatal(err)
		}
		if text != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := s.client.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		all, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		took := time.Since(began)
		if err != nil || answer.StatusCode != 200 {
			s.t.Errorf("%s: %s %v: %s", one, answer.Status, err, all)
		}
		if said = fmt.Sprintf("%d bytes", len(all)); n == 0 {
			first = took
		} else {
			times = append(times, took)
		}
		var page struct {
			Jobs    json.RawMessage
			Stopped bool
		}
		if _ = json.Unmarshal(all, &page); page.Stopped {
			said += ", stopped"
		}
	}
	slices.Sort(times)
	return first, times, said
}
