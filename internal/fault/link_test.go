//go:build fault

package fault

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
)

// Large is a job whose result is large.
type Large struct{ N int }

func (Large) Kind() string { return "large" }

// TestFault_P10_LargeResultsOverASlowLink ends many runs at once whose results take much longer to send than a call may
// take. They were sent again and again, whole; now every one is stored, and the hook is told of each once.
func TestFault_P10_LargeResultsOverASlowLink(t *testing.T) {
	g := onPostgres(t)
	n, rate := 48, 4<<20
	c := config()
	c.Beat, c.LostAfter = time.Second, 30*time.Second // a call has 2 s: 8 MiB
	if long() {
		n, rate, c.Beat = 700, 20<<20, 5*time.Second
	}
	proxy := need.Proxy(t, g.address)
	text := make([]byte, 740<<10)
	_, _ = rand.Read(text)
	result := base64.StdEncoding.EncodeToString(text) // about 1 MiB, and nothing to compress

	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = log.Close()
		if t.Failed() {
			t.Logf("log of the engine:\n%s", lastLines(log.Name()))
		}
	}()
	c.Logger = slog.New(slog.NewTextHandler(log, nil))
	c.Queues = pawl.Queues{"default": {Workers: n}}
	told := make(chan job.ID, 10*n)
	c.Hooks.Finish = func(f pawl.Finished) { told <- f.ID }
	e, err := pawl.Open(t.Context(), proxy.URL(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	began, together := make(chan struct{}, n), make(chan struct{})
	pawl.HandleResult(e, func(ctx context.Context, _ *pawl.Job[Large]) (string, error) {
		began <- struct{}{}
		<-together
		return result, nil
	})
	var items []pawl.Item
	for i := range n {
		items = append(items, pawl.NewItem(Large{i}))
	}
	if _, err := g.EnqueueMany(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for range n {
		<-began
	}
	proxy.Throttle(rate, 0)
	before := proxy.Sent()
	close(together)
	times := map[job.ID]int{}
	late := time.After(time.Duration(n) * 2 * time.Second)
	for len(times) < n {
		select {
		case id := <-told:
			times[id]++
		case <-late:
			t.Fatalf("the hook was told of %d of %d; %+v", len(times), n, e.Stats())
		}
	}
	t.Logf("%d MiB were sent for %d results of 1 MiB", (proxy.Sent()-before)>>20, n)
	proxy.Throttle(0, 0)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(told)
	for id := range told {
		times[id]++
	}
	for id, count := range times {
		if count != 1 {
			t.Errorf("the hook was told %d times of %s", count, id)
		}
	}
	if done, err := g.Count(t.Context(), pawl.Filter{States: []job.State{job.Done}}, 0); err != nil || done.Jobs != n {
		t.Errorf("%d of %d are done, %v", done.Jobs, n, err)
	}
	if s := e.Stats(); s.Refused != 0 || s.LeasesLost != 0 || s.Finished[job.Succeeded] != uint64(n) {
		t.Errorf("stats %+v", s)
	}
}
