package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/demo"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/stream"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// The scripts in testdata are transcripts: a line that begins with $ is a call of pawl, and
// what it printed follows; > lets ready jobs run, starts a worker that stays, or lets time
// pass. They run on a real engine in
// virtual time, so that every time is the same in every run.
func TestU8_WhatIsPrintedForPeopleAndForScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	var routes []route
	called := map[string]bool{}
	all := true
	for _, name := range names {
		ran := false
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			ran = true
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			pawltest.Run(t, func(e *pawl.Engine) { demo.Register(e); talk(e) }, func(t *testing.T, e *pawltest.Engine) {
				handler := httpapi.Handler(e.Engine, auth.Open("ann"))
				got = play(t, e, noted(handler, called), string(want))
				routes = routesOf(t, handler)
			}, pawltest.Config(func(c *pawl.Config) {
				c.Queues = pawl.Queues{"default": {Workers: 5, Attempts: 2}, "mail": {Workers: 5}}
				c.Worker, c.Owner, c.Version = pawl.Worker{Prefix: "host", ID: "one"}, "shop", "v1"
				c.Limits = []pawl.Limit{{Name: "api", PerSecond: 100}}
				c.Schedules = []pawl.Schedule{{Name: "nightly", Cron: "0 2 * * *", Job: demo.Echo{}}}
			}))
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the transcript differs (go test -update writes it anew):\n%s", difference(string(want), got))
			}
		})
		all = all && ran
	}
	for _, route := range routes {
		if all && !route.in(called) {
			t.Errorf("no verb of the transcripts calls %s %s", route.method, route.path)
		}
	}
}

// talk has a kind whose handler logs a line every two seconds, and ends with the last: that comes with its end.
func talk(e *pawl.Engine) {
	pawl.HandleRaw(e, "talk", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
		for i, word := range strings.Fields(strings.Trim(string(j.Args), `"`)) {
			if i > 0 {
				select {
				case <-time.After(2 * time.Second): // virtual
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			j.Log().Info(word)
		}
		return nil
	})
}

// consume is a member of a group that takes one event at a time: it rejects those whose data is "bad", and works for a minute on
// those whose data is "slow". The group letters has a topic for dead letters.
func consume(e *pawl.Engine, group, topic string) {
	opts := []pawl.SubscribeOption{pawl.InFlight(1), pawl.Fetch(1), pawl.Member("one")}
	if group == "letters" {
		opts = append(opts, pawl.DeadLetter("dead.orders"), pawl.Ordered())
	}
	pawl.Subscribe(e, group, topic, func(ctx context.Context, m *pawl.Message[pawl.Raw]) error {
		switch string(m.Data) {
		case `"bad"`:
			return m.Reject("there is no such account")
		case `"slow"`:
			select {
			case <-time.After(time.Minute): // virtual
			case <-ctx.Done():
			}
		}
		return nil
	}, opts...)
}

// route is one of the API's.
type route struct {
	method, path string
	form         *regexp.Regexp
}

func (r route) in(called map[string]bool) bool {
	for name := range called {
		if r.form.MatchString(name) {
			return true
		}
	}
	return false
}

// notForPeople are routes that programs call: the protocol of workers, what is watched, and what
// TestU8_ATailGoesOn follows.
var notForPeople = regexp.MustCompile(`"tags":\["(work|watch)"\]|"operationId":"follow-events"`)

// routesOf are those of the document.
func routesOf(t *testing.T, handler http.Handler) (list []route) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, httpapi.Prefix+"/openapi.json", nil))
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil || len(document.Paths) < 20 {
		t.Fatalf("%v: %d paths", err, len(document.Paths))
	}
	part := regexp.MustCompile(`\\\{[a-z]+\\\}`)
	for path, methods := range document.Paths {
		for method, operation := range methods {
			if !notForPeople.Match(operation) {
				form := part.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+")
				method = strings.ToUpper(method)
				list = append(list, route{method, path, regexp.MustCompile("^" + method + " " + form + "$")})
			}
		}
	}
	return list
}

// noted notes what is called.
func noted(next http.Handler, called map[string]bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called[r.Method+" "+r.URL.Path] = true
		next.ServeHTTP(w, r)
	})
}

// play does what a transcript says, and writes one.
func play(t *testing.T, e *pawltest.Engine, handler http.Handler, script string) string {
	t.Helper()
	var b strings.Builder
	ids, started := &places{}, false
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "$ pawl "):
			fmt.Fprintln(&b, line)
			out, problems, code := at(t, handler, "", words(ids.back(strings.TrimPrefix(line, "$ pawl ")))...)
			b.WriteString(ids.stable(out))
			for text := range strings.Lines(problems) {
				b.WriteString("! " + ids.stable(text))
			}
			if code != 0 {
				fmt.Fprintf(&b, "exit %d\n", code)
			}
			b.WriteString("\n")
		case line == "> start":
			fmt.Fprintf(&b, "%s\n\n", line)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Engine.Run(ctx) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			started = true
			synctest.Wait()
		case strings.HasPrefix(line, "> cursor "):
			fmt.Fprintf(&b, "%s\n\n", line)
			name, topic, _ := strings.Cut(strings.TrimPrefix(line, "> cursor "), " ")
			if _, err := e.Cursor(t.Context(), name, stream.Filter{Topic: topic}); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(line, "> group "):
			fmt.Fprintf(&b, "%s\n\n", line)
			name, topic, _ := strings.Cut(strings.TrimPrefix(line, "> group "), " ")
			consume(e.Engine, name, topic)
		case line == "> run":
			fmt.Fprintf(&b, "%s\n\n", line)
			e.RunUntilIdle()
		case strings.HasPrefix(line, "> advance "):
			fmt.Fprintf(&b, "%s\n\n", line)
			d, err := time.ParseDuration(strings.TrimPrefix(line, "> advance "))
			if err != nil {
				t.Fatal(err)
			}
			if !started {
				e.Advance(d)
				continue
			}
			time.Sleep(d) // virtual: what the transcript says, such as "> advance 10s"
			synctest.Wait()
		case strings.HasPrefix(line, "# "):
			fmt.Fprintf(&b, "%s\n", line)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// at calls the program on a handler.
func at(t *testing.T, handler http.Handler, in string, args ...string) (out, problems string, code int) {
	t.Helper()
	return with(t, handler, in, func(*app) {}, args...)
}

// with is at with something changed.
func with(t *testing.T, handler http.Handler, in string, change func(*app), args ...string) (out, problems string, code int) {
	t.Helper()
	var o, p bytes.Buffer
	a := &app{in: strings.NewReader(in), out: &o, err: &p, env: func(string) (string, bool) { return "", false }, now: time.Now, zone: time.UTC}
	a.open = func(context.Context) (*client, error) {
		return &client{base: "http://127.0.0.1", where: "the store", timeout: time.Hour, http: &http.Client{Transport: local{handler}}}, nil
	}
	change(a)
	code = a.run(t.Context(), args)
	return o.String(), p.String(), code
}

// places gives ids that are made at random a number of their own, of the same length.
type places struct{ made []string }

var (
	anyID    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	stableID = regexp.MustCompile(`ffffffff-0000-0000-0000-[0-9a-f]{12}`)
)

// ofMachine is what differs between machines and runs: hosts, processes, cursors of ids.
var ofMachine = regexp.MustCompile(`"host":"[^"]*","process":\d+|"next":"[A-Za-z0-9_-]{40,}"`)

// aBitLater is when a member joins that looks for its worker before that is registered: a tenth of a second after who does not.
var aBitLater = strings.NewReplacer(":00.1Z", ":00Z", ":00.100", ":00.000")

func (p *places) stable(text string) string {
	text = ofMachine.ReplaceAllString(text, `"of-machine":"…"`)
	text = aBitLater.Replace(text)
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		if strings.HasPrefix(id, "00000000-") {
			return id
		}
		for i, known := range p.made {
			if known == id {
				return fmt.Sprintf("ffffffff-0000-0000-0000-%012x", i)
			}
		}
		p.made = append(p.made, id)
		return fmt.Sprintf("ffffffff-0000-0000-0000-%012x", len(p.made)-1)
	})
}

// back puts the ids themselves into a line of the script.
func (p *places) back(text string) string {
	return stableID.ReplaceAllStringFunc(text, func(id string) string {
		var n int
		if _, err := fmt.Sscanf(id[len(id)-12:], "%x", &n); err == nil && n < len(p.made) {
			return p.made[n]
		}
		return id
	})
}

// words splits a line as a shell does that knows single quotes only.
func words(line string) (list []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

// difference shows the first lines that differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant:\n%s\ngot:\n%s", i+1, strings.Join(w[min(i, len(w)):min(i+5, len(w))], "\n"), strings.Join(g[min(i, len(g)):min(i+5, len(g))], "\n"))
		}
	}
	return ""
}
