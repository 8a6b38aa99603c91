package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// gate is what every request passes: it refuses who calls by a wrong name, comes from a
// page of somebody else, or asks too often, and finds out who calls.
func (s *server) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := &answer{ResponseWriter: plain}
		secure(w.Header())
		defer s.observe(w, r, time.Now())
		defer s.recovers(w, r)
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		default:
			w.Header().Set("Retry-After", "1")
			s.refuse(w, http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d requests are under way, which is the most", cap(s.places)))
			return
		}
		if r = s.passes(w, r); r == nil {
			return
		}
		if r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(bodyTime))
			r.Body = &timedBody{r.Body, control}
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		w.endless = sync.OnceFunc(func() { // not the caller has hung up: it is told to come again
			context.AfterFunc(s.stopping, func() { cancel(pawl.ErrClosed) })
		})
		if waits(r) {
			w.endless()
		}
		r, done := s.traced(r.WithContext(ctx))
		status := http.StatusInternalServerError // of one that panics
		defer func() { done(cmp.Or(w.status, status)) }()
		next.ServeHTTP(w, r)
		status = http.StatusOK
	})
}

// secure sets what holds for every answer, unless a face says otherwise.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// passes is the request with who makes it; nil after it was refused.
func (s *server) passes(w http.ResponseWriter, r *http.Request) *http.Request {
	probe := isProbe(r)
	if !s.hosts.takes(r) && (!probe || s.loopback) { // a kubelet calls by the pod's address
		s.refuse(w, http.StatusForbidden, "forbidden", fmt.Sprintf("Host %.100q: not a name of this server", r.Host))
		return nil
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	from := caller{err: auth.ErrNoToken}
	page := ofPage(r)
	login := r.Method == http.MethodPost && (r.URL.Path == sessionPath || r.URL.Path == loginPath) // shows its token by itself
	if !probe && !login {
		asked := r
		if page { // Mission Control looks at the token of its forms itself
			asked = r.Clone(r.Context())
			asked.Method = http.MethodGet
		}
		from.id, from.err = s.who.Identify(asked)
	}
	rated := "address " + address
	switch {
	case from.err == nil:
		rated = "token " + from.id.Name
	case errors.Is(from.err, auth.ErrBadToken):
		s.refusals.tell(address, r.URL.Path, from.err.Error())
	case !refused(from.err):
		s.Logger.ErrorContext(r.Context(), "a request could not be identified", "error", from.err)
	}
	if !s.rates.take(rated) {
		w.Header().Set("Retry-After", "1")
		s.refuse(w, http.StatusTooManyRequests, "too-many-requests", fmt.Sprintf("more than %d requests a second", s.Rate))
		return nil
	}
	if errors.Is(from.err, auth.ErrNoCSRF) {
		s.refuse(w, http.StatusForbidden, "forbidden", "a write with a cookie needs the header "+auth.CSRFHeader+" of its session")
		return nil
	}
	if !reads(r) {
		if why := foreign(r); why != "" {
			s.refuse(w, http.StatusForbidden, "forbidden", why)
			return nil
		}
		if form(r) && !page {
			s.refuse(w, http.StatusUnsupportedMediaType, "unsupported-media-type",
				"Content-Type: must be application/json, or what the route says; forms, plain text and bodies without a type are refused")
			return nil
		}
	}
	return r.WithContext(withCaller(r.Context(), from))
}

// refuse counts a refusal of the gate.
func (s *server) refuse(w http.ResponseWriter, status int, kind, detail string) {
	s.seen.refused.WithLabelValues(kind).Inc()
	refuse(w, status, kind, detail)
}

// waits reports whether a request waits for something to happen. Such a one ends when the
// server begins to stop, and so does a stream; others may finish.
func waits(r *http.Request) bool {
	return r.URL.Query().Has("wait") || strings.HasSuffix(r.URL.Path, "/claim")
}

// recovers answers for a handler that panicked.
func (s *server) recovers(w *answer, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	s.Logger.ErrorContext(r.Context(), "a request panicked",
		"method", r.Method, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	refuse(w, http.StatusInternalServerError, "internal", "the server failed; its log says why")
}

// timedBody lifts the time to send a body when it has been read, so that a handler may
// take longer.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// answer remembers the status, and tells when it is a stream.
type answer struct {
	http.ResponseWriter
	status  int
	endless func()
}

// WriteHeader sends the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
		if a.endless != nil && strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream") {
			a.endless()
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the answer.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

// Flush is for streams.
func (a *answer) Flush() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
