package auth_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/server/auth"
)

// tokenFile is a token file that a test changes.
type tokenFile struct {
	t    *testing.T
	path string
	log  bytes.Buffer
}

func newTokenFile(t *testing.T, tokens ...auth.Token) *tokenFile {
	t.Helper()
	f := &tokenFile{t: t, path: filepath.Join(t.TempDir(), "tokens")}
	f.write(tokens...)
	return f
}

func (f *tokenFile) write(tokens ...auth.Token) {
	f.t.Helper()
	var lines strings.Builder
	for _, token := range tokens {
		lines.WriteString(token.String() + "\n")
	}
	f.text(lines.String())
}

func (f *tokenFile) text(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *tokenFile) open() *auth.Tokens {
	f.t.Helper()
	tokens, err := auth.OpenTokens(f.path, slog.New(slog.NewTextHandler(&f.log, nil)))
	if err != nil {
		f.t.Fatal(err)
	}
	return tokens
}

// token makes one, with what is presented.
func token(name string, role auth.Role) (string, auth.Token) {
	secret, hash := auth.NewToken()
	return secret, auth.Token{Name: name, Role: role, Hash: hash}
}

func with(secret string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return r
}

func TestU5_ATokenFileNamesWhoCalls(t *testing.T) {
	ann, annToken := token("ann", auth.Admin)
	bob, bobToken := token("bob@example.org", auth.Viewer)
	bobToken.Hidden, bobToken.Expires = true, time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	old, oldToken := token("old", auth.Admin)
	oldToken.Expires = time.Now().Add(-time.Second)
	f := newTokenFile(t, annToken, bobToken, oldToken)
	tokens := f.open()

	for _, c := range []struct {
		name, secret string
		want         auth.Identity
		err          error
	}{
		{"admin", ann, auth.Identity{Name: "ann", Role: auth.Admin}, nil},
		{"hidden viewer", bob, auth.Identity{Name: "bob@example.org", Role: auth.Viewer, Hidden: true}, nil},
		{"expired", old, auth.Identity{}, auth.ErrBadToken},
		{"none", "", auth.Identity{}, auth.ErrNoToken},
		{"wrong", ann[:len(ann)-1] + "_", auth.Identity{}, auth.ErrBadToken},
		{"hash", annToken.String()[10:], auth.Identity{}, auth.ErrBadToken},
		{"long", strings.Repeat("x", 5000), auth.Identity{}, auth.ErrBadToken},
	} {
		id, err := tokens.Identify(with(c.secret))
		if id != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, id, err, c.want, c.err)
		}
	}
	two := with(ann)
	two.Header.Add("Authorization", "Bearer "+ann)
	basic := with("")
	basic.SetBasicAuth("ann", ann)
	for _, r := range []*http.Request{two, basic} {
		if _, err := tokens.Identify(r); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("%v: %v", r.Header, err)
		}
	}
	kept, err := os.ReadFile(f.path)
	if err != nil || bytes.Contains(kept, []byte(ann)) {
		t.Errorf("the file has a token, not its hash: %v", err)
	}
}

func TestU5_ARevokedTokenStopsAtOnce(t *testing.T) {
	ann, annToken := token("ann", auth.Admin)
	bob, bobToken := token("bob", auth.Admin)
	f := newTokenFile(t, annToken)
	tokens := f.open()
	lets := func(secret string, want bool) {
		t.Helper()
		if _, err := tokens.Identify(with(secret)); (err == nil) != want || err != nil && !errors.Is(err, auth.ErrBadToken) {
			t.Fatalf("let in: %v, want %v", err, want)
		}
	}
	tick := time.Now().Add(time.Hour) // of a file's clock that is coarse, and not ours
	at := func(when time.Time, token auth.Token) {
		t.Helper()
		f.write(token) // of the same size
		if err := os.Chtimes(f.path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	sameTick := func(token auth.Token) { t.Helper(); at(tick, token) }
	lets(ann, true)
	for n := range 4 { // one that has not changed for long
		at(time.Now().Add(time.Duration(n)*time.Second-time.Hour), []auth.Token{annToken, bobToken}[n%2])
		lets(ann, n%2 == 0)
		lets(bob, n%2 == 1)
	}
	for range 3 {
		f.write(bobToken)
		lets(ann, false)
		lets(bob, true)
		sameTick(annToken)
		lets(ann, true)
		lets(bob, false)
		sameTick(bobToken)
		lets(ann, false)
		lets(bob, true)
	}
	annToken.Role = auth.Viewer
	f.write(annToken)
	if id, err := tokens.Identify(with(ann)); err != nil || id.Role != auth.Viewer {
		t.Errorf("%+v, %v", id, err)
	}
	// Replaced by another file, as editors and Kubernetes do.
	other := newTokenFile(t, bobToken)
	if err := os.Rename(other.path, f.path); err != nil {
		t.Fatal(err)
	}
	lets(ann, false)
	lets(bob, true)
}

func TestU5_ATokenFileThatCannotBeReadLetsNobodyIn(t *testing.T) {
	ann, annToken := token("ann", auth.Admin)
	f := newTokenFile(t, annToken)
	tokens := f.open()
	for name, spoil := range map[string]func(){
		"gone":  func() { os.Remove(f.path) },
		"loose": func() { os.Chmod(f.path, 0o644) },
		"fault": func() { f.text(annToken.String() + "\nbob king sha256:0\n") },
	} {
		if _, err := tokens.Identify(with(ann)); err != nil {
			t.Fatalf("before %s: %v", name, err)
		}
		f.log.Reset()
		spoil()
		for range 3 {
			if _, err := tokens.Identify(with(ann)); !errors.Is(err, auth.ErrBadToken) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := strings.Count(f.log.String(), "nobody is let in"); n != 1 {
			t.Errorf("%s: logged %d times: %s", name, n, f.log.String())
		}
		os.Remove(f.path)
		f.write(annToken)
	}
}

func TestU5_ATokenFileOthersCanReadIsRefused(t *testing.T) {
	_, annToken := token("ann", auth.Admin)
	for mode, fine := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o604: false, 0o660: false, 0o602: false,
	} {
		f := newTokenFile(t, annToken)
		if err := os.Chmod(f.path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.OpenTokens(f.path, slog.New(slog.DiscardHandler)); (err == nil) != fine {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	if _, err := auth.OpenTokens(t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a folder is taken for a token file")
	}
}

func TestU5_FaultsOfATokenFileAreNamedAndRepeatNoSecret(t *testing.T) {
	secret, fine := token("ann", auth.Admin)
	hash := strings.Fields(fine.String())[2]
	for text, want := range map[string]string{
		"ann admin":                             "line 1: must be a name",
		"# who\n\nann king " + hash:             "line 3: role: must be one of viewer, operator, admin",
		"ann admin " + secret:                   "line 1: hash: must be sha256:",
		secret + " admin " + hash:               "line 1: name: must be",
		"a,b admin " + hash:                     "line 1: name: must be",
		"ann admin " + hash + " " + secret:      "line 1: field 4: must be hide-payloads or expires=",
		"ann admin " + hash + " expires=soon":   "line 1: field 4",
		fine.String() + "\n" + fine.String():    "line 2: has the hash of line 1",
		"ann " + strings.Repeat("x", 2000):      "line 1: must be at most 1000 bytes",
		strings.Repeat("# x\n", 300_000):        "must be at most 1048576 bytes",
		strings.Repeat("a b c\n", 50):           "line 10: role",
		"ann admin " + hash[:20] + "\nb king c": "line 2: role",
	} {
		list, err := auth.ParseTokens(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) || list != nil {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	var many strings.Builder
	for range auth.MaxTokens + 1 {
		_, one := token("ann", auth.Viewer)
		many.WriteString(one.String() + "\n")
	}
	if _, err := auth.ParseTokens(strings.NewReader(many.String())); err == nil || !strings.Contains(err.Error(), "at most 1000") {
		t.Error(err)
	}
}

func FuzzU5_TokenFile(f *testing.F) {
	_, fine := token("ann", auth.Operator)
	fine.Hidden, fine.Expires = true, time.Unix(1_900_000_000, 0).UTC()
	f.Add(fine.String())
	f.Add("# only\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := auth.ParseTokens(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, one := range list { // what is read can be written and read again
			again, err := auth.ParseTokens(strings.NewReader(one.String()))
			if err != nil || len(again) != 1 || again[0].String() != one.String() {
				t.Errorf("%q: %v, %v", one, again, err)
			}
		}
	})
}
