package main

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
)

// The command gets what package need reads: addresses that answer, and the order not to skip.
func TestOffer_AddressesAnswer(t *testing.T) {
	t.Parallel()
	needServers(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, said := testenv(t, root(t), "-install=false", "--", "env", "-u", partVariable, self, "-test.run", "^TestOffer_Inside$", "-test.v")
	out, code := complete(t, cmd)
	if code != 0 || !strings.Contains(out, "--- PASS: TestOffer_Inside") {
		t.Errorf("code %d\n%s\n%s", code, out, said)
	}
	for _, line := range []string{"suite postgres", "suite redis", "suite nats"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("the summary lacks %q:\n%s", line, said)
		}
	}
	if n := strings.Count(said.String(), "1 test, in testenv"); n != 5 {
		t.Errorf("want one test that asked for each of 5 suites:\n%s", said)
	}
}

// TestOffer_Inside looks at the testenv that it runs in: under TestOffer_AddressesAnswer one of its own, under
// `make test` that of the whole run.
func TestOffer_Inside(t *testing.T) {
	db := need.Postgres(t) // has made its schema, so the server answers
	if !strings.Contains(db.URL, db.Schema) {
		t.Errorf("URL %s lacks the schema %s", db.URL, db.Schema)
	}
	if _, err := os.Stat(filepath.Join(need.PostgresBin(t), "pg_basebackup")); err != nil {
		t.Error(err)
	}
	need.Tool(t, "pgbouncer")
	need.Tool(t, "faketime")

	if got := ask(t, need.Redis(t).Address, "PING\r\n"); got != "+PONG\r\n" {
		t.Errorf("Redis says %q", got)
	}
	nats, err := url.Parse(need.NATS(t).Address)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, nats.Host, ""); !strings.HasPrefix(got, "INFO ") || !strings.Contains(got, `"jetstream":true`) {
		t.Errorf("NATS says %q, want its INFO with JetStream", got)
	}
	for _, variable := range []string{"PAWL_TEST_REQUIRED", "PAWL_TEST_POSTGRES_BIN", "PAWL_TEST_LEDGER"} {
		if os.Getenv(variable) == "" {
			t.Errorf("%s is not set", variable)
		}
	}
	if os.Getenv(hostVariable) != "" {
		t.Errorf("%s reaches the command, where a testenv would take itself for the host", hostVariable)
	}
}

// ask sends text to a server and returns its first line.
func ask(t *testing.T, address, text string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := fmt.Fprint(connection, text); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// Where nothing may be installed, one line says what to install, and the command does not run.
func TestInstall_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	cmd, said := testenv(t, root(t), "-install=false", "-suites", "redis,browser", "--", "echo", "ran")
	cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
	out, code := complete(t, cmd)
	want := "testenv: please install: redis-server, chromium (as root: apt-get install --no-install-recommends redis-server chromium)\n"
	if code != 1 || out != "" || said.String() != want {
		t.Errorf("code %d, output %q, said %q, want 1, none and %q", code, out, said, want)
	}
}
