package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl/server/httpapi"
)

// patience is how long something may take that only a fault keeps from happening.
const patience = time.Minute

var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-cli-")
	if err != nil {
		return "", err
	}
	built = dir
	if err := os.Chmod(dir, 0o755); err != nil { // a test runs it as somebody else
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "pawl"), ".").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return filepath.Join(dir, "pawl"), nil
})

// built is the folder of the program, if a test has asked for it.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// program is the program itself, to be started in a folder of the test's own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PAWL_STORE=", "PAWL_STORE_FILE=", "PAWL_SERVER=", "PAWL_CONFIG=", "PAWL_TOKEN=", "PAWL_QUEUES=", "TZ=UTC")
	return cmd
}

// ended runs a program to its end.
func endOf(t *testing.T, cmd *exec.Cmd) (out, problems string, code int) {
	t.Helper()
	var o, p bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &p
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return o.String(), p.String(), cmd.ProcessState.ExitCode()
}

// server is pawl serve as a process.
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	text *lines // what it told
	gone chan error
}

// lines is text that a process writes and a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startServer starts one on a port of its own and reads its address from what it prints.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	return startAs(t, nil, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
}

// startAs starts what serves, with more in its environment.
func startAs(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: program(t, args...), gone: make(chan error, 1)}
	s.cmd.Env = append(s.cmd.Env, env...)
	s.text = &lines{more: make(chan struct{}, 1)}
	s.cmd.Stderr = s.text
	from, to := io.Pipe()
	s.cmd.Stdout = to
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := s.cmd.Wait()
		_ = to.Close()
		s.gone <- err
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		if _, address, ok := strings.Cut(scanner.Text(), " http"); ok { // "pawl serves …", "pawl demo is at …"
			s.url = strings.TrimSuffix("http"+address, httpapi.Prefix)
			break
		}
	}
	if s.url == "" {
		t.Fatalf("it printed no address: %s", s.text)
	}
	go func() { _, _ = io.Copy(io.Discard, from) }()
	return s
}

// call is what curl would do.
func (s *server) call(method, path, body string, out any) {
	s.t.Helper()
	s.at(method, httpapi.Prefix+path, body, out)
}

// at is call for what is not the API's.
func (s *server) at(method, path, body string, out any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%v: %s", err, s.text)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		s.t.Fatalf("%s: %s, %v", answer.Status, text, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for a line of its log.
func (s *server) until(text string) {
	s.t.Helper()
	timeout := time.After(patience)
	for !strings.Contains(s.text.String(), text) {
		select {
		case <-s.text.more:
		case <-timeout:
			s.t.Fatalf("it never told %q: %s", text, s.text)
		}
	}
}

// end waits for its end and returns the exit code.
func (s *server) end() int {
	s.t.Helper()
	select {
	case <-s.gone:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		s.t.Fatalf("it does not end: %s", s.text)
	}
	return 0
}

func (s *server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// begin lets a job of an hour begin.
func (s *server) begin() (id string) {
	s.t.Helper()
	var r httpapi.Receipt
	s.call("POST", "/jobs", `{"kind":"pawl.demo.progress","args":{"steps":9000,"seconds":1}}`, &r)
	for {
		var j httpapi.Job
		s.call("GET", "/jobs/"+r.ID+"?wait=100ms", "", &j)
		if j.State == "running" {
			return r.ID
		}
	}
}

func TestU1_ServePrintsItsAddressAndWorks(t *testing.T) {
	s := startServer(t)
	var r httpapi.Receipt
	s.call("POST", "/jobs", `{"kind":"pawl.demo.echo","args":{"value":[1,2]}}`, &r)
	var j httpapi.Job
	s.call("GET", "/jobs/"+r.ID+"?wait=50s", "", &j)
	var result struct{ JSON json.RawMessage }
	s.call("GET", "/jobs/"+r.ID+"/result", "", &result)
	if j.State != "done" || string(result.JSON) != "[1,2]" {
		t.Errorf("%+v, %s", j, result.JSON)
	}
	if _, err := os.Stat(filepath.Join(s.cmd.Dir, "pawl.db")); err != nil {
		t.Error(err)
	}
	// The command line on the same server, as another process.
	cmd := program(t, "job", "enqueue", "pawl.demo.echo", `{"value":"hi"}`, "--json")
	cmd.Env = append(cmd.Env, "PAWL_SERVER="+s.url)
	out, problems, code := endOf(t, cmd)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("%d: %s%s", code, out, problems)
	}
	if out, problems, code := endOf(t, program(t, "--server", s.url, "job", "result", r.ID, "--wait")); out != "\"hi\"\n" || code != 0 {
		t.Errorf("%d: %q %s", code, out, problems)
	}
	// And on its store, beside it.
	file := filepath.Join(s.cmd.Dir, "pawl.db")
	if out, problems, code := endOf(t, program(t, "--store-file", file, "job", "result", r.ID)); out != "\"hi\"\n" || code != 0 {
		t.Errorf("%d: %q %s", code, out, problems)
	}
	s.signal(syscall.SIGINT)
	if code := s.end(); code != 0 {
		t.Errorf("exit %d: %s", code, s.text)
	}
}

func TestU1_ATermStopsServeWithExit0WhileAJobRuns(t *testing.T) {
	s := startServer(t, "--grace", "1s")
	id := s.begin()
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Fatalf("exit %d: %s", code, s.text)
	}
	out, problems, code := endOf(t, program(t, "--store-file", filepath.Join(s.cmd.Dir, "pawl.db"), "job", "get", id, "--json"))
	var j httpapi.Job
	if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 || j.State != "waiting" || j.Used != 0 {
		t.Errorf("%d, %v: the job did not go back: %s%s", code, err, out, problems)
	}
}

func TestU1_ASecondSignalEndsServeAtOnce(t *testing.T) {
	s := startServer(t, "--grace", "1h")
	s.begin()
	s.signal(syscall.SIGTERM)
	s.until("stopping")
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 1 {
		t.Errorf("exit %d: %s", code, s.text)
	}
}
