//go:build soak

package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/serve"
)

// TestSoak_U7_PagesAmongMillions opens every page of Mission Control beside two million jobs in 500 queues of 50 workers, each
// queue with five kinds in its metrics. None takes 300 ms of the server, to the last byte: of its processor time on SQLite, which is
// in the process and so does not depend on who else uses the machine; of the clock on Postgres, by the median of several. What
// takes long comes by the stream. Then 20 viewers watch the overview and the queues, and cost less than 2 % of a core.
func TestSoak_U7_PagesAmongMillions(t *testing.T) {
	const most = 300 * time.Millisecond
	seconds := size(t, "PAWL_SOAK_SECONDS", 120)
	onStores(t, func(t *testing.T, address string) {
		inside := strings.HasPrefix(address, "sqlite:")
		s, pages := amongMillions(t, address)
		t.Logf("load %s", loadAverage())
		t.Logf("%-60s %8s %8s %8s %8s  %s", "ms:", "first", "middle", "longest", "worked", "answer")
		for _, path := range pages {
			first, times, worked, said := s.page(path)
			took := times[len(times)/2]
			t.Logf("%-60.60s %8.1f %8.1f %8.1f %8.1f  %s", path, ms(first), ms(took), ms(times[len(times)-1]), ms(worked), said)
			if inside {
				took = min(took, worked)
			}
			if took > most {
				t.Errorf("%s took %v, want at most %v", path, took, most)
			}
		}
		t.Logf("load %s", loadAverage())
		lasts := time.Duration(seconds) * time.Second
		alone := s.cost(t, lasts, 0)
		for _, path := range [][]string{{"/"}, {"/queues"}, {"/", "/queues"}} {
			cost := s.cost(t, lasts, 20, path...) - alone
			t.Logf("20 viewers of %v: %.2f %% of a core; %.2f %% without them", path, 100*cost, 100*alone)
			if cost > 0.02 {
				t.Errorf("20 viewers of %v cost %.2f %% of a core, want at most 2 %%", path, 100*cost)
			}
		}
	})
}

// amongMillions is a server that has just begun on two million jobs in 500 queues of 50 workers, 200 schedules and 200 limits, and the
// pages of Mission Control, or those that PAWL_SOAK_ONLY names a part of.
func amongMillions(t *testing.T, address string) (s *served, pages []string) {
	t.Helper()
	c := crowd{jobs: size(t, "PAWL_SOAK_JOBS", 2_000_000), queues: 500, workers: 50, kinds: size(t, "PAWL_SOAK_KINDS", 5)}
	if c.jobs < 1_000_000 {
		c.hours = 48
	}
	begin := func() *served {
		return start(t, func(config *serve.Config) { config.Engine = open(t, address, pawl.Config{}) })
	}
	s = begin()
	c.fill(t, s.e)
	for n := range 200 {
		s.want(201, "POST", "/api/v1/schedules", fmt.Sprintf(`{"name":"s%d","cron":"%d 3 * * *","kind":"k"}`, n, n%60))
		s.want(200, "PATCH", fmt.Sprintf("/api/v1/limits/l%d/settings", n), `{"per_second":1000,"burst":1000}`)
	}
	for _, path := range missionPages(s.someJobs(t)) {
		if strings.Contains(path, os.Getenv("PAWL_SOAK_ONLY")) {
			pages = append(pages, path)
		}
	}
	s.end()
	if err := s.e.Close(); err != nil {
		t.Fatal(err)
	}
	return begin(), pages
}

// someJobs are the ids of a job that waits, one that runs and one that died.
func (s *served) someJobs(t *testing.T) (ids []string) {
	t.Helper()
	for _, state := range []string{"waiting", "running", "dead"} {
		var page struct{ Jobs []struct{ ID string } }
		if s.read("/jobs?limit=1&state="+state, &page); len(page.Jobs) == 1 {
			ids = append(ids, page.Jobs[0].ID)
		}
	}
	return ids
}

// loadAverage is that of the machine, in the last 1, 5 and 15 minutes.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.TrimSpace(string(text))
}

// page opens one six times, as a browser does, and sorts how long all but the first took. worked is the middle of what this process,
// client and all, worked for it.
func (s *served) page(path string) (first time.Duration, times []time.Duration, worked time.Duration, said string) {
	s.t.Helper()
	var work []time.Duration
	for n := range 6 {
		began, cpu := time.Now(), cpuTime()
		r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+path, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Accept-Encoding", "gzip")
		answer, err := s.client.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		all, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		took := time.Since(began)
		work = append(work, cpuTime()-cpu)
		if err != nil || answer.StatusCode != 200 {
			s.t.Errorf("%s: %s %v", path, answer.Status, err)
		}
		if said = fmt.Sprintf("%d bytes", len(all)); n == 0 {
			first = took
		} else {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	slices.Sort(work)
	return first, times, work[len(work)/2], said
}

// cost is how much of a core this process takes while viewers watch pages, each one stream.
func (s *served) cost(t *testing.T, lasts time.Duration, viewers int, paths ...string) float64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	var begun, frames atomic.Int64
	for n := range viewers {
		address := s.url + "/live" + s.stream(t, paths[n%len(paths)])
		watching.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, "GET", address, nil)
			answer, err := s.client.Do(r)
			if err != nil || answer.StatusCode != 200 {
				t.Errorf("%s: %v %v", address, answer, err)
				return
			}
			defer answer.Body.Close()
			lines, first := bufio.NewScanner(answer.Body), true
			lines.Buffer(nil, 8<<20)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "event: ") {
					if frames.Add(1); first {
						first = false
						begun.Add(1)
					}
				}
			}
		})
	}
	wait(t, 5*time.Second) // all have begun
	defer profiled(t, fmt.Sprint("viewers", viewers, strings.ReplaceAll(strings.Join(paths, "-"), "/", "_")))()
	was, began, cpu := frames.Load(), time.Now(), cpuTime()
	var tenths []string // of the time, each with its own cost: is it steady, or one thing that came by?
	for range 10 {
		at, before := time.Now(), cpuTime()
		wait(t, lasts/10)
		tenths = append(tenths, fmt.Sprintf("%.2f", 100*(cpuTime()-before).Seconds()/time.Since(at).Seconds()))
	}
	used := (cpuTime() - cpu).Seconds() / time.Since(began).Seconds()
	t.Logf("%% of a core, tenth by tenth: %s", strings.Join(tenths, " "))
	if viewers > 0 {
		t.Logf("%d of %d viewers had frames, %d of them meanwhile", begun.Load(), viewers, frames.Load()-was)
		if begun.Load() != int64(viewers) {
			t.Errorf("%d of %d viewers had a frame", begun.Load(), viewers)
		}
	}
	return used
}

// profiled writes what the process does until it is called to PAWL_SOAK_PROFILE, a folder, where that is set.
func profiled(t *testing.T, name string) func() {
	t.Helper()
	folder := os.Getenv("PAWL_SOAK_PROFILE")
	if folder == "" {
		return func() {}
	}
	file, err := os.Create(filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-")+"-"+name+".pprof"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		t.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}
}

// stream is the address that a page names for its stream, below /live.
func (s *served) stream(t *testing.T, path string) string {
	t.Helper()
	_, text := s.do("GET", path, "", "Accept", "text/html")
	_, rest, ok := strings.Cut(text, `sse-connect="`)
	if !ok {
		t.Fatalf("%s names no stream", path)
	}
	address, _, _ := strings.Cut(rest, `"`)
	return strings.TrimPrefix(strings.ReplaceAll(address, "&amp;", "&"), "/live")
}
