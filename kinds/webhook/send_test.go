package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
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
		if err := (Post{URL: url}).Check(); !errors.Is(err, pawl.ErrInvalid) || strings.Contains(err.Error(), "u:p@") {
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
		s.bodyWait = 50 * time.Millisecond
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

// Each fault of TLS is a failure that is tried again and says what it is.
func TestJ23_TLSErrorsAreTriedAgain(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	server := unstarted(t, nil)
	server.Config.ErrorLog = quiet
	server.StartTLS()
	old := unstarted(t, nil)
	old.Config.ErrorLog = quiet
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	mutual := unstarted(t, nil)
	mutual.Config.ErrorLog = quiet
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	mutual.StartTLS()
	plain := newReceiver(t, nil)
	plain.Config.ErrorLog = quiet
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	dns := newNames(t, map[string]func(int) []string{"wrong.test": always("127.0.0.1")})
	for name, c := range map[string]struct {
		url    string
		config *tls.Config
		want   string
	}{
		"unknown authority": {server.URL, nil, "TLS: the certificate is not accepted: x509: certificate signed by unknown authority"},
		"another name": {server.at("wrong.test"), &tls.Config{RootCAs: roots},
			"TLS: the certificate is not accepted: x509: certificate is valid for"},
		"expired": {server.URL, &tls.Config{RootCAs: roots, Time: func() time.Time { return time.Now().AddDate(200, 0, 0) }},
			"TLS: the certificate is not accepted: x509: certificate has expired"},
		"old version":        {old.URL, &tls.Config{RootCAs: roots}, "protocol version"},
		"client certificate": {mutual.URL, &tls.Config{RootCAs: roots}, "certificate required"},
		"no TLS at all":      {"https" + strings.TrimPrefix(plain.URL, "http"), nil, "TLS: the server does not speak it"},
	} {
		s := sending(t, func(cfg *Config) { cfg.TLS, cfg.Resolver = c.config, dns.resolver() })
		_, err := s.attempt(t.Context(), Post{URL: c.url})
		if meaning(err) != "retry" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := sending(t, func(c *Config) { c.TLS = &tls.Config{RootCAs: roots} })
	if answer, err := s.attempt(t.Context(), Post{URL: server.URL}); err != nil || answer.Status != 200 {
		t.Errorf("as it should be: %+v, %v", answer, err)
	}
}

func TestJ23_TransportErrorsAreTriedAgain(t *testing.T) {
	gone := newReceiver(t, nil)
	gone.Close()
	broken := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			c.Close()
		}
	})
	garbage := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(c, "SMTP ready\r\n")
			c.Close()
		}
	})
	long := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("x", 1<<20)) })
	dns := newNames(t, nil)
	for name, url := range map[string]string{
		"refused": gone.URL, "closed": broken.URL, "garbage": garbage.URL, "endless headers": long.URL, "no such name": "http://gone.test/",
	} {
		_, err := sending(t, func(c *Config) { c.Resolver = dns.resolver() }).attempt(t.Context(), Post{URL: url})
		if meaning(err) != "retry" || !strings.HasPrefix(err.Error(), "POST to ") {
			t.Errorf("%s: %v", name, err)
		}
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

// Proxies of the environment would resolve names behind our back.
func TestJ23_ProxiesAreOnlyThoseOfTheConfiguration(t *testing.T) {
	proxy, server := newReceiver(t, nil), newReceiver(t, nil)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	dns := newNames(t, map[string]func(int) []string{"hooks.test": always("127.0.0.1")})
	s := sending(t, func(c *Config) { c.Resolver = dns.resolver() })
	if _, err := s.attempt(t.Context(), Post{URL: server.at("hooks.test")}); err != nil || len(server.requests()) != 1 ||
		len(proxy.requests()) != 0 {
		t.Errorf("%v; the proxy had %d requests", err, len(proxy.requests()))
	}
	s = sending(t, func(c *Config) { c.AllowAddresses = nil; c.Proxy = must(url.Parse(proxy.URL)) })
	if _, err := s.attempt(t.Context(), Post{URL: "http://hooks.test/x"}); err != nil || len(proxy.requests()) != 1 ||
		proxy.requests()[0].host != "hooks.test" {
		t.Errorf("%v; the proxy had %+v", err, proxy.requests())
	}
	_, err := s.attempt(t.Context(), Post{URL: "http://169.254.169.254/"})
	if _, is := errors.AsType[*AddressError](err); !is || len(proxy.requests()) != 1 {
		t.Errorf("an address through a proxy: %v", err)
	}
}

func TestJ23_SecretsThatAreMissingAreNoSecrets(t *testing.T) {
	server := newReceiver(t, nil)
	down := errors.New("the database is down")
	s := sending(t, func(c *Config) {
		c.AllowUnsigned = false
		c.Secrets = map[string][]Secret{"acme": {NewSecret()}}
		c.SecretsOf = func(_ context.Context, name string) ([]Secret, error) {
			switch name {
			case "stored":
				return []Secret{knownSecret}, nil
			case "down":
				return nil, down
			case "empty":
				return []Secret{{}}, nil
			}
			return nil, nil
		}
	})
	for name, want := range map[string]string{"": `no secret ""`, "other": `no secret "other"`, "down": down.Error(),
		"empty": "must come from"} {
		if _, err := s.attempt(t.Context(), Post{URL: server.URL, Secret: name}); meaning(err) != "retry" ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(server.requests()); n != 0 {
		t.Errorf("%d requests went out unsigned", n)
	}
	if _, err := s.attempt(t.Context(), Post{URL: server.URL, Secret: "stored"}); err != nil {
		t.Fatal(err)
	}
	r := server.requests()[0]
	if err := Verify([]Secret{knownSecret}, r.header, []byte(r.body), 0, time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := sending(t, nil).attempt(t.Context(), Post{URL: server.URL}); err != nil ||
		server.requests()[1].header.Get(HeaderSignature) != "" {
		t.Errorf("allowed to be unsigned: %v", err)
	}
}

// All faults of a configuration come at once, and nothing is registered.
func TestJ23_FaultsOfAConfiguration(t *testing.T) {
	var hs pawl.Handlers
	err := Register(&hs, Config{
		Secrets: map[string][]Secret{"a": nil, "b": {{}}, "c": make([]Secret, 9)}, Timeout: -1, MaxBody: -1, KeepBody: 1 << 30,
		Redirects: 4, MaxRetryAfter: 48 * time.Hour,
		DeadOn: []int{200, 429, 600}, Ports: []int{0, 70000}, AllowAddresses: []netip.Prefix{{},
			netip.MustParsePrefix("::ffff:10.0.0.0/104")},
		AllowHosts: []string{"", "*", "a:80", "http://a", "*.*.a", "ä"}, RedirectHosts: []string{"a*"},
		Proxy: &url.URL{Scheme: "ftp", Host: "x"}, UserAgent: "a\nb",
	})
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Fatal(err)
	}
	for field, times := range map[string]int{
		"webhook secrets of": 2, "webhook secret of b": 1, "webhook timeout": 1, "webhook body bound": 1, "webhook kept bytes": 1,
		"webhook redirects": 1, "longest Retry-After": 1,
		"status that is dead": 3, "webhook port": 2, "webhook address to allow": 2, "webhook host to allow": 6,
		"webhook host to redirect to": 1, "webhook proxy": 1, "user agent": 1,
	} {
		if n := strings.Count(err.Error(), field); n != times {
			t.Errorf("%s: %d faults, want %d", field, n, times)
		}
	}
	if err := Register(&hs, Config{}); err == nil || !strings.Contains(err.Error(), "AllowUnsigned") {
		t.Errorf("no secrets at all: %v", err)
	}
	good := Config{AllowUnsigned: true, AllowHosts: []string{"a", "*.b.c", "127.0.0.1", "::1"}, RedirectHosts: []string{"*",
		"*.x"}, DeadOn: []int{400}, Redirects: 3}
	if err := Register(&hs, good); err != nil {
		t.Error(err)
	}
}

// Posts to one host share a connection while it is fresh, and speak HTTP/2 where
// the receiver does.
func TestJ23_ConnectionsAreShared(t *testing.T) {
	var opened atomic.Int32
	server := unstarted(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) })
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.StartTLS()
	s := sending(t, func(c *Config) {
		c.Idle = 0 // the default
		c.TLS = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	})
	for range 3 {
		if answer, err := s.attempt(t.Context(), Post{URL: server.URL}); err != nil || answer.Body != "HTTP/2.0" {
			t.Errorf("%+v, %v", answer, err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
