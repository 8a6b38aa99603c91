//go:build soak

package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/serve"
)

const (
	watchersOfLoad = 200
	requestsOfLoad = 300 // a second
)

// TestSoak_U2_U4_ClientsBesideADrain serves 200 streams of events and 300 requests a second beside a drain of 10,000 jobs a
// second, all in one process, the clients too. Nothing fails, answers come in time, memory stays flat, the drain keeps its pace.
func TestSoak_U2_U4_ClientsBesideADrain(t *testing.T) {
	seconds, pace := size(t, "PAWL_SOAK_SECONDS", 60), size(t, "PAWL_SOAK_PACE", 10_000)
	t.Logf("the clients alone take %.2f of a processor", costOfClients(t))
	onStores(t, func(t *testing.T, address string) {
		e := open(t, address, pawl.Config{Queues: pawl.Queues{"work": {Workers: 100}}})
		d := newPaced(e, pace)
		d.fill(t, pace*(seconds+12)) // a little more than is drained
		s := start(t, func(c *serve.Config) { c.Engine, c.Run = e, true })
		for e.Ready(t.Context()) != nil { // until it is registered
			wait(t, 10*time.Millisecond)
		}
		d.begin(t)

		l := newLoad(s.url, s.jobs(t, 40))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var watching sync.WaitGroup
		for n := range watchersOfLoad {
			watching.Go(func() { l.watch(ctx, n) })
		}
		asked := make(chan struct{})
		lasts := time.Duration(seconds) * time.Second
		began, done, cpu := time.Now(), d.ended.Load(), cpuTime()
		go func() { defer close(asked); l.ask(ctx, lasts) }()
		wait(t, lasts/6)
		early := heap()
		<-asked
		took := time.Since(began)
		rate, used := float64(d.ended.Load()-done)/took.Seconds(), (cpuTime()-cpu).Seconds()/took.Seconds()
		late := heap()
		stop()
		watching.Wait()

		times := l.sorted()
		at := func(p float64) time.Duration { return times[min(int(p*float64(len(times))), len(times)-1)] }
		t.Logf("%d requests in %v: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, longest %.1f ms", len(times), took.Round(time.Second/10), ms(at(0.5)), ms(at(0.95)), ms(at(0.99)), ms(times[len(times)-1]))
		t.Logf("%d streams, %d events; %.0f jobs a second; %.2f processors; heap %.1f MiB after %v, %.1f MiB at the end", watchersOfLoad, l.events.Load(), rate, used,
			float64(early)/(1<<20), (lasts / 6).Round(time.Second), float64(late)/(1<<20))
		for _, route := range l.slowest() {
			t.Log(route)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, err := range l.faults {
			t.Error(err)
		}
		if want := requestsOfLoad * seconds * 99 / 100; len(times) < want {
			t.Errorf("%d requests, want at least %d", len(times), want)
		}
		if p99 := at(0.99); p99 > 100*time.Millisecond {
			t.Errorf("p99 is %v, want at most 100ms", p99)
		}
		if rate < 0.98*float64(pace) {
			t.Errorf("%.0f jobs a second, want %d", rate, pace)
		}
		if late > early+early/5+8<<20 {
			t.Errorf("the heap grew from %d to %d bytes", early, late)
		}
		if l.begun.Load() != watchersOfLoad {
			t.Errorf("%d streams had their first event, want %d", l.begun.Load(), watchersOfLoad)
		}
	})
}

// wait stands for the time that a load goes on.
func wait(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// paced is a drain whose jobs end at a pace.
type paced struct {
	e     *pawl.Engine
	pace  int
	turns chan struct{}
	ended atomic.Int64
}

func newPaced(e *pawl.Engine, pace int) *paced {
	d := &paced{e: e, pace: pace, turns: make(chan struct{}, pace/10+1)} // what was missed by a tenth of a second is not made up for
	pawl.HandleRawResult(e, "k", func(ctx context.Context, _ *pawl.Job[pawl.Raw]) (pawl.Raw, error) {
		select {
		case <-d.turns:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		d.ended.Add(1)
		return nil, nil
	})
	return d
}

// fill hands in jobs.
func (d *paced) fill(t *testing.T, jobs int) {
	t.Helper()
	const batch = 1000
	items := make([]pawl.Item, batch)
	for i := range items {
		items[i] = pawl.NewItem(pawl.RawArgs("k", []byte(`{"n":12345}`)), pawl.Queue("work"))
	}
	for n := 0; n < jobs; n += batch {
		if _, err := d.e.EnqueueMany(t.Context(), items...); err != nil {
			t.Fatal(err)
		}
	}
}

// begin gives turns at the pace, by the clock, until the test ends.
func (d *paced) begin(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	t.Cleanup(func() { stop(); over.Wait() })
	over.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		began, given := time.Now(), 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for due := int(time.Since(began).Seconds() * float64(d.pace)); given < due; given++ {
				select {
				case d.turns <- struct{}{}:
				default: // nobody is there to take it
				}
			}
		}
	})
}

// jobs are the ids of some that are there.
func (s *served) jobs(t *testing.T, n int) (ids []string) {
	t.Helper()
	var page struct{ Jobs []struct{ ID string } }
	s.read(fmt.Sprintf("/jobs?limit=%d", n), &page)
	for _, j := range page.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// load is what clients ask of a server.
type load struct {
	url           string
	ids           []string
	client        *http.Client
	events, begun atomic.Int64

	mu     sync.Mutex
	times  map[string][]time.Duration // of each route
	faults []error
}

func newLoad(url string, ids []string) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 600, DialContext: (&net.Dialer{}).DialContext}
	return &load{url: url, ids: ids, client: &http.Client{Transport: transport}, times: map[string][]time.Duration{}}
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Errorf(format, args...))
	}
}

// watch reads a stream until the context ends.
func (l *load) watch(ctx context.Context, n int) {
	subject := []string{"overview", "queue:work", "queue:other", "job:" + l.ids[n%len(l.ids)]}[n%4]
	r, err := http.NewRequestWithContext(ctx, "GET", l.url+"/api/v1/watch?subject="+subject, nil)
	if err != nil {
		l.fault("%s: %w", subject, err)
		return
	}
	answer, err := l.client.Do(r)
	if err != nil || answer.StatusCode != 200 {
		l.fault("%s: %v %v", subject, answer, err)
		return
	}
	defer answer.Body.Close()
	lines, first := bufio.NewScanner(answer.Body), true
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: ") {
			if l.events.Add(1); first {
				first = false
				l.begun.Add(1)
			}
		}
	}
	if err := lines.Err(); ctx.Err() == nil {
		l.fault("%s ended: %v", subject, errors.Join(err, io.ErrUnexpectedEOF))
	}
}

// ask sends requests at their pace, whether or not those before were answered. How long one
// took is counted from when it was to be sent.
func (l *load) ask(ctx context.Context, lasts time.Duration) {
	get, list := "GET /api/v1/jobs/", "GET /api/v1/jobs?"
	routes := []string{ // of 20: 4 enqueues, 5 reads of a job, 4 lists of jobs, 3 of all else, 2 counts, 2 of health
		"POST /api/v1/jobs", get + l.ids[0], list + "state=waiting&queue=work", "GET /api/v1/queues", get + l.ids[1],
		"POST /api/v1/jobs", get + l.ids[2], list + "state=running", "GET /healthz", get + l.ids[3] + "/why",
		"POST /api/v1/jobs", get + l.ids[4], list + "state=done", "GET /api/v1/counts", "GET /api/v1/workers",
		"POST /api/v1/jobs", get + l.ids[5], list + "limit=100", "GET /readyz", "GET /api/v1/metrics/series?total=true&step=1m",
	}
	var under sync.WaitGroup
	defer under.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	const every = time.Second / requestsOfLoad
	for n := 0; time.Duration(n)*every < lasts; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for at := time.Duration(n) * every; at <= time.Since(began) && at < lasts; at = time.Duration(n) * every {
			route := routes[n%len(routes)]
			under.Go(func() { l.one(ctx, route, began.Add(at)) })
			n++
		}
	}
}

func (l *load) one(ctx context.Context, route string, began time.Time) {
	method, path, _ := strings.Cut(route, " ")
	text := ""
	if method == "POST" {
		text = `{"kind":"k","queue":"other","args":{"n":1}}`
	}
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(text))
	if err != nil {
		l.fault("%s: %w", route, err)
		return
	}
	if text != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := l.client.Do(r)
	if err != nil {
		l.fault("%s: %w", route, err)
		return
	}
	defer answer.Body.Close()
	if said, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode >= 300 {
		l.fault("%s: %s %v: %.200s", route, answer.Status, err, said)
		return
	}
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times[route] = append(l.times[route], took)
}

// sorted are the times of all requests.
func (l *load) sorted() (all []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.times {
		all = append(all, times...)
	}
	slices.Sort(all)
	return all
}

// slowest are the routes with their times.
func (l *load) slowest() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for route, times := range l.times {
		slices.Sort(times)
		lines = append(lines, fmt.Sprintf("p99 %8.1f ms, p50 %8.1f ms: %s", ms(times[len(times)*99/100]), ms(times[len(times)/2]), route))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	return lines
}

// costOfClients is how much of a processor the clients take by themselves, with a server that does next to nothing.
func costOfClients(t *testing.T) float64 {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/watch") {
			_, _ = io.WriteString(w, "event: reset\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	}))
	defer server.Close()
	l := newLoad(server.URL, strings.Split("abcdef", ""))
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for n := range watchersOfLoad {
		watching.Go(func() { l.watch(ctx, n) })
	}
	began, cpu := time.Now(), cpuTime()
	l.ask(ctx, 5*time.Second)
	used := (cpuTime() - cpu).Seconds() / time.Since(began).Seconds()
	stop()
	watching.Wait()
	l.client.CloseIdleConnections()
	return used
}
