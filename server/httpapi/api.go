package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// Prefix is where all routes are.
const Prefix = "/api/v1"

// Bounds of a request. The server that listens bounds headers and connections.
const (
	maxBody  = 2 << 20 // a payload is at most 1 MiB, and JSON may escape it
	bodyTime = 30 * time.Second
)

// Options are for Handler. Zero fields take the default in brackets.
type Options struct {
	Logger  *slog.Logger // [slog.Default()]
	Version string       // of the build, in the document ["dev"]
	Streams int          // of events that may be open at once [500]
}

// api is one engine, served.
type api struct {
	e       *pawl.Engine
	auth    auth.Auth
	log     *slog.Logger
	huma    huma.API
	streams int
	looks   looks
	repeats answers
	named   named
	open    *streams // of all sorts
}

// Handler serves an engine to those whom auth lets in, under [Prefix]. The engine need
// not run.
func Handler(e *pawl.Engine, who auth.Auth, opts ...Options) http.Handler {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Streams <= 0 {
		o.Streams = defaultStreams
	}
	_, handler := newAPI(e, who, o)
	return handler
}

// newAPI is one with all its routes.
func newAPI(e *pawl.Engine, who auth.Auth, o Options) (*api, http.Handler) {
	mux := http.NewServeMux()
	a := &api{e: e, auth: who, log: o.Logger, streams: o.Streams, looks: make(looks, looksAtOnce), repeats: answers{now: time.Now}}
	a.huma = humago.New(mux, a.config(o.Version))
	for _, noun := range nouns {
		noun(a)
	}
	mux.HandleFunc("GET "+Prefix+"/docs", a.docs)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.unknown(w, r, mux) })
	return a, guard(mux)
}

// unknown answers what no route is for: another method would do, or there is none at all.
func (a *api) unknown(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		writeProblem(w, newProblem(http.StatusNotFound, "not-found", "there is no "+r.Method+" "+r.URL.Path))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, newProblem(http.StatusMethodNotAllowed, "method-not-allowed", r.URL.Path+" takes "+strings.Join(allowed, ", ")))
}

// nouns are the routes of each noun.
var nouns = []func(*api){
	(*api).jobs, (*api).work,
	(*api).queues, (*api).pauses, (*api).schedules, (*api).limits, (*api).workers, (*api).settings, (*api).upkeep,
	(*api).operations, (*api).why, (*api).audit, (*api).check, (*api).series, (*api).failures, (*api).events,
	(*api).topics, (*api).topicSettings, (*api).topicEvents, (*api).topicWhy, (*api).cursors, (*api).groups, (*api).parked,
}

func (a *api) config(version string) huma.Config {
	c := huma.DefaultConfig("Pawl", version)
	c.Info.Description = "Durable background work: jobs, queues, schedules, limits and workers. " +
		"Errors are problems (RFC 9457) whose kind is stable. Lists are paged by a cursor: pass next as after."
	c.Servers = []*huma.Server{{URL: "/"}}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = Prefix+"/openapi", "", ""
	c.RejectUnknownQueryParameters = true
	a.named = named{schemas: c.Components.Schemas, bodies: map[reflect.Type]*huma.Schema{}}
	c.Formats = map[string]huma.Format{"application/json": a.named.format(), "json": a.named.format()}
	c.CreateHooks = nil // no "$schema" in answers
	c.Transformers = []huma.Transformer{asProblem}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "a token of the server's token file; none is needed on loopback"},
	}
	return c
}

// guard is what holds for every answer.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// operation is one route.
type operation struct {
	method, path string // path below Prefix
	id, summary  string
	tag          string
	role         auth.Role // that is needed
	status       int       // of success [200]
	hidden       bool      // not for those from whom payloads are hidden
	keyless      bool      // a write that takes no idempotency key
}

// route adds an operation. do gets a context that names who calls, and how they are
// called in the audit log.
func route[I, O any](a *api, op operation, do func(context.Context, *I) (*O, error)) {
	var parameters []*huma.Param
	if op.method != http.MethodGet && !op.keyless {
		parameters = append(parameters, keyParameter())
	}
	problem := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	huma.Register(a.huma, huma.Operation{
		OperationID: op.id, Method: op.method, Path: Prefix + op.path, Summary: op.summary, Tags: []string{op.tag},
		DefaultStatus: op.status, MaxBodyBytes: maxBody, BodyReadTimeout: bodyTime,
		Description: "Needs the role " + op.role.String() + ".",
		Security:    []map[string][]string{{"token": {}}},
		Middlewares: huma.Middlewares{a.lets(op)}, Parameters: parameters,
		Responses: map[string]*huma.Response{"default": {
			Description: "a problem",
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}},
	}, func(ctx context.Context, in *I) (*O, error) {
		end, err := a.looks.begin(ctx, op.id)
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		defer end()
		out, err := once(ctx, &a.repeats, &op, in, do)
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return out, nil
	})
	a.named.add(a.huma.OpenAPI().Paths[Prefix+op.path], op.method, reflect.TypeFor[I]())
}

// lets passes those on who may.
func (a *api) lets(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		id, err := a.auth.Identify(r)
		switch {
		case errors.Is(err, auth.ErrNoToken), errors.Is(err, auth.ErrBadToken):
			w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
			writeProblem(w, newProblem(http.StatusUnauthorized, "unauthorized", err.Error()))
			return
		case err != nil:
			a.log.ErrorContext(r.Context(), "a request could not be identified", "error", err)
			writeProblem(w, newProblem(http.StatusInternalServerError, "internal", "the server failed; its log says why"))
			return
		case id.Role < op.role:
			writeProblem(w, newProblem(http.StatusForbidden, "forbidden", op.id+" needs the role "+op.role.String()+", and "+id.Name+" is "+id.Role.String()))
			return
		case op.hidden && id.Hidden:
			writeProblem(w, newProblem(http.StatusForbidden, "forbidden", "payloads are hidden from "+id.Name))
			return
		}
		inner := pawl.As(auth.With(r.Context(), id), id.Name, r.Header.Get("Pawl-Note"))
		inner, wrong := withKey(inner, &op, r, w)
		if wrong != nil {
			writeProblem(w, wrong)
			return
		}
		next(huma.WithContext(ctx, inner))
	}
}
