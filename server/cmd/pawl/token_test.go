package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/server/auth"
)

// A token that was made lets its owner in, by a file with its line.
func TestU8_ATokenIsMade(t *testing.T) {
	out, problems, code := within(t, nil, "token", "new", "ann", "--role", "operator", "--expires", "720h", "--hide-payloads")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || problems != "" || len(lines) != 2 || strings.Contains(lines[1], lines[0]) {
		t.Fatalf("exit %d: %q, %q", code, out, problems)
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(lines[1]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + lines[0]}}}
	id, err := tokens.Identify(r)
	if err != nil || id.Name != "ann" || id.Role != auth.Operator || !id.Hidden {
		t.Errorf("%+v, %v", id, err)
	}
	var made struct{ Token, Line string }
	out, _, _ = within(t, nil, "token", "new", "bob", "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || !strings.HasPrefix(made.Line, "bob viewer sha256:") || made.Token == lines[0] {
		t.Errorf("%q, %v", out, err)
	}
	refuses(t, 2, "viewer, operator, admin", nil, "token", "new", "ann", "--role", "king")
	refuses(t, 2, "720h", nil, "token", "new", "ann", "--expires", "soon")
	refuses(t, 2, "one word", nil, "token", "new", "a b")
	refuses(t, 2, "", nil, "token", "new")
}
