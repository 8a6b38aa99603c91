// Package serve listens: the API, Mission Control, metrics, health and sessions of one engine on one
// address, and the engine's own work beside them.
//
//	connection --> conns (count, slow clients) --> gate (Host, Origin, who, rate, panics) --> / /api/ /metrics /session …
//
// On loopback nobody needs a token. Any other address needs a token file.
package serve

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/telemetry"
	"github.com/pawlwork/pawl/server/webui"
)

// DefaultListen is where a server listens when nothing is said.
const DefaultListen = "127.0.0.1:7340"

// Config is for Run. Zero fields take the default in brackets.
type Config struct {
	Engine *pawl.Engine // not closed by Run
	Run    bool         // the engine works beside; one without handlers and schedules is only served
	Routes []Route      // what else it answers, behind the same gate

	Listen    string   // host and port [DefaultListen]; without a token file only loopback
	Hosts     []string // names by which it is called from outside, such as "pawl.example.org" [any, where a token is needed]
	TokenFile string   // who may call (auth.ParseTokens); empty on loopback: everybody of this machine
	TLSCert   string   // PEM files, read again when they change; both or none
	TLSKey    string

	HidePayloads bool // payloads, results and job logs are hidden from viewers; without a token file from everybody
	Pprof        bool // /debug/pprof/, for admins

	Logger    *slog.Logger         // [slog.Default()]
	Version   string               // of the build ["dev"]
	Name      string               // of the installation, shown by Mission Control, such as "staging"
	Tour      webui.Tour           // what newcomers may try in Mission Control, of the demo [none]
	Ready     func(url string)     // called once, when it listens
	Telemetry *telemetry.Telemetry // spans of requests, and the metrics of the server; not shut down by Run [none]
	// Settings are what the program was told, without secrets: Mission Control shows them.
	Settings []webui.Setting

	MaxConns int           // at once; past it those that ask for nothing are closed, the longest idle first [1,024]
	Rate     int           // requests a second of one token, twice as many at once [2,000]
	StopTime time.Duration // how long requests may go on after the stop began [10s]
}

// Route is something else that a server answers. Requests have passed the gate: they call the
// server by its name, are no page's of somebody else, and their caller (auth.From) has the role.
type Route struct {
	Pattern string // of http.ServeMux, with a method
	Role    auth.Role
	Handler http.Handler
}

// Bounds that are not settings.
const (
	headerTime = 10 * time.Second // to send a request's headers
	bodyTime   = 30 * time.Second // to send its body
	idleTime   = 2 * time.Minute  // between requests of a connection
	writeTime  = 30 * time.Second // for a client to take what one write has, and for its machine to confirm it
	maxHeader  = 32 << 10         // bytes
	closeTime  = 5 * time.Second  // to end after the context of a request has
)

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.Version = cmp.Or(c.Version, "dev")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.MaxConns = cmp.Or(c.MaxConns, 1024)
	c.Rate = cmp.Or(c.Rate, 2000)
	c.StopTime = cmp.Or(c.StopTime, 10*time.Second)
	if c.Ready == nil {
		c.Ready = func(string) {}
	}
	return c
}

// Check reports all faults at once that can be seen before there is an engine and anything is opened, as Run does.
func (c Config) Check() error {
	c = c.withDefaults()
	_, err := c.check()
	return err
}

// check reports all faults but for the engine's at once, and the address to listen on. It is resolved once, so
// that what was judged is what is opened.
func (c *Config) check() (*net.TCPAddr, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	address, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		fault("listen %q: must be host and port, such as %s: %w", c.Listen, DefaultListen, err)
	} else if !address.IP.IsLoopback() && c.TokenFile == "" {
		fault("listen %q: is reached from other machines and needs a token file; without one only loopback, such as %s", c.Listen, DefaultListen)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		fault("TLS: certificate %q and key %q: both must be given, or none", c.TLSCert, c.TLSKey)
	}
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			fault("host %q: must be a name or address, with a port where that is not the usual one", host)
		}
	}
	for _, bound := range []struct {
		name string
		n    int
		most int
	}{{"MaxConns", c.MaxConns, 1 << 20}, {"Rate", c.Rate, 1 << 20}} {
		if bound.n < 1 || bound.n > bound.most {
			fault("%s %d: must be 1..%d", bound.name, bound.n, bound.most)
		}
	}
	if c.StopTime < 0 {
		fault("StopTime %s: must be 0 or more", c.StopTime)
	}
	return address, errors.Join(faults...)
}

// who lets callers in.
func (c *Config) who() (auth.Auth, *auth.Sessions, error) {
	if c.TokenFile == "" {
		return hiding(auth.Open("local"), c.HidePayloads, auth.Admin), nil, nil
	}
	tokens, err := auth.OpenTokens(c.TokenFile, c.Logger)
	if err != nil {
		return nil, nil, err
	}
	sessions := auth.NewSessions(tokens)
	return hiding(sessions, c.HidePayloads, auth.Viewer), sessions, nil
}
