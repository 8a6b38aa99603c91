package serve

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pawlwork/pawl/server/auth"
)

const (
	sessionPath = "/session"
	maxLogin    = 4 << 10 // bytes
)

// Session is who a browser is, for its pages.
type Session struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Hidden  bool      `json:"hidden"`           // payloads are hidden from them
	CSRF    string    `json:"csrf,omitempty"`   // for auth.CSRFHeader of writes; none is needed without a token file
	Expires time.Time `json:"expires,omitzero"` // of the session
}

// session is the routes of sessions. POST begins one with {"token": "…"}, GET tells of
// one, DELETE ends it.
func (s *server) session(mux *http.ServeMux) {
	mux.HandleFunc("POST "+sessionPath, s.beginSession)
	mux.HandleFunc("GET "+sessionPath, s.getSession)
	mux.HandleFunc("DELETE "+sessionPath, s.endSession)
}

func (s *server) beginSession(w http.ResponseWriter, r *http.Request) {
	if s.sessions == nil {
		refuse(w, http.StatusConflict, "conflict", "no token is needed: the server has no token file and listens on loopback")
		return
	}
	var login map[string]string // not a struct: its fields would be taken in any spelling
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&login)
	secret, ok := login["token"]
	if err != nil || !ok || len(login) > 1 { // the error might repeat the token
		refuse(w, http.StatusUnprocessableEntity, "invalid", `body: must be {"token": "…"}`)
		return
	}
	session, token, err := s.signIn(w, r, secret)
	if err != nil {
		unauthorized(w, err)
		return
	}
	hidden := token.Hidden || s.HidePayloads && token.Role <= auth.Viewer
	s.tell(w, http.StatusCreated, auth.Identity{Name: token.Name, Role: token.Role, Hidden: hidden}, session)
}

// signIn begins a session and sets its cookie; who is refused is logged.
func (s *server) signIn(w http.ResponseWriter, r *http.Request, secret string) (auth.Session, auth.Token, error) {
	cookie, session, token, err := s.sessions.Begin(secret)
	if err != nil {
		address, _, _ := net.SplitHostPort(r.RemoteAddr)
		s.refusals.tell(address, r.URL.Path, err.Error())
		return session, token, err
	}
	s.setCookie(w, r, cookie, int(time.Until(session.Expires).Seconds()))
	return session, token, nil
}

// signOut ends the session of a request, if it has one.
func (s *server) signOut(w http.ResponseWriter, r *http.Request) {
	if s.sessions != nil {
		if session, _, err := s.sessions.Of(r); err == nil {
			s.sessions.End(session)
		}
	}
	s.setCookie(w, r, "", -1)
}

func (s *server) getSession(w http.ResponseWriter, r *http.Request) {
	id, err := known(r)
	if err != nil {
		unauthorized(w, err)
		return
	}
	var session auth.Session
	if s.sessions != nil {
		session, _, _ = s.sessions.Of(r) // none of those who show a token
	}
	s.tell(w, http.StatusOK, id, session)
}

func (s *server) endSession(w http.ResponseWriter, r *http.Request) {
	if _, err := known(r); err != nil {
		unauthorized(w, err)
		return
	}
	s.signOut(w, r)
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	secure := r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://") // of a proxy in front
	http.SetCookie(w, &http.Cookie{
		Name: auth.SessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure,
	})
}

func (s *server) tell(w http.ResponseWriter, status int, id auth.Identity, session auth.Session) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Session{id.Name, id.Role.String(), id.Hidden, session.CSRF, session.Expires})
}
