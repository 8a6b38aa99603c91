package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlwork/pawl/server/demo"
	"github.com/pawlwork/pawl/server/httpapi"
)

// startDemo starts one whose own store is in this cache folder.
func startDemo(t *testing.T, cache string, args ...string) *server {
	t.Helper()
	return startAs(t, []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache}, append([]string{"demo", "--listen", "127.0.0.1:0", "--orders", "8"}, args...)...)
}

// jobs are those of a query.
func (s *server) jobs(query string) []httpapi.Job {
	s.t.Helper()
	var l httpapi.JobList
	s.call("GET", "/jobs?limit=1000&"+query, "", &l)
	return l.Jobs
}

// running waits until a report runs, and returns it.
func (s *server) running() httpapi.Job {
	s.t.Helper()
	for {
		var r httpapi.Receipt // moves with the store
		s.call("POST", "/jobs", `{"kind":"pawl.demo.sleep","args":{"seconds":0.1}}`, &r)
		s.call("GET", "/jobs/"+r.ID+"?wait=50s", "", &httpapi.Job{})
		if list := s.jobs("kind=report.nightly&state=running"); len(list) > 0 {
			return list[0]
		}
	}
}

// The demo is killed and started again: what ran is rescued, and every job that there was is there.
func TestU7_AKilledDemoGoesOnAndLosesNothing(t *testing.T) {
	cache := t.TempDir()
	s := startDemo(t, cache)
	report := s.running()
	live := s.jobs("state=waiting,running")
	s.signal(syscall.SIGKILL)
	s.end()
	if _, err := os.Stat(filepath.Join(cache, "pawl-demo", demoFile)); err != nil {
		t.Fatalf("the store of a killed demo: %v", err)
	}

	s = startDemo(t, cache)
	for {
		var j httpapi.Job
		if s.call("GET", "/jobs/"+report.ID+"?wait=1s", "", &j); j.Run > report.Run { // whether it counts as lost depends on how far it was
			break
		}
		s.running()
	}
	if len(live) < 10 {
		t.Errorf("only %d jobs were live", len(live))
	}
	for _, j := range live {
		s.call("GET", "/jobs/"+j.ID, "", &httpapi.Job{})
	}
	if tries := s.tries(); !tries[7].Done || tries[1].Done {
		t.Errorf("%+v", tries)
	}

	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("exit %d: %s", code, s.text)
	}
	if left, err := os.ReadDir(cache); err != nil || slices.ContainsFunc(left, func(f os.DirEntry) bool { return f.Name() == "pawl-demo" }) {
		t.Errorf("a demo that was stopped leaves %v, %v", left, err)
	}
}

func (s *server) tries() []demo.Try {
	s.t.Helper()
	var list struct{ Tries []demo.Try }
	s.at("GET", demo.TryPath, "", &list)
	return list.Tries
}

// A second process serves what nobody serves; 1.8.3 is shipped over HTTP.
func TestU7_ADemoIsHelpedFromOutside(t *testing.T) {
	dir := t.TempDir()
	s := startDemo(t, dir, "--dir", dir)
	worker := program(t, "demo", "worker", demo.QueueLegacy, "--dir", dir)
	var text lines
	worker.Stdout, worker.Stderr = &text, &text
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Process.Kill() })
	for len(s.jobs("kind=legacy.push&state=done")) == 0 {
		s.running()
	}
	if !s.tries()[0].Done {
		t.Error("a worker was started, and that is not ticked off")
	}

	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+demo.FixPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://elsewhere.example")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of somebody else ships: %s", answer.Status)
	}
	var shipped demo.Shipped
	if s.at("POST", demo.FixPath, "", &shipped); !shipped.Changed || shipped.Version != "1.8.3" {
		t.Errorf("%+v", shipped)
	}
	var workers httpapi.WorkerList
	s.call("GET", "/workers", "", &workers)
	if !slices.ContainsFunc(workers.Workers, func(w httpapi.Worker) bool { return w.Owner == "shop" && w.Version == "1.8.3" && !w.Lost }) {
		t.Errorf("%+v", workers)
	}

	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker: %v: %s", err, text.String())
	}
	s.signal(syscall.SIGINT)
	if code := s.end(); code != 0 {
		t.Errorf("exit %d: %s", code, s.text)
	}
	if _, err := os.Stat(filepath.Join(dir, demoFile)); err != nil {
		t.Errorf("the store of --dir: %v", err)
	}
	// What was shipped stays shipped.
	s = startDemo(t, dir, "--dir", dir)
	if s.until("workers began"); !strings.Contains(s.text.String(), "version=1.8.3") {
		t.Errorf("it began with another version: %s", s.text)
	}
}

func TestU7_BadInputOfADemoIsNamed(t *testing.T) {
	env := map[string]string{"PAWL_STORE": "sqlite::memory:"}
	refuses(t, 2, "which cannot share memory", env, "demo")
	refuses(t, 2, "--dir and a store: give one of them", map[string]string{"PAWL_STORE": "sqlite:x.db"}, "demo", "--dir", t.TempDir())
	refuses(t, 2, "Orders: must be 1..200", nil, "demo", "--dir", t.TempDir(), "--orders", "201")
	refuses(t, 2, `queue "mail": must be one of legacy-sync, feeds`, nil, "demo", "worker", "mail", "--dir", t.TempDir())
	refuses(t, 4, "no such file", nil, "demo", "worker", "legacy-sync", "--dir", t.TempDir())
}
