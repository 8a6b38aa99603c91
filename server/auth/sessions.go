package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Names of what goes over the wire.
const (
	SessionCookie = "pawl_session"
	CSRFHeader    = "Pawl-CSRF"
)

// Bounds of sessions. Past them the oldest ends.
const (
	MaxSessions      = 1000
	MaxTokenSessions = 20 // of one token
	SessionTime      = 12 * time.Hour
)

// ErrNoCSRF refuses a write that a page of somebody else may have sent with the cookie.
var ErrNoCSRF = fmt.Errorf("%w: a write with a cookie needs the session's %s", ErrBadToken, CSRFHeader)

// Sessions lets browsers in by a cookie beside Tokens, in memory: a restart ends them. A
// session has no rights of its own: each request asks for the token that it was begun
// with, and ends it when that is gone.
type Sessions struct {
	tokens *Tokens
	now    func() time.Time

	mu   sync.Mutex
	list map[[sha256.Size]byte]*Session // by the hash of the cookie
}

// Session is one of them.
type Session struct {
	CSRF    string // for writes
	Expires time.Time
	token   [sha256.Size]byte
	key     [sha256.Size]byte
}

// NewSessions keeps sessions of those who are in a token file.
func NewSessions(t *Tokens) *Sessions {
	return &Sessions{tokens: t, now: time.Now, list: map[[sha256.Size]byte]*Session{}}
}

// Identify goes by "Authorization: Bearer", or else by the cookie; writes with a cookie
// need CSRFHeader.
func (s *Sessions) Identify(r *http.Request) (Identity, error) {
	if len(r.Header.Values("Authorization")) > 0 {
		return s.tokens.Identify(r)
	}
	session, t, err := s.Of(r)
	if err != nil {
		return Identity{}, err
	}
	if !reads(r.Method) && !s.carries(r, session) {
		return Identity{}, ErrNoCSRF
	}
	return t.identity(), nil
}

func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// carries reports whether a request has the session's CSRF token.
func (s *Sessions) carries(r *http.Request, session Session) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(CSRFHeader)), []byte(session.CSRF)) == 1
}

// Of is the session of a request, and the token that it was begun with.
func (s *Sessions) Of(r *http.Request) (Session, Token, error) {
	cookie, err := r.Cookie(SessionCookie)
	if err != nil {
		return Session{}, Token{}, ErrNoToken
	}
	if cookie.Value == "" || len(cookie.Value) > maxSecret {
		return Session{}, Token{}, ErrBadToken
	}
	key := Hash(cookie.Value)
	s.mu.Lock()
	found := s.list[key]
	if found != nil && !s.now().Before(found.Expires) {
		delete(s.list, key)
		found = nil
	}
	s.mu.Unlock()
	if found == nil {
		return Session{}, Token{}, ErrBadToken
	}
	t, err := s.tokens.find(found.token)
	if err != nil {
		s.end(key)
		return Session{}, Token{}, err
	}
	return *found, t, nil
}

// Begin starts a session for a token. The cookie is told once.
func (s *Sessions) Begin(token string) (cookie string, session Session, t Token, err error) {
	if t, err = s.tokens.Find(token); err != nil {
		return "", Session{}, Token{}, err
	}
	cookie = random()
	session = Session{CSRF: random(), Expires: s.now().Add(SessionTime), token: t.Hash, key: Hash(cookie)}
	if !t.Expires.IsZero() && t.Expires.Before(session.Expires) {
		session.Expires = t.Expires
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(t.Hash)
	s.list[session.key] = &session
	return cookie, session, t, nil
}

// makeRoom ends what is over, and the oldest where there are too many. It is under mu.
func (s *Sessions) makeRoom(token [sha256.Size]byte) {
	var oldest, own *Session
	count := 0
	for key, one := range s.list {
		if !s.now().Before(one.Expires) {
			delete(s.list, key)
			continue
		}
		if oldest == nil || one.Expires.Before(oldest.Expires) {
			oldest = one
		}
		if one.token == token {
			if count++; own == nil || one.Expires.Before(own.Expires) {
				own = one
			}
		}
	}
	if count >= MaxTokenSessions {
		delete(s.list, own.key)
	}
	if len(s.list) >= MaxSessions {
		delete(s.list, oldest.key)
	}
}

// End ends a session.
func (s *Sessions) End(session Session) { s.end(session.key) }

func (s *Sessions) end(key [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, key)
}

// random is a secret of 256 bits.
func random() string {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}

// Tokens lists who may sign in, as the file has them now, without what proves it.
func (s *Sessions) Tokens() []Token {
	list := slices.Clone(s.tokens.current())
	for i := range list {
		list[i].Hash = [sha256.Size]byte{}
	}
	return list
}
