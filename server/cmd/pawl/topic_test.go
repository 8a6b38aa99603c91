package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

// shared is a buffer that is read while somebody writes.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSpace(s.b.String()), "\n")
}

// A tail prints what was there, goes on with what comes, also over the end of a stream, and misses nothing.
func TestU8_ATailGoesOn(t *testing.T) {
	for _, c := range []struct {
		args  string
		first int
	}{{"-n 2", 3}, {"--from start", 0}, {"-n 0", 5}} {
		t.Run(c.args, func(t *testing.T) { tailGoesOn(t, c.args, c.first) })
	}
}

func tailGoesOn(t *testing.T, args string, first int) {
	synctest.Test(t, func(t *testing.T) {
		e, err := pawl.New(sqlite.Memory(), pawl.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		handler := httpapi.Handler(e, auth.Open("ann"))
		publish := func(from, to int) {
			t.Helper()
			for i := from; i < to; i++ {
				if _, err := e.Publish(t.Context(), "orders.placed", i); err != nil {
					t.Fatal(err)
				}
			}
		}
		publish(0, 5)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // virtual: one that waits for what it has missed ends, too
		defer cancel()
		var out shared
		ended := make(chan int, 1)
		go func() {
			a := &app{in: strings.NewReader(""), out: &out, err: io.Discard, env: func(string) (string, bool) { return "", false }, now: time.Now, zone: time.UTC}
			a.open = func(context.Context) (*client, error) {
				return &client{base: "http://127.0.0.1", where: "the store", timeout: time.Hour, http: &http.Client{Transport: local{handler}}}, nil
			}
			ended <- a.run(ctx, strings.Fields(fmt.Sprint("topic tail orders.* --follow --limit ", 8-first, " ", args)))
		}()
		time.Sleep(time.Second) // virtual
		publish(5, 6)
		time.Sleep(9*time.Minute + 59500*time.Millisecond) // virtual: the stream has ended, and is about to be opened again
		publish(6, 8)
		if code := <-ended; code != 0 {
			t.Errorf("exit %d", code)
		}
		got := out.lines()
		if len(got) != 8-first {
			t.Fatalf("%d lines: %q", len(got), got)
		}
		for i, line := range got {
			if !strings.HasSuffix(line, fmt.Sprintf("orders.placed  int  %d", first+i)) {
				t.Errorf("line %d is %q", i, line)
			}
		}
	})
}

// What a server refuses ends a tail, instead of being tried again.
func TestU8_ATailIsRefused(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	handler := httpapi.Handler(e, auth.Open("ann"))
	_, problems, code := at(t, handler, "", "topic", "tail", "a..b", "--follow", "-n", "0")
	if code != 2 || !strings.Contains(problems, "dot") {
		t.Errorf("exit %d: %s", code, problems)
	}
}
