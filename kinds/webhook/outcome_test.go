package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

// meaning is what an error makes of its job.
func meaning(err error) string {
	switch {
	case err == nil:
		return "done"
	case pawl.IsDead(err):
		return "dead"
	case pawl.IsThrottled(err):
		return "throttled"
	case pawl.IsRetryIn(err):
		return "timed retry"
	default:
		return "retry"
	}
}

// Every status there can be, with and without Retry-After, and with some that
// the configuration calls final.
func TestJ23_EveryStatusHasItsOutcome(t *testing.T) {
	server := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		if after := r.Header.Get("X-After"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
	})
	plain := sending(t, nil)
	strict := sending(t, func(c *Config) { c.DeadOn = []int{400, 404, 422, 503} })
	for status := 200; status <= 599; status++ {
		for _, c := range []struct {
			s     *sender
			after string
		}{{plain, ""}, {plain, "7"}, {strict, ""}} {
			want := "retry"
			switch {
			case status < 300:
				want = "done"
			case status == 410, c.s == strict && (status == 400 || status == 404 || status == 422 || status == 503):
				want = "dead"
			case status == 429:
				want = "throttled"
			case c.after != "":
				want = "timed retry"
			}
			p := Post{URL: fmt.Sprintf("%s/%d", server.URL, status)}
			if c.after != "" {
				p.Headers = map[string]string{"X-After": c.after}
			}
			answer, err := c.s.attempt(t.Context(), p)
			if got := meaning(err); got != want {
				t.Errorf("%d, Retry-After %q: %s, want %s (%v)", status, c.after, got, want, err)
			}
			if failed, is := errors.AsType[*StatusError](err); want != "done" && (!is ||
				failed.Response.Status != status) {
				t.Errorf("%d: %v is no StatusError", status, err)
			}
			if answer.Status != status {
				t.Errorf("%d: answer %+v", status, answer)
			}
		}
	}
}

// How long is waited is what the receiver asks for, within bounds, and never so
// little that attempts are used up within seconds.
func TestJ23_RetryAfterIsHonouredWithinBounds(t *testing.T) {
	const throttled, failed = "throttled", "failed"
	for _, c := range []struct {
		status  int
		asked   string
		attempt int
		means   string
		wait    time.Duration
	}{
		{429, "30", 1, throttled, 30 * time.Second},
		{429, "", 1, throttled, time.Second}, // the queue's own
		{429, "0", 9, throttled, time.Second},
		{429, "7200", 1, throttled, 10 * time.Minute},
		{503, "30", 1, failed, 30 * time.Second},
		{503, "0", 1, failed, time.Second},
		{503, "0", 4, failed, 8 * time.Second},
		{503, "5", 4, failed, 8 * time.Second},
		{503, "9", 4, failed, 9 * time.Second},
		{503, "0", 25, failed, 10 * time.Minute},
		{503, "7200", 1, failed, 10 * time.Minute},
		{404, "30", 1, failed, 30 * time.Second},
	} {
		s := sending(t, func(cfg *Config) { cfg.MaxRetryAfter = 10 * time.Minute })
		asked := retryAfter(http.Header{"Retry-After": {c.asked}}, time.Time{})
		err := s.outcome(Response{Status: c.status, retryAfter: asked}, "h", &pawl.Info{Attempt: c.attempt})
		if means, wait := waits(t, err); means != c.means || wait != c.wait {
			t.Errorf("%+v: %s for %v", c, means, wait)
		}
	}
}

// waits is what an engine makes of an error: how long its job waits, in virtual time.
func waits(t *testing.T, err error) (means string, wait time.Duration) {
	t.Helper()
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.Handle(e, func(context.Context, *pawl.Job[Post]) error { return err })
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Post{})
		e.RunUntilIdle()
		j := e.RequireState(r.ID, pawl.StateWaiting)
		queues, err := e.Queues(t.Context())
		if err != nil || len(queues) != 1 {
			t.Fatalf("queues %+v, %v", queues, err)
		}
		if c := queues[0].CoolDown; c != nil && len(j.Failures.List()) == 0 {
			means, wait = "throttled", c.Until.Sub(c.Since)
		} else {
			means, wait = "failed", j.Due.Sub(j.Created).Truncate(time.Second)
		}
	})
	return means, wait
}

func TestJ23_RetryAfterIsReadAsSecondsOrDate(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", -1}, {"120", "", 2 * time.Minute}, {" 5 ", "", 5 * time.Second}, {"0", "", 0}, {"86400", "", mostWait}, {"86401",
			"", mostWait},
		{"99999999999999999999999", "", mostWait}, {"18446744073709551615", "", mostWait}, {"9223372036854775807", "", mostWait},
		{"-1", "", -1}, {"+1", "", -1}, {"1.5", "", -1}, {"1e3", "", -1}, {"10s", "", -1}, {"soon", "", -1}, {"٣", "", -1},
		{"0x10", "", -1},
		{"Mon, 16 Nov 2026 12:01:30 GMT", "", 90 * time.Second},
		{"Monday, 16-Nov-26 12:01:30 GMT", "", 90 * time.Second},
		{"Mon Nov 16 12:01:30 2026", "", 90 * time.Second},
		{"Mon, 16 Nov 2026 11:00:00 GMT", "", 0},                                             // past
		{"Mon, 16 Nov 2099 11:00:00 GMT", "", mostWait},                                      // far
		{"Mon, 16 Nov 2026 09:00:30 GMT", "Mon, 16 Nov 2026 09:00:00 GMT", 30 * time.Second}, // its clock is three hours behind
		{"Mon, 16 Nov 2026 12:00:30 GMT", "yesterday", 30 * time.Second},                     // its Date cannot be read
		{"60", "Mon, 16 Nov 2026 09:00:00 GMT", time.Minute},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		h.Set("Date", c.date)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%q with date %q: %v, want %v", c.value, c.date, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "1", "120", "99999999999999999999", "-1", "Mon, 16 Nov 2026 12:01:30 GMT",
		"Mon Nov 16 12:01:30 2026", "\x00"} {
		f.Add(seed, "Mon, 16 Nov 2026 12:01:30 GMT")
	}
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		got := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if got != -1 && (got < 0 || got > mostWait) {
			t.Errorf("%q: %v", value, got)
		}
		text := strings.TrimSpace(value)
		if n, err := strconv.Atoi(text); err == nil && n < 1000 && text[0] >= '0' && got != time.Duration(n)*time.Second {
			t.Errorf("%q: %v", value, got)
		}
	})
}

// Answers that differ only in their bodies are one fault to who counts failures.
func TestJ23_BodiesDoNotSplitFailures(t *testing.T) {
	prints := map[string]bool{}
	for _, body := range []string{"no", `{"error":"it's \"broken\"","id":"a-1"}`, "<html>\nword «x» `y`", strings.Repeat("long ",
		500), "quote \" alone"} {
		err := &StatusError{Host: "hooks.example", Response: Response{Status: 500, Body: body}}
		prints[job.Fingerprint(err.Error())] = true
	}
	other := &StatusError{Host: "hooks.example", Response: Response{Status: 404, Body: "no"}}
	if len(prints) != 1 || prints[job.Fingerprint(other.Error())] {
		t.Errorf("%d fingerprints", len(prints))
	}
}
