package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// waitOfFuzz is how long somebody waits for an answer: for one without a wait it is never too short.
const waitOfFuzz = 20 * time.Millisecond

// asker asks a server in this process, and wants no fault of its own.
func asker(f *testing.F) func(t *testing.T, method, path, body string) {
	f.Helper()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := e.Close(); err != nil {
			f.Error(err)
		}
	})
	handler := httpapi.Handler(e, auth.Open("ops"))
	return func(t *testing.T, method, path, body string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hangUp := time.AfterFunc(waitOfFuzz, cancel) // a long poll is none of its own fault
		defer hangUp.Stop()
		path, query, _ := strings.Cut(path, "?")
		r := httptest.NewRequestWithContext(ctx, method, "/api/v1"+path, strings.NewReader(body))
		r.URL.RawQuery = query // as it is, with bytes that no query has
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s %s: no JSON: %s", method, path, body, w.Body)
		}
	}
}

func FuzzCursor(f *testing.F) {
	ask := asker(f)
	for _, text := range []string{
		"", "{}", "[]", "null", "7", `"x"`, `{"Time":"2026-11-16T00:00:00Z","ID":5}`, `{"Time":"9999-12-31T23:59:59.999999999+23:59","ID":-9223372036854775808}`,
		`{"Time":"0000-01-01T00:00:00Z"}`, `"00000000-0000-0000-0000-000000000000"`, `{"ID":"ffffffff-ffff-ffff-ffff-ffffffffffff","Due":"0001-01-01T00:00:00Z"}`,
		`{"Part":1}`, `{"Part":255,"Worker":-1,"State":9,"Priority":99,"Queue":"\u0000"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, after := range []string{encode(text), text} {
			after = url.QueryEscape(after)
			for _, list := range []string{
				"/jobs?after=", "/jobs?order=due&queue=q&state=waiting&after=", "/jobs?order=finish&state=dead&after=", "/jobs?order=worker&state=running&after=",
				"/audit?after=", "/operations?after=",
			} {
				ask(t, "GET", list+after, "")
			}
		}
		body, err := json.Marshal(map[string]string{"after": text})
		if err != nil {
			t.Fatal(err)
		}
		ask(t, "POST", "/check", string(body))
	})
}

func FuzzDuration(f *testing.F) {
	ask := asker(f)
	for _, text := range []string{"", "0", "1ms", "1h30m", "-1s", "2562047h47m16.854775807s", "9e99h", ".5s", "1", "soon", "1µs", "1m1", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		d, q := string(raw), url.QueryEscape(text)
		ask(t, "POST", "/jobs", `{"kind":"k","in":`+d+`}`)
		ask(t, "POST", "/jobs", `{"kind":"k","timeout":`+d+`,"unique":{"held_for":`+d+`}}`)
		ask(t, "GET", "/metrics/series?range="+q, "")
		ask(t, "GET", "/metrics/series?step="+q, "")
		ask(t, "POST", "/check", `{"rows":100,"grace":`+d+`}`)
	})
}

func FuzzDraft(f *testing.F) {
	ask := asker(f)
	for _, text := range []string{
		`{"kind":"k"}`, `{"kind":"k","args":{"a":[1,2,{"b":null}]},"queue":"mail","priority":3,"in":"1h","tags":["x"],"needs":["gpu"],"headers":{"a":"b"}}`,
		`{"kind":"k","at":"2030-01-01T00:00:00Z","deadline":"2031-01-01T00:00:00+23:59","attempts":10000,"timeout":"5s","key":"acme"}`,
		`{"kind":"k","id":"0190b0e1-0000-7000-8000-000000000000","unique":{"key":"x","by_queue":true,"held_for":"24h"}}`,
		`{"kind":"k","at":"0000-01-01T00:00:00Z"}`, `{"kind":"k","at":"9999-12-31T23:59:59-23:59"}`, `{"kind":"k","deadline":"0001-01-01T00:00:01Z"}`,
		`{`, `[]`, `null`, `{"kind":null}`, `{"kind":"k","kind":"l"}`, `{"kind":"k","priority":1e400}`, `{"kind":"\ud800"}`, `{"kind":"k","args":` + strings.Repeat("[", 20000) + `}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { ask(t, "POST", "/jobs", text) })
}

func FuzzFilter(f *testing.F) {
	ask := asker(f)
	for _, text := range []string{
		"", "state=dead&queue=mail&kind=mail.*&key=k&tag=t&limit=5", "state=done,dead&finished_after=2026-01-01T00:00:00Z&finished_before=9999-12-31T23:59:59Z",
		"worker=7&state=running&order=worker", "due_before=0001-01-01T00:00:00Z&due_after=0000-01-01T00:00:00Z", "created_after=2026-02-30T00:00:00Z&cap=10000",
		"fingerprint=00ff&kind=*&limit=1000", "target=*&by=ann&action=retry&since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z",
		"from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&step=5m&queue=q&total=true", "range=720h&step=1m&kind=a*", "limit=1e3", "limit=-1&limit=2", "state=%00;%zz&&=&a",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, list := range []string{"/jobs", "/jobs/count", "/failures", "/audit", "/metrics/series", "/workers/loads", "/operations", "/queues", "/schedules", "/limits/x", "/watch", "/topics", "/events", "/cursors"} {
			ask(t, "GET", list+"?"+text, "")
		}
	})
}

// FuzzWork is for the protocol of workers.
func FuzzWork(f *testing.F) {
	ask := asker(f)
	const run = `{"id":"0190b0e1-0000-7000-8000-000000000000","run":1`
	for _, text := range []string{
		`{"queues":["default"],"kinds":["k"],"slots":3,"lost_after":"30s","label":"a","capabilities":["gpu"]}`, `{"queues":["default","default"],"kinds":["*"]}`,
		`{"limit":1}`, `{"limit":1000,"held":[` + run + `}],"wait":"1m"}`, `{"limit":0,"wait":"-1s"}`, `{"held":[{"id":"x","run":-1}],"limit":1}`,
		`{"notes":[` + run + `,"progress":{"done":5,"total":3,"note":"x"},"logs":[{"level":-4,"text":"a\u0000b"}]}]}`, `{"notes":null}`, `{"notes":[null]}`,
		`{"ends":[` + run + `,"outcome":"done","result":{"a":[1e400]},"took":"5ms","again":true}]}`, `{"ends":[` + run + `,"outcome":"failed","message":"\ud800","stack":"s","delay":"9999999h"}]}`,
		`{"ends":[` + run + `,"outcome":"snoozed","delay":"-1s"}]}`, `{"ends":[` + run + `,"outcome":"?"}]}`, `{`, `[]`, `{"ends":` + strings.Repeat("[", 20000) + `}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, route := range []string{"", "/1/claim", "/1/notes", "/1/finish", "/9223372036854775807/finish"} {
			ask(t, "POST", "/workers"+route, text)
		}
	})
}

func FuzzBulk(f *testing.F) {
	ask := asker(f)
	for _, text := range []string{
		`{"verb":"cancel","filter":{}}`, `{"verb":"retry","filter":{"state":["dead"],"kind":"mail.*","fingerprint":"ab"},"most":5,"pace":10,"dry_run":true}`,
		`{"verb":"requeue","queue":"x","filter":{"worker":7,"state":["waiting"]}}`, `{"verb":"set-priority","priority":9,"filter":{"due_after":"0000-01-01T00:00:00Z"}}`,
		`{"verb":"delete","filter":{"state":["dead","done"],"created_before":"9999-12-31T23:59:59Z","finished_after":"2026-01-01T00:00:00Z"}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { ask(t, "POST", "/operations", text) })
}
