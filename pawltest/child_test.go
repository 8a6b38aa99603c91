package pawltest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A test that must fail does so in a child process, which plays a role of this table.
const roleVariable = "PAWLTEST_ROLE"

type fetch struct{ URL string }

func (fetch) Kind() string { return "fetch" }

// fetcher leaves its connection open for the next call, as every HTTP client does unless it is told otherwise.
func fetcher(client *http.Client) func(context.Context, *pawl.Job[fetch]) error {
	return func(ctx context.Context, j *pawl.Job[fetch]) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Args.URL, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return errors.Join(err, answer.Body.Close())
	}
}

func server(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(s.Close)
	return s
}

var roles = map[string]func(t *testing.T){
	"kept alive": func(t *testing.T) {
		s, client := server(t), &http.Client{Transport: &http.Transport{}}
		pawltest.Run(t, func(e *pawl.Engine) { pawl.Handle(e, fetcher(client)) }, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(fetch{s.URL})
			e.RunUntilIdle()
		}, pawltest.Standstill(300*time.Millisecond))
	},
	"pool": func(t *testing.T) {
		db := need.Postgres(t)
		pawltest.Run(t, func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, _ *pawl.Job[note]) error {
				p, err := pgxpool.New(ctx, db.URL)
				if err != nil {
					return err
				}
				_, err = p.Exec(ctx, "select 1")
				return err
			})
		}, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(note{"x"})
			e.RunUntilIdle()
		}, pawltest.Standstill(time.Second))
	},
	"channel outside": func(t *testing.T) {
		outside := make(chan struct{})
		pawltest.Run(t, func(e *pawl.Engine) {
			pawl.Handle(e, func(context.Context, *pawl.Job[welcome]) error { <-outside; return nil })
		}, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(welcome{1})
			e.RunUntilIdle()
		}, pawltest.Standstill(300*time.Millisecond))
	},
	"goroutine left behind": func(t *testing.T) {
		pawltest.Run(t, func(e *pawl.Engine) {
			pawl.Handle(e, func(context.Context, *pawl.Job[welcome]) error {
				go func() { select {} }()
				return nil
			})
		}, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(welcome{1})
			e.RunUntilIdle()
		})
	},
	"real standstill": func(t *testing.T) {
		pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, _ *pawl.Job[welcome]) error { <-ctx.Done(); return ctx.Err() })
		}, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(welcome{1})
			e.RunUntilIdle()
		}, pawltest.Standstill(300*time.Millisecond), pawltest.Config(func(c *pawl.Config) { c.Grace = time.Millisecond }))
	},
	"no such job": func(t *testing.T) {
		pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(ship{6})
			e.RequireEnqueued(ship{7})
		})
	},
	"a job too many": func(t *testing.T) {
		pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(ship{7})
			e.RequireNotEnqueued(ship{7})
		})
	},
	"not inside": func(t *testing.T) {
		pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
			_ = e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				_, err := tx.Enqueue(ctx, ship{6})
				e.Inside(tx).RequireEnqueued(ship{7})
				return err
			})
		})
	},
	"inside too many": func(t *testing.T) {
		pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
			_ = e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				_, err := tx.Enqueue(ctx, ship{7})
				e.Inside(tx).RequireNotEnqueued(ship{7})
				return err
			})
		})
	},
	"not due": func(t *testing.T) {
		_, _ = pawltest.Work(t, func(context.Context, *pawl.Job[welcome]) error { return nil }, welcome{1}, pawltest.Enqueuing(pawl.In(time.Hour)))
	},
	"unserved": func(t *testing.T) {
		pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(ship{1}, pawl.Queue("elsewhere"))
			e.RunUntilIdle() // logs why that job is left
			_, _ = e.Work(note{"x"})
		})
	},
	"faulty handlers": func(t *testing.T) {
		_, _ = pawltest.Work[welcome](t, nil, welcome{1})
	},
	"bad limit": func(t *testing.T) {
		pawltest.Run(t, nil, func(*testing.T, *pawltest.Engine) {}, pawltest.Standstill(-time.Second))
	},
	"panic": func(t *testing.T) {
		pawltest.Run(t, nil, func(*testing.T, *pawltest.Engine) { panic("the test's own") })
	},
}

// TestChild plays a role. TestChildGoesOn comes after it: a test that failed must not take the others along.
func TestChild(t *testing.T) {
	if role := os.Getenv(roleVariable); role != "" {
		roles[role](t)
	}
}

func TestChildGoesOn(t *testing.T) {
	if os.Getenv(roleVariable) != "" {
		pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
			e.Enqueue(welcome{1})
			e.Advance(2 * time.Hour)
			t.Log("the child went on")
		})
	}
}

// play runs a role in a child and returns what the child wrote. A child that hangs is killed, and that fails the test.
func play(t *testing.T, role string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	child := exec.CommandContext(ctx, self, "-test.run=^TestChild", "-test.v")
	child.Env = append(os.Environ(), roleVariable+"="+role)
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	err = child.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s: the child hung:\n%s", role, out.String())
	}
	if err == nil {
		t.Fatalf("%s: the child passed:\n%s", role, out.String())
	}
	return out.String()
}

func TestU10_WhatMustFailFailsAndSaysWhy(t *testing.T) {
	for role, c := range map[string]struct {
		says []string
		ends bool // with its process
	}{
		"kept alive":            {says: []string{"virtual time has stood still", "no handler is running; the last one was fetch (job ", "Use pawltest.Real", "net/http.(*persistConn).readLoop"}},
		"channel outside":       {says: []string{"virtual time has stood still", "running: welcome (job ", "attempt 1 of", "Use pawltest.Real", "child_test.go"}},
		"goroutine left behind": {says: []string{"left goroutines behind", "child_test.go"}},
		"real standstill":       {says: []string{"nothing has begun or ended", "running: welcome (job ", "goroutines of handlers:", "child_test.go"}},
		"no such job":           {says: []string{`no job ship {"order":7} among ship {"order":6} waiting`}},
		"a job too many":        {says: []string{`there is a job ship {"order":7}: `, " is waiting"}},
		"not inside":            {says: []string{`the transaction sees no job ship {"order":7} among ship {"order":6}`}},
		"inside too many":       {says: []string{`the transaction sees a job ship {"order":7}: `}},
		"not due":               {says: []string{"did not run: not due until"}},
		"unserved":              {says: []string{"is left: no live worker serves queue elsewhere", "did not run: no live worker of queue default knows kind note"}},
		"faulty handlers":       {says: []string{"handler of welcome", "must be a function"}},
		"bad limit":             {says: []string{"pawltest.Standstill", "-1s", "must be above 0"}},
		"panic":                 {says: []string{"the test's own"}, ends: true},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			out := play(t, role)
			for _, text := range c.says {
				if !strings.Contains(out, text) {
					t.Errorf("it does not say %q", text)
				}
			}
			if !c.ends && (!strings.Contains(out, "--- FAIL: TestChild (") || !strings.Contains(out, "the child went on") || strings.Contains(out, "\npanic: ")) {
				t.Error("the other tests of the child did not run")
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// A pool has goroutines that only end when it is closed.
func TestU10_APoolInVirtualTimeFailsAndSaysWhy(t *testing.T) {
	need.Postgres(t)
	out := play(t, "pool")
	for _, text := range []string{"left goroutines behind", "use pawltest.Real", "backgroundHealthCheck", "the child went on"} {
		if !strings.Contains(out, text) {
			t.Errorf("it does not say %q:\n%s", text, out)
		}
	}
}
