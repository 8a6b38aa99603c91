package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Config says how posts are signed and where they may go. The zero value of a
// field is its default, in brackets.
type Config struct {
	// Secrets sign posts, by the name that Post.Secret has. All secrets of a name
	// sign, at most 8: to rotate, put the new one before the old one, give it to the
	// receiver, and drop the old one then.
	Secrets map[string][]Secret
	// SecretsOf is asked for names that Secrets does not have: secrets that are kept
	// in a database, one for each receiver. It is asked at each attempt. Its error
	// fails the attempt; no secrets and no error means that there are none.
	SecretsOf func(ctx context.Context, name string) ([]Secret, error)
	// AllowUnsigned sends posts whose Secret is empty without a signature, unless
	// Secrets has some for the empty name.
	AllowUnsigned bool

	Timeout   time.Duration // of one attempt, from resolving the name to the end of the answer [30 s]
	MaxBody   int           // bytes of a post's body [1 MiB]
	KeepBody  int           // bytes of an answer's body that are kept [4 KiB]; negative: none
	UserAgent string        // ["pawl-webhook"]

	// DeadOn are statuses after which a post is dead, beside 410: those that will
	// never be otherwise. Not 2xx and not 429.
	DeadOn []int
	// MaxRetryAfter bounds what a receiver can ask for by Retry-After [1 h].
	MaxRetryAfter time.Duration
	// Limit names a declared rate (pawl.Config.Limits) of which every post takes a token
	// before it is sent, and which a 429 drains instead of cooling the whole queue down
	// [none]. With one that is per key, and a key for each receiver (pawl.Key), a
	// receiver that says 429 stops nobody else's posts.
	Limit string

	HTTPSOnly bool  // plain http is refused
	Ports     []int // to which posts may go [all]

	// AllowPrivate lets posts go to any address.
	AllowPrivate bool
	// AllowAddresses are private addresses to which posts may go all the same.
	AllowAddresses []netip.Prefix
	// AllowHosts are hosts to which posts may go whatever their address is:
	// "hooks.internal", or "*.internal" for all names below it.
	AllowHosts []string

	// Redirects is how many redirects one attempt follows [0], at most 3: 301, 302, 307
	// and 308, by another POST.
	Redirects int
	// RedirectHosts are hosts to which another host may redirect. They get body and
	// signature, not the post's Headers. Written as in AllowHosts; "*" is every host.
	RedirectHosts []string

	// Proxy takes all posts [none; the environment is not asked]. Names are then
	// resolved by the proxy, and it must refuse private addresses: only those that
	// stand in the URL itself are still seen here.
	Proxy *url.URL
	// Resolver resolves names [net.DefaultResolver].
	Resolver *net.Resolver
	// TLS has authorities and client certificates [the system's].
	TLS *tls.Config
	// Idle is how long a connection is kept for the next post to its host [30 s];
	// negative: not at all.
	Idle time.Duration
}

// Bounds that no configuration changes.
const (
	mostRedirects   = 3
	mostSecrets     = 8
	mostHeaders     = 32
	mostHeaderBytes = 8 << 10
	mostURL         = 4 << 10
	mostBody        = 64 << 20
	mostKept        = 64 << 10
	mostWait        = 24 * time.Hour
)

// checked is the configuration with its defaults, or all its faults.
func (c Config) checked() (Config, error) {
	c = c.filled()
	return c, errors.Join(
		c.checkSecrets(), c.checkBounds(), c.checkAnswers(), c.checkPlaces(), c.checkProxy(),
		checkHeaderValue("webhook user agent", c.UserAgent), c.checkLimit(),
	)
}

// filled has the defaults, and lists of its own.
func (c Config) filled() Config {
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.KeepBody = max(cmp.Or(c.KeepBody, 4<<10), 0)
	c.UserAgent = cmp.Or(c.UserAgent, "pawl-webhook")
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, time.Hour)
	c.Idle = cmp.Or(c.Idle, 30*time.Second)
	c.Secrets = maps.Clone(c.Secrets)
	c.DeadOn, c.Ports = slices.Clone(c.DeadOn), slices.Clone(c.Ports)
	c.AllowAddresses = slices.Clone(c.AllowAddresses)
	c.AllowHosts, c.RedirectHosts = slices.Clone(c.AllowHosts), slices.Clone(c.RedirectHosts)
	return c
}

func (c *Config) checkSecrets() error {
	var errs []error
	if len(c.Secrets) == 0 && c.SecretsOf == nil && !c.AllowUnsigned {
		errs = append(errs, job.Invalid("webhook Config.Secrets", "none", "must have a secret (webhook.NewSecret), or set SecretsOf, or AllowUnsigned to send without signature"))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		list := slices.Clone(c.Secrets[name])
		c.Secrets[name] = list
		if err := checkSecrets(name, list); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkSecrets looks at the secrets of one name.
func checkSecrets(name string, list []Secret) error {
	if len(list) == 0 || len(list) > mostSecrets {
		return job.Invalid("webhook secrets of "+name, len(list), fmt.Sprintf("must be 1..%d", mostSecrets))
	}
	if slices.ContainsFunc(list, Secret.IsZero) {
		return job.Invalid("webhook secret of "+name, "empty", "must come from NewSecret or ParseSecret")
	}
	return nil
}

func (c *Config) checkBounds() error {
	return errors.Join(
		within("webhook timeout", c.Timeout, time.Millisecond, mostWait),
		within("webhook longest Retry-After", c.MaxRetryAfter, time.Second, mostWait),
		within("webhook body bound", c.MaxBody, 1, mostBody),
		within("webhook kept bytes", c.KeepBody, 0, mostKept),
		within("webhook redirects", c.Redirects, 0, mostRedirects),
	)
}

func within[N cmp.Ordered](field string, value, least, most N) error {
	if value < least || value > most {
		return job.Invalid(field, value, fmt.Sprintf("must be %v..%v", least, most))
	}
	return nil
}

func (c *Config) checkAnswers() error {
	var errs []error
	for _, status := range c.DeadOn {
		if status < 300 || status > 599 || status == 429 {
			errs = append(errs, job.Invalid("webhook status that is dead", status, "must be 300..599 and not 429"))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) checkLimit() error {
	if c.Limit == "" {
		return nil
	}
	return job.CheckName("webhook limit", c.Limit)
}

func (c *Config) checkPlaces() error {
	var errs []error
	for _, port := range c.Ports {
		errs = append(errs, within("webhook port", port, 1, 65535))
	}
	for _, prefix := range c.AllowAddresses {
		if !prefix.IsValid() || prefix.Addr().Is4In6() {
			errs = append(errs, job.Invalid("webhook address to allow", prefix, "must be a prefix, and of IPv4 where it means IPv4"))
		}
	}
	for i := range c.AllowHosts {
		errs = append(errs, checkHostPattern("webhook host to allow", &c.AllowHosts[i], false))
	}
	for i := range c.RedirectHosts {
		errs = append(errs, checkHostPattern("webhook host to redirect to", &c.RedirectHosts[i], true))
	}
	return errors.Join(errs...)
}

// checkHostPattern looks at a name, or a pattern for all names below one, and
// writes it as hosts are compared.
func checkHostPattern(field string, pattern *string, any bool) error {
	given := *pattern
	*pattern = plainHost(given)
	rest := *pattern
	if any && rest == "*" {
		return nil
	}
	rest = strings.TrimPrefix(rest, "*.")
	if rest == "" || strings.ContainsAny(rest, "*/@[] ") || !isASCII(rest) || strings.Contains(rest, ":") && !isAddress(rest) {
		return job.Invalid(field, given, "must be a host without port, or *. and a host")
	}
	return nil
}

func (c *Config) checkProxy() error {
	if c.Proxy == nil {
		return nil
	}
	if !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, c.Proxy.Scheme) || c.Proxy.Hostname() == "" {
		return job.Invalid("webhook proxy", c.Proxy.Redacted(), "must be the URL of an http, https or socks5 proxy")
	}
	return nil
}
