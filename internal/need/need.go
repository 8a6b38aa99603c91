// Package need is how tests ask for what a machine may lack: servers, tools and rights.
//
//	db := need.Postgres(t)           // a fresh schema on the shared server, dropped at the end
//	server := need.PostgresServer(t) // a server of the test's own, to be stopped, killed and started again
//	proxy := need.Proxy(t, db.URL)   // in front of a Postgres, to lose the answers of commits
//	redis := need.Redis(t)           // address and a prefix of its own
//	nats := need.NATS(t)             // address and a prefix of its own
//	path := need.Tool(t, "pgbouncer")
//	dir := need.SmallDisk(t, 8<<20)  // a folder with so much room, to be filled up
//
// Every answer belongs to one test alone, so that tests may run in parallel.
//
// This is the only package of the project that skips tests. Plain `go test ./...` works without servers and skips what
// asks for them. Under internal/testenv (`make test`) nothing skips: what is missing fails the test, since a suite that
// silently does not run proves nothing.
package need

import (
	"crypto/rand"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// The variables that internal/testenv sets for the command it runs.
const (
	postgresVariable    = "PAWL_TEST_POSTGRES"     // URL of a superuser's database
	postgresBinVariable = "PAWL_TEST_POSTGRES_BIN" // folder of initdb and postgres
	redisVariable       = "PAWL_TEST_REDIS"        // host:port
	natsVariable        = "PAWL_TEST_NATS"         // URL of a JetStream server
	requiredVariable    = "PAWL_TEST_REQUIRED"     // set: fail instead of skip
	ledgerVariable      = "PAWL_TEST_LEDGER"       // file that collects which test got what
)

const howTo = "run `make test`, or `go run ./internal/testenv -- go test ./...`"

// address returns the value of variable, or ends the test.
func address(t testing.TB, suite, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		missing(t, fmt.Sprintf("no %s server: %s is not set", suite, variable))
	}
	record(t, suite)
	return value
}

// missing ends the test: as skipped, or as failed where everything is required.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(requiredVariable) != "" {
		t.Fatalf("need: %s, and %s forbids skipping: %s", what, requiredVariable, howTo)
	}
	t.Skipf("need: %s: %s", what, howTo)
}

// record notes for testenv's summary that a test got its suite. One short append per call: processes share the file.
func record(t testing.TB, suite string) {
	t.Helper()
	path := os.Getenv(ledgerVariable)
	if path == "" {
		return
	}
	ledger, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("need: %s: %v", ledgerVariable, err)
	}
	defer ledger.Close()
	if _, err := fmt.Fprintf(ledger, "%s\t%s\t%s\n", suite, pkg(), t.Name()); err != nil {
		t.Fatalf("need: %s: %v", ledgerVariable, err)
	}
}

// pkg is the import path of the package under test.
func pkg() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return os.Args[0]
	}
	return strings.TrimSuffix(info.Path, ".test")
}

// unique makes a name that no other call makes, in any process: the test's name, for the person who debugs it, and
// chance. It has at most 48 bytes of a-z, 0-9 and _, and starts with a letter.
func unique(t testing.TB) string {
	const longest = 24
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, t.Name())
	name = name[:min(len(name), longest)]
	return "t_" + name + "_" + strings.ToLower(rand.Text()[:16])
}
