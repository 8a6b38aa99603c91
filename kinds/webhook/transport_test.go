package webhook

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
