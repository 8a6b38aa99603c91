package main

import (
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/demo"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

// What loops do is at times of their own, so no transcript has it.
func TestU8_ServicesOfAServerThatRuns(t *testing.T) {
	s := startServer(t)
	s.begin() // so that it has registered
	out, problems, code := endOf(t, program(t, "--server", s.url, "service", "list"))
	for _, name := range []string{"SERVICE", "beat ", "keeper/rescue ", "claim "} {
		if code != 0 || !strings.Contains(out, name) {
			t.Fatalf("%d: no %q in\n%s%s", code, name, out, problems)
		}
	}
}

// A bar is drawn for people only: on a terminal, without --json.
func TestU8_ABarIsForTerminals(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 3 {
		if _, err := e.Enqueue(t.Context(), pawl.RawArgs("k", []byte("null"))); err != nil {
			t.Fatal(err)
		}
	}
	handler := httpapi.Handler(e, auth.Open("ann"))
	if _, problems, code := at(t, handler, "", "check"); code != 0 || problems != "" {
		t.Errorf("%d: %q", code, problems)
	}
	terminal := func(a *app) { a.terminal = true }
	if _, problems, code := with(t, handler, "", terminal, "check"); code != 0 || problems != "\r\x1b[K3 checked\r\x1b[K" {
		t.Errorf("%d: %q", code, problems)
	}
	if _, problems, code := with(t, handler, "", terminal, "check", "--json"); code != 0 || problems != "" {
		t.Errorf("%d: %q", code, problems)
	}
	var drawn strings.Builder
	b := &bar{w: &drawn, what: "jobs"}
	b.at(50, 100)
	b.at(120, 100) // more came meanwhile
	if text := drawn.String(); !strings.Contains(text, "["+strings.Repeat("#", 15)+strings.Repeat(".", 15)+"] 50 of 100 jobs") ||
		!strings.Contains(text, "["+strings.Repeat("#", 30)+"] 120 of 120 jobs") {
		t.Errorf("%q", text)
	}
}

// What others wrote must not steer the terminal of who looks.
func TestU8_ControlCharactersAreNotSentToTheTerminal(t *testing.T) {
	pawltest.Run(t, func(e *pawl.Engine) { demo.Register(e) }, func(t *testing.T, e *pawltest.Engine) {
		handler := httpapi.Handler(e.Engine, auth.Open("ann"))
		id, problems, code := at(t, handler, `{"dead":true,"message":"\u001b[2J\u0007"}`, "job", "enqueue", "pawl.demo.fail", "-", "--key", "a\u202eb")
		if code != 0 {
			t.Fatal(problems)
		}
		e.RunUntilIdle()
		id = strings.TrimSpace(id)
		for _, args := range [][]string{{"job", "list"}, {"job", "get", id}, {"job", "why", id}, {"job", "get", "\x1b[2J"}, {"failure", "list"}} {
			out, problems, _ := at(t, handler, "", args...)
			if strings.ContainsAny(out+problems, "\x1b\x07\u202e") {
				t.Errorf("%v: %q", args, out+problems)
			}
		}
		if out, _, _ := at(t, handler, "", "job", "get", id); !strings.Contains(out, "\uFFFD[2J\uFFFD") {
			t.Errorf("%q", out)
		}
	})
}
