package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

// served is an engine behind its API.
type served struct {
	t   *testing.T
	e   *pawl.Engine
	url string
}

// serve starts one; who may call is said by auth.
func serve(t *testing.T, who auth.Auth, edit ...func(*pawl.Config)) *served {
	t.Helper()
	c := pawl.Config{Queues: pawl.Queues{"default": {Workers: 5}, "mail": {Workers: 5}}}
	for _, f := range edit {
		f(&c)
	}
	st := openStore(t, &c)
	e, err := pawl.New(st, c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.Handler(e, who))
	t.Cleanup(func() {
		server.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &served{t, e, server.URL}
}

// run lets the engine run until the test ends.
func (s *served) run() {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.e.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// call sends a request, holds its answer against the document, and reads it into out, if that is wanted.
func (s *served) call(method, path, body string, status int, out any, headers ...string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.StatusCode != status {
		s.t.Fatalf("%s %s: %s, want %d: %s", method, path, answer.Status, status, text)
	}
	if strings.HasPrefix(path, "/api/v1/openapi.") { // the document itself
	} else if err := s.document().check(method, path, answer.StatusCode, answer.Header.Get("Content-Type"), text); err != nil {
		s.t.Errorf("%s %s: %s is not as documented: %v", method, path, text, err)
	}
	if out == nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

// refused wants a problem of a kind.
func (s *served) refused(method, path, body string, status int, kind, detail string, headers ...string) {
	s.t.Helper()
	var p httpapi.Problem
	s.call(method, path, body, status, &p, headers...)
	if p.Kind != kind || p.Status != status || !strings.Contains(p.Detail, detail) {
		s.t.Errorf("%s %s: %+v, want %s with %q", method, path, p, kind, detail)
	}
}
