package webhook

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

func TestJ23_SecretsThatAreMissingAreNoSecrets(t *testing.T) {
	server := newReceiver(t, nil)
	down := errors.New("the database is down")
	s := sending(t, func(c *Config) {
		c.AllowUnsigned = false
		c.Secrets = map[string][]Secret{"acme": {NewSecret()}}
		c.SecretsOf = func(_ context.Context, name string) ([]Secret, error) {
			switch name {
			case "stored":
				return []Secret{knownSecret}, nil
			case "down":
				return nil, down
			case "empty":
				return []Secret{{}}, nil
			}
			return nil, nil
		}
	})
	for name, want := range map[string]string{"": "the post names no secret", "other": `no secret "other"`, "down": down.Error(),
		"empty": "must come from"} {
		if _, err := s.attempt(t.Context(), Post{URL: server.URL, Secret: name}); meaning(err) != "retry" ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(server.requests()); n != 0 {
		t.Errorf("%d requests went out unsigned", n)
	}
	if _, err := s.attempt(t.Context(), Post{URL: server.URL, Secret: "stored"}); err != nil {
		t.Fatal(err)
	}
	r := server.requests()[0]
	if err := Verify([]Secret{knownSecret}, r.header, []byte(r.body), 0, time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := sending(t, nil).attempt(t.Context(), Post{URL: server.URL}); err != nil ||
		server.requests()[1].header.Get(HeaderSignature) != "" {
		t.Errorf("allowed to be unsigned: %v", err)
	}
}

// All faults of a configuration come at once, and nothing is registered.
func TestJ23_FaultsOfAConfiguration(t *testing.T) {
	var hs pawl.Handlers
	err := Register(&hs, Config{
		Secrets: map[string][]Secret{"a": nil, "b": {{}}, "c": make([]Secret, 9)}, Timeout: -1, MaxBody: -1, KeepBody: 1 << 30,
		Redirects: 4, MaxRetryAfter: 48 * time.Hour,
		DeadOn: []int{200, 429, 600}, Ports: []int{0, 70000}, AllowAddresses: []netip.Prefix{{},
			netip.MustParsePrefix("::ffff:10.0.0.0/104")},
		AllowHosts: []string{"", "*", "a:80", "http://a", "*.*.a", "ä"}, RedirectHosts: []string{"a*"},
		Proxy: &url.URL{Scheme: "ftp", Host: "x"}, UserAgent: "a\nb",
	})
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Fatal(err)
	}
	for field, times := range map[string]int{
		"webhook secrets of": 2, "webhook secret of b": 1, "webhook timeout": 1, "webhook body bound": 1, "webhook kept bytes": 1,
		"webhook redirects": 1, "longest Retry-After": 1,
		"status that is dead": 3, "webhook port": 2, "webhook address to allow": 2, "webhook host to allow": 6,
		"webhook host to redirect to": 1, "webhook proxy": 1, "user agent": 1,
	} {
		if n := strings.Count(err.Error(), field); n != times {
			t.Errorf("%s: %d faults, want %d", field, n, times)
		}
	}
	if err := Register(&hs, Config{}); err == nil || !strings.Contains(err.Error(), "AllowUnsigned") {
		t.Errorf("no secrets at all: %v", err)
	}
	good := Config{AllowUnsigned: true, AllowHosts: []string{"a", "*.b.c", "127.0.0.1", "::1"}, RedirectHosts: []string{"*",
		"*.x"}, DeadOn: []int{400}, Redirects: 3}
	if err := Register(&hs, good); err != nil {
		t.Error(err)
	}
}
