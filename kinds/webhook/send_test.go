package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

func TestJ23_WhatAReceiverGets(t *testing.T) {
	server := newReceiver(t, nil)
	secret := NewSecret()
	s := sending(t, func(c *Config) { c.Secrets = map[string][]Secret{"acme": {secret}}; c.UserAgent = "shop/7" })
	for _, c := range []struct {
		post       Post
		body, kind string
	}{
		{Post{Body: json.RawMessage(`{"order":7}`)}, `{"order":7}`, "application/json"},
		{Post{Body: json.RawMessage(`{"order":7}`), ContentType: "application/cloudevents+json"}, `{"order":7}`,
			"application/cloudevents+json"},
		{Post{Data: []byte("\x00\xff")}, "\x00\xff", "application/octet-stream"},
		{Post{Data: []byte("a=1"), ContentType: "application/x-www-form-urlencoded"}, "a=1", "application/x-www-form-urlencoded"},
		{Post{}, "", "application/json"},
	} {
		c.post.URL, c.post.Secret = server.URL+"/in", "acme"
		c.post.Headers = map[string]string{"X-Tenant": "acme", "Authorization": "Bearer x"}
		if _, err := s.attempt(t.Context(), c.post); err != nil {
			t.Fatal(err)
		}
		all := server.requests()
		r := all[len(all)-1]
		if r.body != c.body || r.header.Get("Content-Type") != c.kind || r.header.Get("User-Agent") != "shop/7" || r.path != "/in" ||
			r.header.Get("X-Tenant") != "acme" || r.header.Get("Authorization") != "Bearer x" || r.header.Get("Accept-Encoding") != "" {
			t.Errorf("got %+v", r)
		}
		if err := Verify([]Secret{secret}, r.header, []byte(r.body), 0, time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// What HTTP or the signature needs is not a post's to set, and no value becomes a
// second header.
func TestJ23_HeadersCannotBeForged(t *testing.T) {
	server := newReceiver(t, nil)
	s := sending(t, nil)
	for name, value := range map[string]string{
		"Host": "x", "host": "x", "Content-Length": "1", "Transfer-Encoding": "chunked", "Connection": "close",
		"Content-Type": "x", "Upgrade": "h2c", "TE": "x",
		"Webhook-Id": "x", "webhook-signature": "v1,x", "WEBHOOK-TIMESTAMP": "1", "Webhook-Other": "x",
		"Proxy-Authorization": "x", "Expect": "100-continue",
		"": "x", "A B": "x", "A:B": "x", "A\r\nB": "x", "Ä": "x", "A\x00": "x",
		"X-A": "a\r\nX-B: b", "X-B": "a\nb", "X-C": "a\rb", "X-D": "a\x00b", "X-E": "\x7f",
	} {
		_, err := s.attempt(t.Context(), Post{URL: server.URL, Headers: map[string]string{name: value}})
		if !pawl.IsDead(err) || !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%q: %q: %v", name, value, err)
		}
	}
	many := map[string]string{}
	for i := range mostHeaders + 1 {
		many[fmt.Sprint("X-", i)] = "x"
	}
	for _, p := range []Post{
		{Headers: many},
		{Headers: map[string]string{"X-Long": strings.Repeat("x", mostHeaderBytes)}},
		{Headers: map[string]string{"X-A": "1", "x-a": "2"}},
		{ContentType: "text/plain\r\nX-Evil: 1"},
		{Body: []byte("1"), Data: []byte("1")},
		{Body: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)},
	} {
		p.URL = server.URL
		if _, err := s.attempt(t.Context(), p); !pawl.IsDead(err) || !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%.60v: %v", p.Headers, err)
		}
	}
	for _, url := range []string{
		"", "hooks.example", "/x", "ftp://hooks.example/", "http:///x", "http://", "https:hooks.example", "http://u:p@hooks.example/",
		"http://a b/", "http://hooks.example/\r\nX: 1",
		"http://hooks.example:0/", "http://hooks.example:70000/", "http://hooks.example:/", "http://höoks.example/",
		"http://①②⑦.⓪.⓪.①/", "http://x/" + strings.Repeat("x", mostURL),
	} {
		if _, err := s.attempt(t.Context(), Post{URL: url}); !pawl.IsDead(err) || !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%.60q: %v", url, err)
		}
		if err := (Post{URL: url}).Check(Config{}); !errors.Is(err, pawl.ErrInvalid) || strings.Contains(err.Error(), "u:p@") {
			t.Errorf("%.60q is checked as %v", url, err)
		}
	}
	if n := len(server.requests()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

// A receiver that does not answer costs an attempt its timeout, no more.
func TestJ23_NoAnswerIsAFailureInTime(t *testing.T) {
	server := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := sending(t, func(c *Config) { c.Timeout = 50 * time.Millisecond })
	_, err := s.attempt(t.Context(), Post{URL: server.URL + "/secret-path?token=x"})
	if err == nil || meaning(err) != "retry" || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(fmt.Sprint(err), "secret-path") || strings.Contains(fmt.Sprint(err), "token") {
		t.Errorf("the error shows the URL: %v", err)
	}
}

// Who cancels a job, or stops the worker, is told by the error.
func TestJ23_ACancelledPostEndsAtOnce(t *testing.T) {
	arrived := make(chan struct{})
	server := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(pawl.ErrCancelled)
	}()
	if _, err := sending(t, nil).attempt(ctx, Post{URL: server.URL}); !errors.Is(err, pawl.ErrCancelled) {
		t.Errorf("got %v", err)
	}
}
