package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// random makes requests from the document: mostly such as it asks for, some that are wrong on purpose.
type random struct {
	*rand.Rand
	d   *document
	ids map[string][]string // that were answered, by noun: most requests are about them
}

// words are values that mean something somewhere, and some that mean trouble.
var words = []string{
	"", "a", "default", "mail", "k", "mail.*", "*", "waiting", "1ms", "0s", "1h", "-1s", "9999999h", "5m", "1e9", "NaN", "null", "true", "{}", "[]", "e30", "W10",
	"2026-11-16T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-02-30T00:00:00Z", "-1", "0", "1", "9223372036854775807",
	"9223372036854775808", "../..", "a b", "ä", "\x00", "\xff", "\u2028", "%", "%zz", "'; DROP TABLE pawl_job; --", strings.Repeat("x", 300), "overview", "queue:mail",
	"job:00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
}

func (r *random) word() string { return words[r.IntN(len(words))] }

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

func (r *random) id(noun string) string {
	if known := r.ids[noun]; len(known) > 0 && r.chance(85) {
		return known[r.IntN(len(known))]
	}
	return pawl.ID{byte(r.IntN(256)), 15: byte(r.IntN(256))}.String()
}

// cursor is a place in some list, or nearly one.
func (r *random) cursor() string {
	places := []string{
		`{}`, `[]`, `"x"`, `{"Time":"2026-11-16T00:00:00Z","ID":5}`, `{"Time":"0001-01-01T00:00:00Z","ID":-9223372036854775808}`, `{"ID":"x"}`,
		`{"id":"` + r.id("jobs") + `"}`, `{"ID":"` + r.id("jobs") + `","Due":"9999-12-31T23:59:59Z"}`, `{"Part":3}`, `{"part":200}`,
		`"` + r.id("operations") + `"`, `null`, `7`,
	}
	return encode(places[r.IntN(len(places))])
}

// value makes one of a schema. name is what it is called: some names mean more than their schema says.
func (r *random) value(schema map[string]any, name string, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		schema = r.d.root["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		kind = kinds[r.IntN(len(kinds))].(string)
	}
	switch wrong := r.chance(4); {
	case name == "wait": // nobody waits here
		return []string{"1ms", "0s", "", "soon", "2h"}[r.IntN(5)]
	case wrong:
		return []any{nil, true, -1, 1 << 53, 1.5, r.word(), []any{}, map[string]any{"x": 1}}[r.IntN(8)]
	case schema["enum"] != nil:
		list := schema["enum"].([]any)
		return list[r.IntN(len(list))]
	case name == "after" && r.chance(70):
		return r.cursor()
	case name == "worker" && r.chance(80):
		return 1 + r.IntN(8)
	case name == "subject" && r.chance(80):
		return []string{"overview", "queue:mail", "job:" + r.id("jobs")}[r.IntN(3)]
	}
	switch kind {
	case "null":
		return nil
	case "boolean":
		return r.chance(50)
	case "integer", "number":
		low, high := bound(schema, "minimum", 0), bound(schema, "maximum", 1000)
		return low + r.Int64N(min(high-low, 1000)+1)
	case "array":
		list := []any{}
		for range r.IntN(4) {
			list = append(list, r.value(schema["items"].(map[string]any), name, depth+1))
		}
		return list
	case "object":
		return r.object(schema, depth)
	case "string":
		switch schema["format"] {
		case "uuid":
			return r.id("jobs")
		case "date-time":
			if r.chance(10) {
				return []string{"9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"}[r.IntN(4)]
			}
			return time.Unix(1_790_000_000+r.Int64N(10_000_000), r.Int64N(1e9)).UTC().Format(time.RFC3339Nano)
		}
		if r.chance(60) {
			return []string{"default", "mail", "k", "1ms", "5m", "1h"}[r.IntN(6)]
		}
		return r.word()
	}
	return r.word() // anything goes
}

func bound(schema map[string]any, name string, or int64) int64 {
	if n, ok := schema[name].(json.Number); ok {
		if v, err := n.Int64(); err == nil {
			return v
		}
	}
	return or
}

func (r *random) object(schema map[string]any, depth int) map[string]any {
	out := map[string]any{}
	if depth > 5 {
		return out
	}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(properties)) // in an order, so that a seed makes the same again
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if p := 25; slices.Contains(required, any(name)) && r.chance(97) || r.chance(p) {
			out[name] = r.value(properties[name].(map[string]any), name, depth+1)
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for range r.IntN(3) {
			out[r.word()] = r.value(more, "", depth+1)
		}
	}
	if r.chance(2) {
		out[r.word()] = r.word()
	}
	return out
}

// noun is that of a route.
func noun(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
	return name
}

// request makes one of a route.
func (r *random) request(ctx context.Context, base string, of *documented) (*http.Request, string, error) {
	path, query, headers := of.path, url.Values{}, http.Header{}
	parameters, _ := of.operation["parameters"].([]any)
	for _, p := range parameters {
		p := p.(map[string]any)
		name, schema := p["name"].(string), p["schema"].(map[string]any)
		value := r.value(schema, name, 0)
		text := fmt.Sprint(value)
		if p["in"] == "path" && name == "id" && r.chance(95) {
			text = r.id(noun(path))
		}
		if list, ok := value.([]any); ok {
			text = strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
		}
		switch {
		case p["in"] == "path":
			if text == "" || r.chance(3) {
				text = "x" + r.word()
			}
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(text))
		case p["required"] != true && r.chance(65):
		case p["in"] == "query":
			query.Set(name, text)
		case p["in"] == "header":
			headers.Set(name, url.QueryEscape(text))
		}
	}
	if r.chance(2) {
		query.Set(r.word(), r.word())
	}
	var body []byte
	if content, ok := of.operation["requestBody"].(map[string]any); ok {
		schema := content["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
		var err error
		if body, err = json.Marshal(r.value(schema, "", 0)); err != nil {
			return nil, "", err
		}
		if r.chance(3) && len(body) > 0 {
			body = append(body[:r.IntN(len(body))], r.word()...)
		}
		headers.Set("Content-Type", "application/json")
		if r.chance(2) {
			headers.Set("Content-Type", []string{"text/plain", "application/x-www-form-urlencoded", "application/xml", "x"}[r.IntN(4)])
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, of.method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header = headers
	return request, fmt.Sprintf("%s %s %s", of.method, path, body), nil
}

// ask sends one request of a route and reports what is wrong with its answer.
func (r *random) ask(ctx context.Context, base string, of *documented) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, text, err := r.request(ctx, base, of)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) { // a long poll
			return nil
		}
		return fmt.Errorf("%s: %w", text, err)
	}
	defer answer.Body.Close()
	var body []byte
	if answer.Header.Get("Content-Type") == "text/event-stream" { // which does not end
		body = make([]byte, 10)
		_, err = io.ReadFull(answer.Body, body)
	} else {
		body, err = io.ReadAll(answer.Body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if answer.StatusCode >= 500 {
		return fmt.Errorf("%s: %s: %s", text, answer.Status, body)
	}
	if err := r.d.check(of.method, request.URL.EscapedPath(), answer.StatusCode, answer.Header.Get("Content-Type"), body); err != nil {
		return fmt.Errorf("%s: %s: %s: %w", text, answer.Status, body, err)
	}
	var named struct{ ID string }
	if json.Unmarshal(body, &named) == nil && named.ID != "" {
		name := noun(of.path)
		if r.ids[name] = append(r.ids[name], named.ID); len(r.ids[name]) > 20 {
			r.ids[name] = r.ids[name][1:]
		}
	}
	return nil
}

// askAtRandom has some clients make requests side by side while more says so.
func (s *served) askAtRandom(seed uint64, more func(asked int) bool) {
	s.t.Helper()
	d := s.document()
	var wait sync.WaitGroup
	for client := range 4 {
		wait.Go(func() {
			r := &random{Rand: rand.New(rand.NewPCG(seed, uint64(client))), d: d, ids: map[string][]string{}}
			for n := 0; more(n) && !s.t.Failed(); n++ {
				if err := r.ask(s.t.Context(), s.url, d.routes[(n+r.IntN(3))%len(d.routes)]); err != nil {
					s.t.Errorf("seed %d, client %d, request %d: %v", seed, client, n, err)
				}
			}
		})
	}
	wait.Wait()
}

// serveRandom is a server with some work, for requests at random.
func serveRandom(t *testing.T) *served {
	t.Helper()
	s := serve(t, auth.Open("ops"))
	pawl.HandleRawResult(s.e, "k", func(_ context.Context, j *pawl.Job[pawl.Raw]) (pawl.Raw, error) {
		if len(j.Args)%2 == 0 {
			return nil, errors.New("even")
		}
		return pawl.Raw(`{"is":"odd"}`), nil
	})
	s.run()
	return s
}

func TestU2_RandomRequestsGetNoFault(t *testing.T) {
	serveRandom(t).askAtRandom(1, func(asked int) bool { return asked < 400 })
}
