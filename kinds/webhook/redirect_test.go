package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
)

// to answers every request at / with a redirect, and others with 200.
func to(status int, location func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Location", location())
			w.WriteHeader(status)
		}
	}
}

// There are none unless they are asked for, and the failure says so.
func TestJ23_RedirectsAreNotFollowedUnlessAsked(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := newReceiver(t, to(status, func() string { return "/there" }))
		_, err := sending(t, nil).attempt(t.Context(), Post{URL: server.URL})
		failed, is := errors.AsType[*StatusError](err)
		if !is || failed.Response.Status != status || failed.Response.Headers["Location"] != "/there" || pawl.IsDead(err) {
			t.Errorf("%d: %v", status, err)
		}
		if n := len(server.requests()); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

// Followed is by another POST with the same body, id and signature.
func TestJ23_RedirectsKeepThePost(t *testing.T) {
	for status, followed := range map[int]bool{301: true, 302: true, 303: false, 307: true, 308: true} {
		server := newReceiver(t, to(status, func() string { return "/there?x=1" }))
		s := sending(t, func(c *Config) { c.Redirects = 1; c.Secrets = map[string][]Secret{"": {NewSecret()}} })
		answer, err := s.attempt(t.Context(), Post{URL: server.URL, Body: []byte(`{"n":1}`), Headers: map[string]string{"X-Token": "t"}})
		all := server.requests()
		if !followed {
			if err == nil || len(all) != 1 {
				t.Errorf("%d was followed: %v", status, err)
			}
			continue
		}
		if err != nil || len(all) != 2 || answer.Redirects != 1 || answer.Status != 200 {
			t.Errorf("%d: %+v, %v", status, answer, err)
			continue
		}
		for _, name := range []string{HeaderID, HeaderTimestamp, HeaderSignature, "Content-Type", "X-Token"} {
			if first, second := all[0].header.Get(name), all[1].header.Get(name); first != second || first == "" {
				t.Errorf("%d: %s was %q, then %q", status, name, first, second)
			}
		}
		if all[1].body != `{"n":1}` || all[1].path != "/there" {
			t.Errorf("%d: second request %+v", status, all[1])
		}
	}
}

func TestJ23_RedirectsAreCounted(t *testing.T) {
	server := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect) // for ever
	})
	for most := 1; most <= 3; most++ {
		before := len(server.requests())
		_, err := sending(t, func(c *Config) { c.Redirects = most }).attempt(t.Context(), Post{URL: server.URL})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d redirects", most)) || pawl.IsDead(err) {
			t.Errorf("%d: %v", most, err)
		}
		if n := len(server.requests()) - before; n != most+1 {
			t.Errorf("%d: %d requests", most, n)
		}
	}
}

// Each hop is judged like the first: by its address where it is one, and when it
// is connected to where it is a name.
func TestJ23_RedirectsToPrivateAddressesAreRefused(t *testing.T) {
	var location string
	server := newReceiver(t, to(307, func() string { return location }))
	dns := newNames(t, map[string]func(int) []string{"inner.example": always("0.0.0.0"), "outer.example": always("127.0.0.1")})
	s := sending(t, func(c *Config) {
		c.Redirects, c.RedirectHosts, c.Resolver = 3, []string{"*"}, dns.resolver()
	})
	for _, location = range []string{
		"http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://[::1]/", "//192.168.1.1/x",
		server.at("inner.example") + "/x",
		server.at("0.0.0.0") + "/x",
	} {
		_, err := s.attempt(t.Context(), Post{URL: server.URL})
		if _, is := errors.AsType[*AddressError](err); !is || pawl.IsDead(err) {
			t.Errorf("%s: %v", location, err)
		}
	}
	for _, r := range server.requests() {
		if r.path != "/" {
			t.Errorf("%s was asked for", r.path)
		}
	}
	location = server.at("outer.example") + "/x"
	if _, err := s.attempt(t.Context(), Post{URL: server.URL}); err != nil {
		t.Errorf("to an allowed address: %v", err)
	}
}

// Body and signature stay with the host they are for. One that is named gets both,
// and not the post's own headers.
func TestJ23_RedirectsStayWithTheHost(t *testing.T) {
	var location string
	server := newReceiver(t, to(307, func() string { return location }))
	dns := newNames(t, map[string]func(int) []string{"one.example": always("127.0.0.1"), "two.example": always("127.0.0.1")})
	post := Post{URL: server.at("one.example"), Body: []byte(`1`), Headers: map[string]string{"Authorization": "Bearer x"}}
	location = server.at("two.example") + "/there"

	_, err := sending(t, func(c *Config) { c.Redirects, c.Resolver = 1, dns.resolver() }).attempt(t.Context(), post)
	if err == nil || !strings.Contains(err.Error(), "another host") || len(server.requests()) != 1 {
		t.Errorf("to another host: %v", err)
	}
	other := newReceiver(t, nil)
	location = other.at("one.example") + "/there"
	_, err = sending(t, func(c *Config) { c.Redirects, c.Resolver = 1, dns.resolver() }).attempt(t.Context(), post)
	if err == nil || !strings.Contains(err.Error(), "another host") || len(other.requests()) != 0 {
		t.Errorf("to another port: %v", err)
	}
	location = server.at("two.example") + "/there"
	s := sending(t, func(c *Config) {
		c.Redirects, c.Resolver, c.RedirectHosts = 1, dns.resolver(), []string{"TWO.example"}
		c.Secrets = map[string][]Secret{"": {NewSecret()}}
	})
	if _, err = s.attempt(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	all := server.requests()
	last := all[len(all)-1]
	if !strings.HasPrefix(last.host, "two.example:") || last.body != "1" || last.header.Get(HeaderSignature) == "" ||
		last.header.Get("Authorization") != "" {
		t.Errorf("the named host got %+v", last)
	}
}

func TestJ23_RedirectFromHTTPSToHTTPIsRefused(t *testing.T) {
	plain := newReceiver(t, nil)
	server := unstarted(t, to(308, func() string { return plain.URL + "/there" }))
	server.StartTLS()
	s := sending(t, func(c *Config) {
		c.Redirects, c.RedirectHosts = 1, []string{"*"}
		c.TLS = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	})
	_, err := s.attempt(t.Context(), Post{URL: server.URL})
	if err == nil || !strings.Contains(err.Error(), "from https to http") || len(plain.requests()) != 0 {
		t.Errorf("got %v, and %d requests", err, len(plain.requests()))
	}
}

func TestJ23_BadRedirectsAreRefused(t *testing.T) {
	var location string
	server := newReceiver(t, to(307, func() string { return location }))
	s := sending(t, func(c *Config) {
		c.Redirects, c.RedirectHosts, c.Ports = 2, []string{"*"}, []int{portOf(must(url.Parse(server.URL)))}
	})
	for _, location = range []string{
		"", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://u:p@127.0.0.1/", "http://127.0.0.1:1/", "%zz",
		"/" + strings.Repeat("x", mostURL),
	} {
		if _, err := s.attempt(t.Context(), Post{URL: server.URL}); err == nil || pawl.IsDead(err) ||
			!strings.Contains(err.Error(), "redirect refused") {
			t.Errorf("%.40q: %v", location, err)
		}
	}
}

func TestJ23_WhatOneHostIs(t *testing.T) {
	for pair, want := range map[string]bool{
		"http://a/ http://a/x": true, "http://a/ http://A./": true, "http://a/ https://a/": true, "http://a:80/ https://a:443/": true,
		"https://a:443/ https://a/": true,
		"https://a/ http://a/":      false, "http://a/ http://b/": false, "http://a/ http://a.b/": false, "http://a/ http://a:81/": false,
		"http://a:81/ https://a/":  false,
		"http://a/ https://a:444/": false, "http://a:81/ https://a:81/": false,
	} {
		from, to, _ := strings.Cut(pair, " ")
		if got := sameHost(must(url.Parse(from)), must(url.Parse(to))); got != want {
			t.Errorf("%s: %v", pair, got)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
