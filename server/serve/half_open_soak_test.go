//go:build soak && linux

package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// TestSoak_U4_HalfOpenClientsDoNotPileUp opens streams whose clients vanish, or stop reading, beside some that read. The first
// are gone in a minute, with their connections, goroutines and memory; the others notice nothing.
func TestSoak_U4_HalfOpenClientsDoNotPileUp(t *testing.T) {
	const vanished, stopped, reading, queues = 100, 100, 20, 200
	e, err := pawl.New(sqlite.File(filepath.Join(t.TempDir(), "work.db")), pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Engine: e, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Ready: func(url string) { ready <- url }})
	}()
	address := strings.TrimPrefix(<-ready, "http://")
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() { // so that there are events, of many queues each
		items := make([]pawl.Item, queues)
		for i := range items {
			items[i] = pawl.NewItem(pawl.RawArgs("k", []byte(`1`)), pawl.Queue(fmt.Sprint("queue-with-a-longer-name-", i)))
		}
		for ctx.Err() == nil {
			if _, err := e.EnqueueMany(ctx, items...); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-time.After(time.Second / 2):
			case <-ctx.Done():
			}
		}
	})
	var events atomic.Int64
	watch := func(c net.Conn) {
		if _, err := fmt.Fprintf(c, "GET /api/v1/watch?subject=overview HTTP/1.1\r\nHost: %s\r\n\r\n", address); err != nil {
			t.Error(err)
		}
	}
	for range reading {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		watch(c)
		work.Go(func() {
			context.AfterFunc(ctx, func() { c.Close() })
			for lines := bufio.NewReader(c); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("one that reads was sent away: %v", err)
					}
					return
				}
				if strings.HasPrefix(line, "event: ") {
					events.Add(1)
				}
			}
		})
	}
	open := func() (n int) {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\npawl_http_active_connections ")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n - 1 // without the one that asks
	}
	pause(t, 3*time.Second)
	before, memory := runtime.NumGoroutine(), heapNow()
	for range vanished {
		watch(vanish(t, to))
	}
	for range stopped {
		c, err := net.DialTCP("tcp", nil, to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		watch(c)
	}
	began, most := time.Now(), 0
	for n := open(); n > reading; n = open() {
		if most = max(most, n); time.Since(began) > 90*time.Second {
			t.Errorf("%d streams are kept after %v, want %d", n, time.Since(began).Round(time.Second), reading)
			break
		}
		pause(t, time.Second)
	}
	t.Logf("%d streams at most; those whose clients vanished or stopped were over after %v", most, time.Since(began).Round(time.Second))
	pause(t, 2*time.Second)
	after, later := runtime.NumGoroutine(), heapNow()
	t.Logf("goroutines %d before, %d after; heap %.1f MiB before, %.1f MiB after; %d events were read meanwhile", before, after,
		float64(memory)/(1<<20), float64(later)/(1<<20), events.Load())
	if after > before+20 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
	if later > memory+memory/5+8<<20 {
		t.Errorf("heap of %d bytes, %d before", later, memory)
	}
	stop()
	work.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// pause stands for the time in which clients do nothing.
func pause(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
