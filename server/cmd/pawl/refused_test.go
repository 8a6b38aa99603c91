package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

// within calls the program in this process, with an environment of its own.
func within(t *testing.T, env map[string]string, args ...string) (out, problems string, code int) {
	t.Helper()
	var o, p bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &p, now: time.Now, zone: time.UTC, env: func(name string) (string, bool) {
		text, ok := env[name]
		return text, ok
	}}
	code = a.run(t.Context(), args)
	return o.String(), p.String(), code
}

// refuses wants an exit code and a word on the error output, and nothing on the other.
func refuses(t *testing.T, code int, word string, env map[string]string, args ...string) {
	t.Helper()
	out, problems, got := within(t, env, args...)
	if got != code || !strings.Contains(problems, word) || out != "" {
		t.Errorf("%v %v: exit %d, want %d with %q:\n%s%s", env, args, got, code, word, out, problems)
	}
}

// A script that asks for JSON gets the problem as JSON, also of a flag that comes before --json and is wrong.
func TestU8_AWrongFlagIsAProblemForScripts(t *testing.T) {
	refuses(t, 2, `"kind":"usage"`, nil, "job", "list", "--nope", "--json")
	refuses(t, 2, `"kind":"usage"`, nil, "job", "list", "--limit", "x", "--json")
	refuses(t, 2, "pawl: unknown flag", nil, "job", "list", "--nope", "--", "--json")
}

func TestU8_AServerThatIsNotThereIsUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	refuses(t, 4, "connection refused", nil, "--server", nobody, "job", "list")
	refuses(t, 4, `"kind":"unreachable"`, nil, "--server", nobody, "job", "list", "--json")

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "welcome", http.StatusTeapot) }))
	defer other.Close()
	refuses(t, 4, "is no Pawl server", nil, "--server", other.URL, "job", "list")

	hanging := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-hanging }))
	defer slow.Close()
	defer close(hanging)
	refuses(t, 4, "no answer in time", nil, "--server", slow.URL, "job", "list", "--request-timeout", "10ms")

	sends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	defer sends.Close()
	refuses(t, 4, "302", map[string]string{"PAWL_TOKEN": "secret"}, "--server", sends.URL, "job", "list")
}

func TestU8_AnAddressThatIsNoneIsRefused(t *testing.T) {
	for _, c := range []struct{ name, value, word string }{
		{"PAWL_SERVER", "ftp://x", "must be an address"}, {"PAWL_SERVER", "http://ann:secret@x", "must hold no name or password"},
		{"PAWL_SERVER", "127.0.0.1:7340", "must be an address"}, {"PAWL_STORE", "mysql://ann:secret@x", "is not one of"},
		{"PAWL_STORE", "work.db", "has no scheme"}, {"PAWL_REQUEST_TIMEOUT", "soon", "must be a time"},
	} {
		refuses(t, 2, c.word, map[string]string{c.name: c.value}, "job", "list")
		if _, problems, _ := within(t, map[string]string{c.name: c.value}, "job", "list"); strings.Contains(problems, "secret") {
			t.Error(problems)
		}
	}
	both := map[string]string{"PAWL_SERVER": "http://127.0.0.1:1", "PAWL_STORE_FILE": "x.db"}
	refuses(t, 2, "give one", both, "job", "list")
	refuses(t, 4, "y.db", both, "--store-file", "y.db", "job", "list") // the flag counts
	refuses(t, 2, "needs a store", nil, "migrate", "up")
}

func TestU8_ATokenIsShownAndNeverPrinted(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	who := auth.Func(func(r *http.Request) (auth.Identity, error) {
		switch r.Header.Get("Authorization") {
		case "":
			return auth.Identity{}, auth.ErrNoToken
		case "Bearer secret-1":
			return auth.Identity{Name: "ann", Role: auth.Viewer}, nil
		}
		return auth.Identity{}, auth.ErrBadToken
	})
	s := httptest.NewServer(httpapi.Handler(e, who))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(env ...string) map[string]string {
		m := map[string]string{"PAWL_SERVER": s.URL}
		for i := 0; i+1 < len(env); i += 2 {
			m[env[i]] = env[i+1]
		}
		return m
	}
	refuses(t, 1, "a token is needed", at(), "job", "count")
	refuses(t, 1, "not known", at("PAWL_TOKEN", "secret-2"), "job", "count")
	refuses(t, 1, "needs the role operator", at("PAWL_TOKEN", "secret-1"), "job", "enqueue", "k")
	refuses(t, 2, "no such file", at("PAWL_TOKEN_FILE", "nowhere"), "job", "count")
	for _, env := range []map[string]string{at("PAWL_TOKEN", "secret-1"), at("PAWL_TOKEN_FILE", file)} {
		if out, problems, code := within(t, env, "job", "count"); code != 0 || out != "0\n" {
			t.Errorf("%d: %s%s", code, out, problems)
		}
	}
	if out, _, code := within(t, at("PAWL_TOKEN", "secret-2"), "--token-file", file, "job", "count"); code != 0 || out != "0\n" {
		t.Errorf("the flag does not count: %d %s", code, out)
	}
}

func TestU8_AStoreIsNeverMadeNorMigratedUnasked(t *testing.T) {
	dir := t.TempDir()
	missing, empty, foreign := filepath.Join(dir, "missing.db"), filepath.Join(dir, "empty.db"), filepath.Join(dir, "letter.txt")
	for name, text := range map[string]string{empty: "", foreign: strings.Repeat("Dear Ann, this is a letter. ", 100)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refuses(t, 4, "no such file", nil, "--store-file", missing, "job", "list")
	refuses(t, 4, "no such file", map[string]string{"PAWL_STORE": "sqlite:" + missing}, "job", "enqueue", "k")
	refuses(t, 4, "pawl migrate up", nil, "--store-file", empty, "job", "list")
	refuses(t, 4, "not a database", nil, "--store-file", foreign, "job", "list")
	refuses(t, 4, "not a database", nil, "--store-file", foreign, "migrate", "up")
	refuses(t, 4, "not a regular file", nil, "--store-file", dir, "job", "list")
	refuses(t, 4, "not a database", nil, "--store-file", foreign, "serve", "--listen", "127.0.0.1:0")
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("the file was made: %v", err)
	}
	if text, err := os.ReadFile(empty); err != nil || len(text) != 0 {
		t.Errorf("it was migrated: %d bytes, %v", len(text), err)
	}
	status := func(file string, code int, word string) {
		t.Helper()
		if out, problems, got := within(t, nil, "--store-file", file, "migrate", "status"); got != code || !strings.HasPrefix(out, word) {
			t.Errorf("%d: %s%s", got, out, problems)
		}
	}
	status(empty, 1, "older: ")
	if out, problems, code := within(t, nil, "--store-file", empty, "migrate", "up"); code != 0 || !strings.Contains(out, "was brought") {
		t.Errorf("%d: %s%s", code, out, problems)
	}
	status(empty, 0, "current: ")
	if out, problems, code := within(t, nil, "--store-file", empty, "migrate", "up", "--json"); code != 0 || !strings.Contains(out, "already") {
		t.Errorf("%d: %s%s", code, out, problems)
	}
	if out, problems, code := within(t, nil, "--store-file", empty, "job", "count"); code != 0 || out != "0\n" {
		t.Errorf("%d: %s%s", code, out, problems)
	}
}

func TestU8_AFileOfSomebodyElseIsRefused(t *testing.T) {
	cmd := program(t, "--store-file", "work.db", "job", "list")
	if out, problems, code := endOf(t, program(t, "--store-file", filepath.Join(cmd.Dir, "work.db"), "migrate", "up")); code != 0 {
		t.Fatalf("%d: %s%s", code, out, problems)
	}
	if err := os.Chmod(filepath.Join(cmd.Dir, "work.db"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // who may read everything
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		for dir := cmd.Dir; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, problems, code := endOf(t, cmd); code != 4 || !strings.Contains(problems, "permission denied") || out != "" {
		t.Errorf("%d: %s%s", code, out, problems)
	}
}

func TestU8_AnInterruptedCallSaysSo(t *testing.T) {
	begun := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { close(begun); <-r.Context().Done() }))
	defer s.Close()
	var o, p bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &p, now: time.Now, zone: time.UTC, env: func(string) (string, bool) { return "", false }}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if code := a.run(ctx, []string{"--server", s.URL, "job", "list"}); code != 1 || p.String() != "pawl: interrupted\n" {
		t.Errorf("%d: %s", code, p.String())
	}
}
