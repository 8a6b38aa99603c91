package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
)

// StatusError is an answer that was not 2xx. Middleware, Hooks.Error and backoff
// functions find it by errors.As.
type StatusError struct {
	Host     string
	Response Response
}

func (s *StatusError) Error() string {
	text := fmt.Sprintf("POST to %s: %d %s", s.Host, s.Response.Status, http.StatusText(s.Response.Status))
	body := s.Response.Body
	if len(body) > 500 {
		body = strings.ToValidUTF8(body[:500], "") + "…"
	}
	if redirects(s.Response.Status) {
		text += ", which is not followed (see Config.Redirects)"
	}
	if body != "" { // quoted as a whole, so that failures are one by their fingerprint whatever was answered
		text += fmt.Sprintf(": %q", strings.ReplaceAll(body, `"`, "'"))
	}
	return text
}

// outcome is what an answer means for its job.
func (s *sender) outcome(r Response, host string, i *pawl.Info) error {
	if r.Status >= 200 && r.Status <= 299 {
		return nil
	}
	failure := &StatusError{Host: host, Response: r}
	wait := min(r.retryAfter, s.cfg.MaxRetryAfter)
	switch {
	case r.Status == http.StatusGone || slices.Contains(s.cfg.DeadOn, r.Status):
		return pawl.Dead(failure)
	case r.Status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", failure, s.throttled(max(wait, 0)))
	case wait >= 0:
		return pawl.RetryIn(max(wait, s.leastWait(i.Attempt)), failure)
	default:
		return failure
	}
}

// leastWait doubles from 1 s with each attempt. A receiver that always says
// "Retry-After: 0" would else use up all attempts within seconds.
func (s *sender) leastWait(attempt int) time.Duration {
	return min(time.Second<<min(max(attempt-1, 0), 20), s.cfg.MaxRetryAfter)
}

// throttled cools down what a 429 is about: the queue, or the limit that is meant for it.
func (s *sender) throttled(wait time.Duration) error {
	if s.cfg.Limit != "" {
		return pawl.Throttled(wait, pawl.Scope(s.cfg.Limit))
	}
	return pawl.Throttled(wait)
}

// retryAfter is what a Retry-After asks for: seconds, or a date, which is held
// against the answer's own Date where there is one, so that clocks need not
// agree. Negative: nothing that can be read. The past means now.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return -1
	}
	if value[0] >= '0' && value[0] <= '9' {
		seconds, err := strconv.ParseUint(value, 10, 64)
		if err != nil && strings.ContainsFunc(value, func(r rune) bool { return r < '0' || r > '9' }) {
			return -1
		}
		// A number that is too large is one that is out of any bound.
		return time.Duration(min(seconds, uint64(mostWait/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return -1
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), mostWait)
}
