package need

import (
	"testing"

	"github.com/pawlwork/pawl/internal/need/pgproxy"
)

// Proxy puts a proxy in front of a Postgres, which loses the answers of commits when it is told to. It is taken away
// when the test ends.
func Proxy(t testing.TB, server string) *pgproxy.Proxy {
	t.Helper()
	proxy, err := pgproxy.New(server)
	if err != nil {
		t.Fatalf("need: %v", err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Errorf("need: %v", err)
		}
	})
	return proxy
}
