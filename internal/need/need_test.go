package need

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recorder is a test's handle that tells how the test ended instead of ending it.
type recorder struct {
	testing.TB // only for what is not overridden below: a call to it would be a nil dereference and fail the test
	name       string
	end        string // "skip: …" or "fatal: …"
	cleanups   []func()
	errors     []string
}

type ended struct{}

func (r *recorder) Helper()          {}
func (r *recorder) Name() string     { return r.name }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Skipf(f string, a ...any) {
	r.end = "skip: " + fmt.Sprintf(f, a...)
	panic(ended{})
}
func (r *recorder) Fatalf(f string, a ...any) {
	r.end = "fatal: " + fmt.Sprintf(f, a...)
	panic(ended{})
}
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

// observe runs f as a test of that name would.
func observe(name string, f func(testing.TB)) (r *recorder) {
	r = &recorder{name: name}
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(ended); !ok {
				panic(p)
			}
		}
	}()
	f(r)
	return r
}

// nothing takes every server and tool away from a test.
func nothing(t *testing.T) {
	t.Helper()
	for _, variable := range []string{postgresVariable, postgresBinVariable, redisVariable, natsVariable, requiredVariable, ledgerVariable} {
		t.Setenv(variable, "")
	}
	t.Setenv("PATH", t.TempDir())
}

var asks = map[string]func(testing.TB){
	postgresVariable:    func(t testing.TB) { Postgres(t) },
	postgresBinVariable: func(t testing.TB) { PostgresServer(t) },
	redisVariable:       func(t testing.TB) { Redis(t) },
	natsVariable:        func(t testing.TB) { NATS(t) },
	"no pgbouncer":      func(t testing.TB) { Tool(t, "pgbouncer") },
}

func TestNeed_SkipsWithoutServers(t *testing.T) {
	nothing(t)
	for lacking, ask := range asks {
		r := observe(t.Name(), ask)
		if !strings.HasPrefix(r.end, "skip: need: ") || !strings.Contains(r.end, lacking) || !strings.Contains(r.end, "make test") {
			t.Errorf("%s: %q, want a skip that names it and says what to do", lacking, r.end)
		}
	}
}

func TestNeed_FailsWhereAllIsRequired(t *testing.T) {
	nothing(t)
	t.Setenv(requiredVariable, "1")
	for lacking, ask := range asks {
		r := observe(t.Name(), ask)
		if !strings.HasPrefix(r.end, "fatal: need: ") || !strings.Contains(r.end, lacking) {
			t.Errorf("%s: %q, want a failure that names it", lacking, r.end)
		}
	}
}

func TestNeed_FailsIfTheServerDoesNotAnswer(t *testing.T) {
	nothing(t)
	t.Setenv(postgresVariable, "postgres://postgres@127.0.0.1:1/postgres?sslmode=disable")
	r := observe(t.Name(), asks[postgresVariable])
	if !strings.HasPrefix(r.end, "fatal: need: "+postgresVariable) || len(r.cleanups) != 0 {
		t.Errorf("%q and %d cleanups, want a failure and nothing to clean up", r.end, len(r.cleanups))
	}
}

func TestNeed_GivesAddressAndPrefix(t *testing.T) {
	nothing(t)
	t.Setenv(redisVariable, "127.0.0.1:1")
	t.Setenv(natsVariable, "nats://127.0.0.1:2")
	var redis, nats Broker
	observe("TestX", func(t testing.TB) { redis, nats = Redis(t), NATS(t) })
	if redis.Address != "127.0.0.1:1" || nats.Address != "nats://127.0.0.1:2" {
		t.Errorf("addresses %q and %q", redis.Address, nats.Address)
	}
	if redis.Prefix == nats.Prefix || !strings.HasPrefix(redis.Prefix, "t_testx_") {
		t.Errorf("prefixes %q and %q, want two that name the test", redis.Prefix, nats.Prefix)
	}
}

func TestNeed_FindsTools(t *testing.T) {
	nothing(t)
	want := filepath.Join(os.Getenv("PATH"), "pgbouncer")
	if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var got string
	r := observe(t.Name(), func(t testing.TB) { got = Tool(t, "pgbouncer") })
	if got != want || r.end != "" {
		t.Errorf("found %q (%s), want %q", got, r.end, want)
	}
}

// Names are safe wherever they are put (a schema, a key, a subject, a stream), and never meet.
func TestNeed_NamesAreSafeAndUnique(t *testing.T) {
	safe := regexp.MustCompile(`^[a-z][a-z0-9_]{1,47}$`)
	seen := map[string]bool{}
	for _, name := range []string{"TestX", "TestX/Sub#01", `Test"; DROP SCHEMA public; --`, "TestÜber/\x00 .*>", strings.Repeat("Long", 100)} {
		for range 100 {
			got := unique(&recorder{name: name})
			if !safe.MatchString(got) || seen[got] {
				t.Fatalf("name %q for %q: unsafe or given before", got, name)
			}
			seen[got] = true
		}
	}
}

func TestNeed_RecordsWhoGotWhat(t *testing.T) {
	nothing(t)
	ledger := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ledgerVariable, ledger)
	t.Setenv(redisVariable, "127.0.0.1:1")
	observe("TestA", func(t testing.TB) { Redis(t) })
	observe("TestB", func(t testing.TB) { Redis(t) })
	observe("TestC", func(t testing.TB) { NATS(t) }) // gets none
	got, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	const pkg = "github.com/pawlwork/pawl/internal/need"
	if want := "redis\t" + pkg + "\tTestA\nredis\t" + pkg + "\tTestB\n"; string(got) != want {
		t.Errorf("ledger %q, want %q", got, want)
	}
}
