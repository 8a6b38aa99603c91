package webhook

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The status decides; the body is read for a while, and so far.
func TestJ23_SlowAndEndlessBodiesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"stops in the middle": {func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "begun")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "begun"},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "."); err != nil {
					return
				}
				http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond) // stimulus: a receiver that drips
			}
		}, "."},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "\uFFFD"},
	} {
		server := newReceiver(t, c.answer)
		s := sending(t, nil)
		s.bodyWait = 500 * time.Millisecond
		answer, err := s.attempt(t.Context(), Post{URL: server.URL})
		if err != nil || !answer.Truncated || !strings.HasPrefix(answer.Body, c.want) || len(answer.Body) > 3*4<<10 {
			t.Errorf("%s: %d bytes kept, truncated %v, %v", name, len(answer.Body), answer.Truncated, err)
		}
	}
}

// After 101 there is no body that ends with its context: it is not read.
func TestJ23_SwitchingProtocolsHoldsNobody(t *testing.T) {
	release := make(chan struct{})
	server := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nand")
		<-release
	})
	defer close(release)
	_, err := sending(t, nil).attempt(t.Context(), Post{URL: server.URL})
	if failed, is := errors.AsType[*StatusError](err); !is || failed.Response.Status != 101 || meaning(err) != "retry" {
		t.Errorf("got %v", err)
	}
}

// A redirect whose body never ends is followed all the same.
func TestJ23_SlowBodyOfARedirectIsLeft(t *testing.T) {
	server := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Location", "/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	s := sending(t, func(c *Config) { c.Redirects = 1 })
	s.bodyWait = 20 * time.Millisecond
	if _, err := s.attempt(t.Context(), Post{URL: server.URL}); err != nil {
		t.Error(err)
	}
}

func TestJ23_WhatIsKeptOfAnAnswer(t *testing.T) {
	server := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "r-1")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Type", strings.Repeat("t", 300))
		io.WriteString(w, "x\x00\xffy"+strings.Repeat("z", 100))
	})
	answer, err := sending(t, func(c *Config) { c.KeepBody = 10 }).attempt(t.Context(), Post{URL: server.URL})
	if err != nil || answer.Body != "x\uFFFD\uFFFDyzzzzzz" || !answer.Truncated || answer.Headers["X-Request-Id"] != "r-1" ||
		len(answer.Headers) != 2 || len(answer.Headers["Content-Type"]) != 256 {
		t.Errorf("%+v, %v", answer, err)
	}
	answer, err = sending(t, func(c *Config) { c.KeepBody = -1 }).attempt(t.Context(), Post{URL: server.URL})
	if err != nil || answer.Body != "" {
		t.Errorf("%+v, %v", answer, err)
	}
}
