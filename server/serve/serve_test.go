package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/server/serve"
	"github.com/pawlwork/pawl/store/sqlite"
)

// served is a server that listens, with its engine on a file.
type served struct {
	t      *testing.T
	e      *pawl.Engine
	url    string
	client *http.Client
	log    *lockedBuffer
	stop   context.CancelFunc
	ended  chan error
	over   bool
}

// lockedBuffer takes a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func engine(t *testing.T) *pawl.Engine {
	t.Helper()
	e, err := pawl.New(sqlite.File(filepath.Join(t.TempDir(), "work.db")), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 5}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// start serves an engine until the test ends.
func start(t *testing.T, edit ...func(*serve.Config)) *served {
	t.Helper()
	s := &served{t: t, log: &lockedBuffer{}, ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ready := make(chan string, 1)
	c := serve.Config{
		Listen: "127.0.0.1:0", Version: "v7", Ready: func(url string) { ready <- url },
		Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range edit {
		f(&c)
	}
	if c.Engine == nil {
		c.Engine = engine(t)
	}
	s.e = c.Engine
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.ended <- serve.Run(ctx, c) }()
	select {
	case s.url = <-ready:
	case err := <-s.ended:
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// end stops it and wants a clean end.
func (s *served) end() {
	if s.over {
		return
	}
	s.over = true
	s.client.CloseIdleConnections()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Errorf("the server ended with %v", err)
	}
}

// do sends a request; headers come in pairs, of which Host is the name it is called by.
func (s *served) do(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") == "text/event-stream" {
		return answer, ""
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// want sends a request and wants a status.
func (s *served) want(status int, method, path, body string, headers ...string) string {
	s.t.Helper()
	answer, text := s.do(method, path, body, headers...)
	if answer.StatusCode != status {
		s.t.Errorf("%s %s %q: %s, want %d: %s", method, path, headers, answer.Status, status, text)
	}
	if status >= 400 && status != 503 && path != "/readyz" {
		var p httpapi.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != status || p.Kind == "" || p.Detail == "" {
			s.t.Errorf("%s %s: no problem: %s", method, path, text)
		}
	}
	return text
}

// people are tokens in a file.
type people struct {
	path    string
	secrets map[string]string
}

func newPeople(t *testing.T, roles ...auth.Role) *people {
	t.Helper()
	p := &people{path: filepath.Join(t.TempDir(), "tokens"), secrets: map[string]string{}}
	var lines []string
	for _, role := range roles {
		secret, hash := auth.NewToken()
		p.secrets[role.String()] = secret
		lines = append(lines, auth.Token{Name: "the-" + role.String(), Role: role, Hash: hash}.String())
	}
	if err := os.WriteFile(p.path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *people) file(c *serve.Config) { c.TokenFile = p.path }

// as is the header of a role's token.
func (p *people) as(role auth.Role) []string {
	return []string{"Authorization", "Bearer " + p.secrets[role.String()]}
}

func TestU1_ServesAnEngineAndStopsWithARunningJob(t *testing.T) {
	e := engine(t)
	began, finish := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(finish) })
	defer release() // before anybody waits for the job
	pawl.HandleRaw(e, "slow", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
		close(began)
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	s := start(t, func(c *serve.Config) { c.Engine, c.Run, c.StopTime = e, true, time.Hour })
	s.want(200, "GET", "/", "")
	s.want(200, "GET", "/healthz", "")
	var r httpapi.Receipt
	if err := json.Unmarshal([]byte(s.want(201, "POST", "/api/v1/jobs", `{"kind":"slow"}`)), &r); err != nil {
		t.Fatal(err)
	}
	<-began
	s.want(200, "GET", "/readyz", "")
	if !strings.Contains(s.want(200, "GET", "/api/v1/openapi.json", ""), `"v7"`) {
		t.Error("the document has not the version")
	}

	// A long poll is ended by the stop, the job is not.
	polled := make(chan string, 1)
	go func() {
		answer, err := s.client.Get(s.url + "/api/v1/jobs/" + r.ID + "?wait=1m")
		if err != nil {
			polled <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		polled <- answer.Status + string(text)
	}()
	for !strings.Contains(s.want(200, "GET", "/metrics", ""), "\npawl_http_active_connections 2\n") { // until the poll waits
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.stop()
	if said := <-polled; !strings.HasPrefix(said, "503") || !strings.Contains(said, `"kind":"closed"`) {
		t.Errorf("%s: who waits is not told that the server stops", said)
	}
	select {
	case err := <-s.ended:
		s.ended <- err // for who waits for it
		t.Fatalf("it ended with %v while a job ran", err)
	case <-time.After(300 * time.Millisecond): // nothing tells that it goes on; one that does not has ended by now
	}
	release()
	s.end()
	id, err := pawl.ParseID(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if j, err := e.Get(t.Context(), id); err != nil || j.State != pawl.StateDone {
		t.Errorf("%s, %v", j.State, err)
	}
}

func TestU1_RequestsFinishBeforeTheStop(t *testing.T) {
	s := start(t)
	reader, writer := io.Pipe()
	answered := make(chan string, 1)
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1/jobs", reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Expect", "100-continue") // so that the test knows when it has begun
	s.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
	go func() {
		answer, err := s.client.Do(r)
		if err != nil {
			answered <- err.Error()
			return
		}
		answer.Body.Close()
		answered <- answer.Status
	}()
	if _, err := writer.Write([]byte(`{"kind":`)); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if _, err := writer.Write([]byte(`"k"}`)); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if status := <-answered; status != "201 Created" {
		t.Error(status)
	}
	s.end()
}

func TestU1_AnEngineWithoutHandlersIsOnlyServed(t *testing.T) {
	s := start(t, func(c *serve.Config) { c.Run = true })
	s.want(200, "GET", "/readyz", "")
	s.want(201, "POST", "/api/v1/jobs", `{"kind":"k"}`)
	s.end()
	if !strings.Contains(s.log.String(), "only served") {
		t.Error(s.log.String())
	}
}

func TestU1_NotReadyWithoutItsStoreOrRun(t *testing.T) {
	e := engine(t)
	pawl.HandleRaw(e, "k", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	s := start(t, func(c *serve.Config) { c.Engine = e })
	if text := s.want(503, "GET", "/readyz", ""); !strings.Contains(text, "Run does not run") {
		t.Error(text)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if text := s.want(503, "GET", "/readyz", ""); !strings.Contains(text, "the store does not answer") {
		t.Error(text)
	}
	s.want(200, "GET", "/healthz", "")
	if text := s.want(200, "GET", "/metrics", ""); !strings.Contains(text, "\npawl_store_up 0\n") {
		t.Error(text)
	}
}

func TestU1_AFaultOfTheEngineEndsTheServer(t *testing.T) {
	e := engine(t)
	pawl.HandleRaw(e, "k", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- e.Run(ctx) }()
	defer func() { stop(); <-running }()
	for e.Ready(ctx) != nil { // the other Run has begun
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	err := serve.Run(ctx, serve.Config{Engine: e, Run: true, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, pawl.ErrRunning) {
		t.Error(err)
	}
}

func TestU5_FaultsOfTheConfigurationAreRefused(t *testing.T) {
	e := engine(t)
	fine := newPeople(t, auth.Viewer).path
	loose := newPeople(t, auth.Viewer).path
	if err := os.Chmod(loose, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config serve.Config
		want   string
	}{
		{serve.Config{Listen: "0.0.0.0:0"}, "needs a token file"},
		{serve.Config{Listen: ":0"}, "needs a token file"},
		{serve.Config{Listen: "[::]:0"}, "needs a token file"},
		{serve.Config{Listen: "192.0.2.7:80"}, "needs a token file"},
		{serve.Config{Listen: "7340"}, "must be host and port"},
		{serve.Config{TokenFile: fine, Listen: "127.0.0.1:0", TLSCert: "cert.pem"}, "both must be given"},
		{serve.Config{TokenFile: fine, Listen: "127.0.0.1:0", TLSKey: "key.pem"}, "both must be given"},
		{serve.Config{TokenFile: fine, Listen: "127.0.0.1:0", TLSKey: "key.pem", TLSCert: "cert.pem"}, "cert.pem"},
		{serve.Config{Listen: "127.0.0.1:0", TokenFile: loose}, "chmod 600"},
		{serve.Config{Listen: "127.0.0.1:0", TokenFile: fine + "x"}, "no such file"},
		{serve.Config{Listen: "127.0.0.1:0", Rate: -1}, "Rate -1"},
		{serve.Config{Listen: "127.0.0.1:0", MaxConns: -1}, "MaxConns -1"},
		{serve.Config{Listen: "127.0.0.1:0", Hosts: []string{"http://x"}}, `host "http://x"`},
		{serve.Config{Listen: ":0", TLSKey: "key.pem", Rate: -1}, "Rate -1"},
	} {
		c.config.Engine, c.config.Logger = e, slog.New(slog.DiscardHandler)
		ctx, stop := context.WithCancel(t.Context())
		c.config.Ready = func(url string) {
			t.Errorf("%+v listens on %s", c.config, url)
			stop()
		}
		err := serve.Run(ctx, c.config)
		stop()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := serve.Run(t.Context(), serve.Config{}); err == nil || !strings.Contains(err.Error(), "Engine") {
		t.Error(err)
	}
}

// 0.0.0.0 is opened as [::], and is told as it was asked for, with the port that it got.
func TestU1_TheAddressIsToldAsItWasAskedFor(t *testing.T) {
	people := newPeople(t, auth.Viewer)
	for _, host := range []string{"0.0.0.0", "127.0.0.1", "localhost"} {
		s := start(t, people.file, func(c *serve.Config) { c.Listen = host + ":0" })
		port, ok := strings.CutPrefix(s.url, "http://"+host+":")
		if !ok || port == "" || port == "0" {
			t.Errorf("%s: %s", host, s.url)
		}
	}
}
