package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
)

// readyTime bounds a look at the store.
const readyTime = 5 * time.Second

func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// healthz says that the process answers, and nothing of the store: a restart does not
// mend that.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

// readyz says whether it can do its part: the store answers, and where it works, its
// lease is fresh. Nobody needs a token for it, so it tells no more than that.
func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	switch err := s.Engine.Ready(ctx); {
	case s.stopping.Err() != nil:
		say(w, http.StatusServiceUnavailable, "not ready: the server stops")
	case errors.Is(err, pawl.ErrNotReady):
		say(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		s.Logger.WarnContext(r.Context(), "not ready", "error", err)
		say(w, http.StatusServiceUnavailable, "not ready: the store does not answer")
	default:
		say(w, http.StatusOK, "ready")
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
