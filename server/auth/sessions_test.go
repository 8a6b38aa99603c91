package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// house is sessions beside a token file, in a time of its own.
type house struct {
	t    *testing.T
	path string
	s    *Sessions
	time time.Time
}

func newHouse(t *testing.T, tokens ...Token) *house {
	t.Helper()
	h := &house{t: t, path: filepath.Join(t.TempDir(), "tokens"), time: time.Now()}
	h.write(tokens...)
	list, err := OpenTokens(h.path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h.s = NewSessions(list)
	h.s.now = func() time.Time { return h.time }
	return h
}

func (h *house) write(tokens ...Token) {
	h.t.Helper()
	text := ""
	for _, one := range tokens {
		text += one.String() + "\n"
	}
	if err := os.WriteFile(h.path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) begin(secret string) (string, Session) {
	h.t.Helper()
	cookie, session, _, err := h.s.Begin(secret)
	if err != nil {
		h.t.Fatal(err)
	}
	return cookie, session
}

// identify asks who a request with a cookie is of.
func (h *house) identify(method, cookie, csrf string) (Identity, error) {
	r := httptest.NewRequest(method, "/", nil)
	r.AddCookie(&http.Cookie{Name: SessionCookie, Value: cookie})
	if csrf != "" {
		r.Header.Set(CSRFHeader, csrf)
	}
	return h.s.Identify(r)
}

func (h *house) lets(cookie string, want error) {
	h.t.Helper()
	if _, err := h.identify(http.MethodGet, cookie, ""); !errors.Is(err, want) {
		h.t.Errorf("%v, want %v", err, want)
	}
}

func TestU5_AWriteWithACookieNeedsItsCSRFToken(t *testing.T) {
	secret, hash := NewToken()
	h := newHouse(t, Token{Name: "ann", Role: Operator, Hash: hash})
	cookie, session := h.begin(secret)
	_, other := h.begin(secret)
	for _, c := range []struct {
		method, csrf string
		want         error
	}{
		{http.MethodGet, "", nil}, {http.MethodHead, "", nil}, {http.MethodPost, session.CSRF, nil}, {http.MethodDelete, session.CSRF, nil},
		{http.MethodPost, "", ErrNoCSRF}, {http.MethodPut, "x", ErrNoCSRF},
		{http.MethodDelete, other.CSRF, ErrNoCSRF}, {http.MethodPatch, cookie, ErrNoCSRF},
	} {
		id, err := h.identify(c.method, cookie, c.csrf)
		if !errors.Is(err, c.want) || err == nil && id != (Identity{Name: "ann", Role: Operator}) {
			t.Errorf("%s: %+v, %v, want %v", c.method, id, err, c.want)
		}
	}
	if !errors.Is(ErrNoCSRF, ErrBadToken) {
		t.Error("a handler that knows only ErrBadToken would take it for a fault of its own")
	}
	h.lets("x", ErrBadToken)
	h.lets("", ErrBadToken)
	h.s.End(session)
	h.lets(cookie, ErrBadToken)
}

func TestU5_ASessionEndsWithItsTokenAndItsTime(t *testing.T) {
	secret, hash := NewToken()
	ann := Token{Name: "ann", Role: Admin, Hash: hash}
	h := newHouse(t, ann)
	cookie, _ := h.begin(secret)
	ann.Role = Viewer
	h.write(ann)
	if id, err := h.identify(http.MethodGet, cookie, ""); err != nil || id.Role != Viewer {
		t.Errorf("%+v, %v: rights are those that the token has now", id, err)
	}
	h.write()
	h.lets(cookie, ErrBadToken)
	h.write(ann)
	h.lets(cookie, ErrBadToken) // it has ended, and stays so

	cookie, _ = h.begin(secret)
	h.time = h.time.Add(SessionTime - time.Second)
	h.lets(cookie, nil)
	h.time = h.time.Add(time.Second)
	h.lets(cookie, ErrBadToken)
	if len(h.s.list) != 0 {
		t.Errorf("%d sessions are kept", len(h.s.list))
	}
	ann.Expires = time.Now().Add(time.Minute).Truncate(time.Second)
	h.write(ann)
	if _, session := h.begin(secret); !session.Expires.Equal(ann.Expires) {
		t.Errorf("ends %v, its token %v", session.Expires, ann.Expires)
	}
}

func TestU5_SessionsAreBounded(t *testing.T) {
	var tokens []Token
	var secrets []string
	for range 2 + MaxSessions/MaxTokenSessions {
		secret, hash := NewToken()
		secrets, tokens = append(secrets, secret), append(tokens, Token{Name: "ann", Role: Viewer, Hash: hash})
	}
	h := newHouse(t, tokens...)
	first, _ := h.begin(secrets[0])
	h.time = h.time.Add(time.Second)
	second, _ := h.begin(secrets[1])
	for range MaxTokenSessions {
		h.time = h.time.Add(time.Second)
		h.begin(secrets[0])
	}
	h.lets(first, ErrBadToken) // one token ends its own
	h.lets(second, nil)
	for _, secret := range secrets {
		for range MaxTokenSessions {
			h.time = h.time.Add(time.Second)
			h.begin(secret)
		}
	}
	if n := len(h.s.list); n != MaxSessions {
		t.Errorf("%d sessions", n)
	}
}

func TestU7_TokensAreListedWithoutWhatProvesThem(t *testing.T) {
	_, hash := NewToken()
	h := newHouse(t, Token{Name: "ann", Role: Operator, Hash: hash})
	list := h.s.Tokens()
	if len(list) != 1 || list[0].Name != "ann" || list[0].Role != Operator || list[0].Hash != ([32]byte{}) {
		t.Errorf("%+v", list)
	}
	h.write()
	if list := h.s.Tokens(); len(list) != 0 {
		t.Errorf("%+v was taken out", list)
	}
}
