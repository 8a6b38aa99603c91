package webhook

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
)

func TestJ23_SpecialAddressesAreRefused(t *testing.T) {
	for address, why := range map[string]string{
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"100.64.0.1": "CGNAT", "100.127.255.255": "CGNAT",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"224.0.0.1": "multicast", "239.255.255.255": "multicast", "ff02::1": "multicast",
		"255.255.255.255": "reserved", "240.0.0.1": "reserved",
		"192.0.0.8": "protocols", "198.18.0.1": "benchmarks", "198.19.255.255": "benchmarks",
		"192.0.2.1": "documentation", "198.51.100.1": "documentation", "203.0.113.9": "documentation",
		"2001:db8::1": "documentation", "3fff::1": "documentation",
		"fc00::1": "ULA", "fd12:3456::1": "ULA", "fec0::1": "not global", "100::1": "not global", "5f00::1": "not global",
		"4000::1":          "not global",
		"::ffff:127.0.0.1": "loopback", "::ffff:169.254.169.254": "link-local", "::ffff:10.1.2.3": "private",
		"::ffff:0.0.0.0": "unspecified",
		"::127.0.0.1":    "not global", "::ffff:0:127.0.0.1": "not global",
		"64:ff9b::7f00:1": "loopback, through NAT64", "64:ff9b::169.254.169.254": "link-local, through NAT64",
		"64:ff9b::10.0.0.1":  "private, through NAT64",
		"64:ff9b:1::808:808": "NAT64 of a local network",
		"2002:7f00:1::":      "6to4", "2002:a9fe:a9fe::1": "6to4", "2002:808:808::1": "6to4", "192.88.99.1": "6to4",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
	} {
		if got := refusal(netip.MustParseAddr(address)); !strings.Contains(got, why) || got == "" {
			t.Errorf("%s: refused as %q, want %q", address, got, why)
		}
	}
	if refusal(netip.Addr{}) == "" {
		t.Error("no address at all is not refused")
	}
	for _, address := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1",
		"169.253.0.1", "172.15.0.1", "172.32.0.1",
		"192.167.0.1", "192.169.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
	} {
		if got := refusal(netip.MustParseAddr(address)); got != "" {
			t.Errorf("%s is refused as %q", address, got)
		}
	}
}

// An address in the URL itself is never right later: such a post is dead, however
// the address is written.
func TestJ23_PrivateAddressInAURLIsDead(t *testing.T) {
	s, err := newSender(Config{AllowUnsigned: true, Idle: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"http://127.0.0.1/", "http://[::1]:8080/", "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1", "https://192.168.0.1/x",
		"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[fe80::1%25eth0]/", "http://0.0.0.0/", "http://[64:ff9b::a00:1]/",
	} {
		_, err := s.attempt(t.Context(), Post{URL: url})
		refused, is := errors.AsType[*AddressError](err)
		if !is || !pawl.IsDead(err) || refused.Why == "" {
			t.Errorf("%s: %v", url, err)
		}
		if err := (Post{URL: url}).Check(Config{}); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "is refused: "+refused.Why) {
			t.Errorf("%s is checked as %v", url, err)
		}
		if err := (Post{URL: url}).Check(Config{AllowPrivate: true}); err != nil {
			t.Errorf("%s is checked as %v, though private addresses are allowed", url, err)
		}
	}
	if err := (Post{URL: "http://HOOKS.internal./"}).Check(Config{AllowHosts: []string{"hooks.internal"}}); err != nil {
		t.Error(err)
	}
	if err := (Post{URL: "http://hooks.example/"}).Check(Config{HTTPSOnly: true}); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("http is checked as %v", err)
	}
	if err := (Post{URL: "http://hooks.example/"}).Check(Config{Ports: []int{-1}}); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a bad configuration is checked as %v", err)
	}
}

// Other ways to write an address are names, which a resolver may or may not read
// as one. Whatever it says, it is judged.
func TestJ23_OddlyWrittenAddressesDoNotConnect(t *testing.T) {
	server := newReceiver(t, nil)
	s := sending(t, func(c *Config) { c.AllowAddresses = nil })
	port := server.at("x")[strings.LastIndex(server.at("x"), ":"):]
	for _, host := range []string{"2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost", "localhost."} {
		if answer, err := s.attempt(t.Context(), Post{URL: "http://" + host + port}); err == nil {
			t.Errorf("%s answered %d", host, answer.Status)
		}
	}
	if n := len(server.requests()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

// A name is judged by the address that is connected to, at each connection: one
// that led to an allowed address leads to a private one later, and is refused.
// 0.0.0.0 is the same server by another address, so that only the refusal stops it.
func TestJ23_PrivateAddressAfterADNSChangeIsRefused(t *testing.T) {
	server := newReceiver(t, nil)
	dns := newNames(t, map[string]func(int) []string{"hooks.example": func(asked int) []string {
		if asked == 0 {
			return []string{"127.0.0.1"}
		}
		return []string{"0.0.0.0"}
	}})
	s := sending(t, func(c *Config) { c.Resolver = dns.resolver() })
	if _, err := s.attempt(t.Context(), Post{URL: server.at("hooks.example")}); err != nil {
		t.Fatal(err)
	}
	_, err := s.attempt(t.Context(), Post{URL: server.at("hooks.example")})
	refused, is := errors.AsType[*AddressError](err)
	if !is || refused.Host != "hooks.example" || refused.Address.String() != "0.0.0.0" || refused.Why != "unspecified" {
		t.Errorf("after the change: %v", err)
	}
	if pawl.IsDead(err) {
		t.Error("dead, though DNS may be mended")
	}
	if n := len(server.requests()); n != 1 {
		t.Errorf("%d requests came through, want the first only", n)
	}
}

// There is one look-up for a connection. A resolver that answers a look-up for the
// check well and the next one for the connection badly finds no such two.
func TestJ23_NoLookUpBetweenCheckAndConnection(t *testing.T) {
	server := newReceiver(t, nil)
	dns := newNames(t, map[string]func(int) []string{"hooks.example": func(asked int) []string {
		return []string{[]string{"127.0.0.1", "0.0.0.0"}[asked%2]}
	}})
	s := sending(t, func(c *Config) { c.Resolver = dns.resolver() })
	for i := range 10 {
		_, err := s.attempt(t.Context(), Post{URL: server.at("hooks.example")})
		if _, refused := errors.AsType[*AddressError](err); refused != (i%2 == 1) || !refused && err != nil {
			t.Errorf("post %d: %v", i, err)
		}
	}
	if asked, came := dns.lookups("hooks.example"), len(server.requests()); asked != 10 || came != 5 {
		t.Errorf("%d look-ups and %d requests, want 10 and 5", asked, came)
	}
}

// Of several addresses the allowed one is taken.
func TestJ23_RefusedAddressesArePassedOver(t *testing.T) {
	server := newReceiver(t, nil)
	dns := newNames(t, map[string]func(int) []string{
		"mixed.example": always("10.0.0.1", "127.0.0.1"), "private.example": always("10.0.0.1", "192.168.0.1"),
	})
	s := sending(t, func(c *Config) { c.Resolver = dns.resolver() })
	if _, err := s.attempt(t.Context(), Post{URL: server.at("mixed.example")}); err != nil {
		t.Error(err)
	}
	_, err := s.attempt(t.Context(), Post{URL: server.at("private.example")})
	if _, is := errors.AsType[*AddressError](err); !is {
		t.Errorf("got %v", err)
	}
}

func TestJ23_WhatIsAllowedGoesThrough(t *testing.T) {
	server := newReceiver(t, nil)
	dns := newNames(t, map[string]func(int) []string{
		"hooks.internal": always("127.0.0.1"), "a.b.internal": always("127.0.0.1"), "internal": always("127.0.0.1"),
		"notinternal": always("127.0.0.1"),
	})
	for name, c := range map[string]struct {
		change func(*Config)
		host   string
		want   bool
	}{
		"nothing":          {func(c *Config) {}, "hooks.internal", false},
		"all":              {func(c *Config) { c.AllowPrivate = true }, "hooks.internal", true},
		"all, literal":     {func(c *Config) { c.AllowPrivate = true }, "127.0.0.1", true},
		"address":          {func(c *Config) { c.AllowAddresses = []netip.Prefix{loopback} }, "hooks.internal", true},
		"address, literal": {func(c *Config) { c.AllowAddresses = []netip.Prefix{loopback} }, "127.0.0.1", true},
		"address, mapped":  {func(c *Config) { c.AllowAddresses = []netip.Prefix{loopback} }, "::ffff:127.0.0.1", true},
		"another address": {func(c *Config) { c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} },
			"127.0.0.1", false},
		"host":                  {func(c *Config) { c.AllowHosts = []string{"Hooks.Internal"} }, "hooks.internal", true},
		"host in capitals":      {func(c *Config) { c.AllowHosts = []string{"hooks.internal."} }, "HOOKS.internal", true},
		"host, literal":         {func(c *Config) { c.AllowHosts = []string{"127.0.0.1"} }, "127.0.0.1", true},
		"another host":          {func(c *Config) { c.AllowHosts = []string{"hooks.internal"} }, "a.b.internal", false},
		"names below":           {func(c *Config) { c.AllowHosts = []string{"*.internal"} }, "a.b.internal", true},
		"names below, not it":   {func(c *Config) { c.AllowHosts = []string{"*.internal"} }, "internal", false},
		"names below, not near": {func(c *Config) { c.AllowHosts = []string{"*.internal"} }, "notinternal", false},
	} {
		s := sending(t, func(cfg *Config) {
			cfg.AllowAddresses, cfg.Resolver = nil, dns.resolver()
			c.change(cfg)
		})
		_, err := s.attempt(t.Context(), Post{URL: server.at(c.host)})
		if _, refused := errors.AsType[*AddressError](err); refused == c.want || c.want && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJ23_PortsAndSchemesAreBounded(t *testing.T) {
	server := newReceiver(t, nil)
	s := sending(t, func(c *Config) { c.Ports = []int{80, 443} })
	if _, err := s.attempt(t.Context(), Post{URL: server.URL}); !pawl.IsDead(err) || !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a port off the list: %v", err)
	}
	s = sending(t, func(c *Config) { c.HTTPSOnly = true })
	if _, err := s.attempt(t.Context(), Post{URL: server.URL}); !pawl.IsDead(err) || !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("plain http: %v", err)
	}
	if n := len(server.requests()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}
