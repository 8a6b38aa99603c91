package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawlwork/pawl/server/auth"
)

const structure = "testdata/openapi-3.1.schema.json"

// document is the OpenAPI document as it is served, for holding answers against it.
type document struct {
	mu       sync.Mutex
	root     map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by their place
	routes   []*documented
}

// documented is one route.
type documented struct {
	method, path string
	matches      *regexp.Regexp
	literals     int // segments that are no parameter: the most decide
	operation    map[string]any
}

// readDocument asks a server for its document.
func readDocument(url string) (*document, error) {
	answer, err := http.Get(url + "/api/v1/openapi.json")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return parseDocument(answer.Body)
}

func parseDocument(from io.Reader) (*document, error) {
	parsed, err := jsonschema.UnmarshalJSON(from)
	if err != nil {
		return nil, err
	}
	root, ok := parsed.(map[string]any)
	if !ok {
		return nil, errors.New("the document is no object")
	}
	d := &document{root: root, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("document.json", root); err != nil {
		return nil, err
	}
	paths, _ := root["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, op := range methods {
			r := &documented{method: strings.ToUpper(method), path: path}
			if r.operation, ok = op.(map[string]any); !ok {
				continue
			}
			pattern := "^"
			for _, segment := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
				if strings.HasPrefix(segment, "{") {
					pattern += "/[^/]+"
				} else {
					pattern += "/" + regexp.QuoteMeta(segment)
					r.literals++
				}
			}
			r.matches = regexp.MustCompile(pattern + "$")
			d.routes = append(d.routes, r)
		}
	}
	slices.SortFunc(d.routes, func(a, b *documented) int { return strings.Compare(a.path+" "+a.method, b.path+" "+b.method) })
	return d, nil
}

// read is the document that the first test has read: every server has the same.
var read atomic.Pointer[document]

// document is that of the server.
func (s *served) document() *document {
	s.t.Helper()
	if d := read.Load(); d != nil {
		return d
	}
	d, err := readDocument(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	read.Store(d)
	return d
}

// route is the one that serves a path.
func (d *document) route(method, path string) *documented {
	var best *documented
	for _, r := range d.routes {
		if r.method == method && r.matches.MatchString(path) && (best == nil || r.literals > best.literals) {
			best = r
		}
	}
	return best
}

// schema is the one at a place.
func (d *document) schema(place ...string) (*jsonschema.Schema, error) {
	at := "document.json#"
	for _, p := range place {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[at]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(at)
	d.compiled[at] = s
	return s, err
}

// validate holds a text against the schema at a place.
func (d *document) validate(text []byte, place ...string) error {
	s, err := d.schema(place...)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// check holds an answer against the document: its status, its media type and its body. What no route serves has to be a
// problem.
func (d *document) check(method, path string, status int, mediaType string, body []byte) error {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	path, _, _ = strings.Cut(path, "?")
	r := d.route(method, path)
	if r == nil {
		if mediaType != "application/problem+json" {
			return fmt.Errorf("no route is documented, and the answer is %s", mediaType)
		}
		return d.validate(body, "components", "schemas", "Problem")
	}
	key := fmt.Sprint(status)
	responses := r.operation["responses"].(map[string]any)
	if _, ok := responses[key]; !ok {
		if status < 400 {
			return fmt.Errorf("%d is not documented", status)
		}
		key = "default"
	}
	content, _ := responses[key].(map[string]any)["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("a body is not documented: %s", body)
		}
		return nil
	}
	if content[mediaType] == nil {
		return fmt.Errorf("%q is not documented, but %v", mediaType, slices.Collect(maps.Keys(content)))
	}
	if !strings.HasSuffix(mediaType, "json") {
		return nil
	}
	return d.validate(body, "paths", r.path, strings.ToLower(method), "responses", key, "content", mediaType, "schema")
}

// wellFormed reports what is wrong with the document itself.
func (d *document) wellFormed() error {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	file, err := os.Open(structure)
	if err != nil {
		return err
	}
	defer file.Close()
	rules, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return err
	}
	if err := c.AddResource(structure, rules); err != nil {
		return err
	}
	s, err := c.Compile(structure)
	if err != nil {
		return err
	}
	if err := s.Validate(d.root); err != nil {
		return err
	}
	components := d.root["components"].(map[string]any)
	for name := range components["schemas"].(map[string]any) {
		if _, err := d.schema("components", "schemas", name); err != nil { // its references lead somewhere
			return err
		}
	}
	ids := map[string]bool{}
	for _, r := range d.routes {
		if err := r.wellFormed(d, ids, components["securitySchemes"].(map[string]any)); err != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
	}
	return nil
}

var parameterInPath = regexp.MustCompile(`\{([^}]*)\}`)

func (r *documented) wellFormed(d *document, ids map[string]bool, schemes map[string]any) error {
	id := r.operation["operationId"].(string)
	if ids[id] {
		return fmt.Errorf("operationId %q is another's too", id)
	}
	ids[id] = true
	for _, one := range r.operation["security"].([]any) {
		for name := range one.(map[string]any) {
			if schemes[name] == nil {
				return fmt.Errorf("there is no security scheme %q", name)
			}
		}
	}
	var inPath, declared []string
	for _, m := range parameterInPath.FindAllStringSubmatch(r.path, -1) {
		inPath = append(inPath, m[1])
	}
	parameters, _ := r.operation["parameters"].([]any)
	seen := map[string]bool{}
	for i, p := range parameters {
		p := p.(map[string]any)
		name := p["in"].(string) + " " + p["name"].(string)
		if seen[name] {
			return fmt.Errorf("parameter %s is there twice", name)
		}
		seen[name] = true
		if p["in"] == "path" {
			declared = append(declared, p["name"].(string))
		}
		if _, err := d.schema("paths", r.path, strings.ToLower(r.method), "parameters", fmt.Sprint(i), "schema"); err != nil {
			return err
		}
	}
	for status, response := range r.operation["responses"].(map[string]any) {
		content, _ := response.(map[string]any)["content"].(map[string]any)
		for mediaType := range content {
			place := []string{"paths", r.path, strings.ToLower(r.method), "responses", status, "content", mediaType, "schema"}
			if _, err := d.schema(place...); err != nil {
				return err
			}
		}
	}
	slices.Sort(inPath)
	slices.Sort(declared)
	if !slices.Equal(inPath, declared) {
		return fmt.Errorf("parameters of the path are %v, declared are %v", inPath, declared)
	}
	return nil
}

func TestU2_TheDocumentIsValidOpenAPI31(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	d, err := readDocument(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.wellFormed(); err != nil {
		t.Error(err)
	}
	if len(d.routes) < 18 {
		t.Errorf("%d routes", len(d.routes))
	}
}

// The checker itself: a document or an answer that is wrong is refused.
func TestU2_AWrongDocumentOrAnswerIsNoticed(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	answer, err := http.Get(s.url + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for old, wrong := range map[string]string{
		`"openapi":"3.1.0"`: `"openapi":"3.0.3"`, `"operationId":"list-jobs"`: `"operationId":"get-job"`, `"in":"path"`: `"in":"somewhere"`,
		`"#/components/schemas/Receipt"`: `"#/components/schemas/Recipe"`, `"description":"Created"`: `"says":"Created"`,
		`"type":"boolean"`: `"type":"bool"`, `{"token":[]}`: `{"key":[]}`,
	} {
		changed := bytes.Replace(text, []byte(old), []byte(wrong), 1)
		if bytes.Equal(changed, text) {
			t.Fatalf("%s is not in the document", old)
		}
		if d, err := parseDocument(bytes.NewReader(changed)); err == nil && d.wellFormed() == nil {
			t.Errorf("%s instead of %s went unnoticed", wrong, old)
		}
	}
	d := s.document()
	for name, err := range map[string]error{
		"status":       d.check("GET", "/api/v1/jobs", 206, "application/json", []byte(`{"jobs":[]}`)),
		"type":         d.check("GET", "/api/v1/jobs", 200, "text/plain", []byte(`{"jobs":[]}`)),
		"null":         d.check("GET", "/api/v1/jobs", 200, "application/json", []byte(`{"jobs":null}`)),
		"missing":      d.check("GET", "/api/v1/jobs/count", 200, "application/json", []byte(`{}`)),
		"unknown":      d.check("GET", "/api/v1/jobs/count", 200, "application/json", []byte(`{"jobs":1,"mroe":true}`)),
		"format":       d.check("POST", "/api/v1/jobs", 201, "application/json", []byte(`{"id":"7"}`)),
		"no problem":   d.check("GET", "/api/v1/jobs", 404, "application/json", []byte(`{}`)),
		"kind":         d.check("GET", "/api/v1/jobs", 404, "application/problem+json", []byte(`{"type":"about:blank","status":404,"title":"x","kind":"gone-fishing"}`)),
		"no route":     d.check("GET", "/api/v1/nothing", 404, "text/plain", []byte(`404`)),
		"wrong method": d.check("PUT", "/api/v1/jobs", 405, "text/plain", []byte(`no`)),
	} {
		if err == nil {
			t.Errorf("%s went unnoticed", name)
		}
	}
	if err := d.check("GET", "/api/v1/jobs/count", 200, "application/json", []byte(`{"jobs":1}`)); err != nil {
		t.Error(err)
	}
}
