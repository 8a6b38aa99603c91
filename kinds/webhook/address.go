package webhook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlwork/pawl/job"
)

// AddressError says that a post was not sent because of the address at which its
// host is. Nothing was connected to.
type AddressError struct {
	Host    string
	Address netip.Addr
	Why     string // "loopback", "private", …
}

func (a *AddressError) Error() string {
	if isAddress(a.Host) {
		return fmt.Sprintf("address %s is refused: %s (see Config.AllowAddresses and AllowHosts)", a.Host, a.Why)
	}
	return fmt.Sprintf("webhook: %s is at %v, which is refused: %s (see Config.AllowAddresses and AllowHosts)", a.Host, a.Address, a.Why)
}

// special are the addresses that are nobody's on the internet, by the registries
// of IANA for special purposes.
var special = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by carriers (CGNAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"}, // metadata of clouds is at 169.254.169.254
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "of protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "of 6to4 relays"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64 of a local network"},
	{netip.MustParsePrefix("2001::/23"), "of protocols (Teredo and others)"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private (ULA)"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	global = netip.MustParsePrefix("2000::/3")
)

// refusal says why an address is no place for a post; empty if it is one. Of IPv6
// only what is given out as global is, so that what we do not know is refused.
func refusal(a netip.Addr) string {
	a = plainAddress(a)
	if nat64.Contains(a) { // the other end is the IPv4 address inside
		b := a.As16()
		if why := refusal(netip.AddrFrom4([4]byte(b[12:]))); why != "" {
			return why + ", through NAT64"
		}
		return ""
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.why
		}
	}
	if !a.IsValid() || a.Is6() && !global.Contains(a) {
		return "not global"
	}
	return ""
}

// plainAddress has no zone, which prefixes do not match, and is IPv4 where it is
// IPv4 written as IPv6.
func plainAddress(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// judge refuses an address of a host unless the configuration allows it.
func (c *Config) judge(host string, a netip.Addr) error {
	if c.AllowPrivate || matchesHost(c.AllowHosts, host) {
		return nil
	}
	if slices.ContainsFunc(c.AllowAddresses, func(p netip.Prefix) bool { return p.Contains(plainAddress(a)) }) {
		return nil
	}
	if why := refusal(a); why != "" {
		return &AddressError{Host: host, Address: a, Why: why}
	}
	return nil
}

// judgeLiteral judges a host that is an address already. Names are judged when
// they are resolved, see dial.
func (c *Config) judgeLiteral(host string) error {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	if err := c.judge(host, a); err != nil {
		return fmt.Errorf("%w webhook url: %w", job.ErrInvalid, err)
	}
	return nil
}

// dial connects. Each address that the name was resolved to is judged right
// before the connection to it: there is no second look-up between the two that
// could answer otherwise.
func (c *Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: c.Timeout, KeepAlive: 15 * time.Second, Resolver: c.Resolver}
	if c.Proxy == nil { // else the one that is dialled is the proxy
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return c.judge(host, to.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

// plainHost is a host as hosts are compared.
func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// matchesHost reports whether one of the patterns means the host.
func matchesHost(patterns []string, host string) bool {
	host = plainHost(host)
	return slices.ContainsFunc(patterns, func(p string) bool {
		if below, ok := strings.CutPrefix(p, "*."); ok {
			return strings.HasSuffix(host, "."+below)
		}
		return p == host || p == "*"
	})
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
