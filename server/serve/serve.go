package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/server/metrics"
	"github.com/pawlwork/pawl/server/webui"
)

// metricsPath is where Prometheus scrapes.
const metricsPath = "/metrics"

// server is one that listens.
type server struct {
	Config
	who      auth.Auth
	sessions *auth.Sessions // nil without a token file
	cert     *certificate   // nil without TLS
	conns    *conns
	loopback bool
	hosts    hosts
	rates    *rates
	refusals *refusals
	seen     *seen
	registry *prometheus.Registry
	places   chan struct{} // one for each request under way

	stopping context.Context // ended when the stop begins
	stop     context.CancelFunc
}

// Run serves until ctx ends, then stops: it takes no more connections, what waits for
// something to happen is ended, other requests get StopTime, and the engine stops as
// its own Run does. Nil means that everything was clean. All faults of the
// configuration are reported at once, before anything is opened.
func Run(ctx context.Context, c Config) error {
	c = c.withDefaults()
	address, err := c.check()
	if c.Engine == nil {
		err = errors.Join(errors.New("no engine: Config.Engine must be set"), err)
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s := &server{Config: c, loopback: address.IP.IsLoopback(), places: make(chan struct{}, c.MaxConns), registry: prometheus.NewRegistry()}
	if s.who, s.sessions, err = c.who(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if c.TLSCert != "" {
		if s.cert, err = newCertificate(c.TLSCert, c.TLSKey, c.Logger); err != nil {
			return fmt.Errorf("serve: %w", err)
		}
	}
	listening := net.ListenConfig{KeepAliveConfig: alive}
	listener, err := listening.Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.conns = newConns(listener, c.MaxConns)
	s.hosts = newHosts(listener.Addr(), c.Hosts)
	s.rates = newRates(c.Rate, time.Now)
	s.refusals = newRefusals(c.Logger, time.Now)
	s.seen = newSeen(s.registry, s.conns)
	s.registry.MustRegister(metrics.New(c.Engine, metrics.Options{Version: c.Version}),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer c.Telemetry.Gather(s.registry)()
	s.stopping, s.stop = context.WithCancel(ctx)
	defer s.stop()
	return s.run(ctx)
}

// routes are all that it answers.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/", httpapi.Handler(s.Engine, known, httpapi.Options{Logger: s.Logger, Version: s.Version}))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET "+metricsPath, needs(auth.Viewer, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: 20 * time.Second, ErrorHandling: promhttp.ContinueOnError,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn),
	})))
	s.session(mux)
	for _, r := range s.Routes {
		mux.Handle(r.Pattern, needs(r.Role, identified(r.Handler)))
	}
	if s.Pprof {
		for path, page := range map[string]http.HandlerFunc{
			"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
		} {
			mux.Handle("GET /debug/pprof/"+path, needs(auth.Admin, page))
		}
	}
	mux.Handle("/", s.pages())
	return s.gate(mux)
}

// pages are Mission Control's. Programs that ask for what is not there get a problem, as from the API.
func (s *server) pages() http.Handler {
	opts := webui.Options{Logger: s.Logger, Version: s.Version, Name: s.Name, Tour: s.Tour, Settings: s.Settings, Eager: true}
	if s.sessions != nil {
		opts.SignIn = func(w http.ResponseWriter, r *http.Request, token string) error {
			_, _, err := s.signIn(w, r, token)
			return err
		}
		opts.SignOut, opts.Tokens = s.signOut, s.sessions.Tokens
	}
	opts.NotFound = func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "not-found", fmt.Sprintf("there is no %.20s %.200s", r.Method, r.URL.Path))
	}
	return webui.Handler(s.Engine, known, opts)
}

// address is where it listens, as it was asked for: "0.0.0.0" is opened, and would be told, as "[::]". The port is the one it got.
func (s *server) address() string {
	opened := s.conns.Addr().String()
	host, _, err := net.SplitHostPort(s.Listen)
	_, port, fault := net.SplitHostPort(opened)
	if err != nil || fault != nil || host == "" {
		return opened
	}
	return net.JoinHostPort(host, port)
}

// run serves and works until the context ends or one of both fails.
func (s *server) run(ctx context.Context) error {
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	server := &http.Server{
		Handler: s.routes(), ConnState: s.conns.state, BaseContext: func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug), // handshakes of scanners and the like
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: 100, SendPingTimeout: idleTime, PingTimeout: headerTime, WriteByteTimeout: writeTime},
	}
	server.RegisterOnShutdown(s.conns.closeQuiet)
	served, worked := make(chan error, 1), make(chan error, 1)
	url := "http://" + s.address()
	if s.cert == nil {
		go func() { served <- server.Serve(s.conns) }()
	} else {
		url = "https" + url[len("http"):]
		server.TLSConfig = &tls.Config{GetCertificate: s.cert.get, MinVersion: tls.VersionTLS12}
		go func() { served <- server.ServeTLS(s.conns, "", "") }()
	}
	go func() { worked <- s.work() }()
	s.Logger.Info("serving", "url", url, "version", s.Version, "tokens", s.sessions != nil)
	s.Ready(url)

	var fault error
	working := true
	select {
	case <-ctx.Done():
	case fault = <-served:
		served <- http.ErrServerClosed
	case fault = <-worked:
		if working = false; fault == nil && ctx.Err() == nil {
			fault = errors.New("serve: the engine has stopped")
		}
	}
	s.stop()
	s.shut(server, endRequests)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		fault = errors.Join(fault, err)
	}
	if working {
		fault = errors.Join(fault, <-worked)
	}
	s.Logger.Info("stopped", "error", fault)
	return fault
}

// work runs the engine, if that is wanted and there is anything to do, until the stop.
func (s *server) work() error {
	if s.Run {
		err := s.Engine.Run(s.stopping)
		if !errors.Is(err, pawl.ErrNoHandlers) {
			return err
		}
		s.Logger.Info("the engine has no handlers and no schedules, and is only served")
	}
	<-s.stopping.Done()
	return nil
}

// shut ends connections: those without a request at once, others when they are answered
// or their time is over, in the end all.
func (s *server) shut(server *http.Server, endRequests func()) {
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), s.StopTime+closeTime)
	defer cancel()
	go func() { ended <- server.Shutdown(ctx) }()
	patience := time.AfterFunc(s.StopTime, endRequests)
	defer patience.Stop()
	if err := <-ended; err != nil {
		s.Logger.Warn("requests did not end in time and were cut off")
		_ = server.Close()
	}
}
