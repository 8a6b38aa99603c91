package webui

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// Options are for Handler. The last one given counts.
type Options struct {
	// Prefix is the path that it is mounted under, such as "/ops/pawl"; empty: the root. Links begin with it. Requests may come with it
	// or, from http.StripPrefix, without.
	Prefix  string
	Logger  *slog.Logger // [slog.Default()]
	Version string       // of the build ["dev"]
	Name    string       // beside the brand, such as "demo" or "staging"
	// SignIn begins a session with a token and sets its cookie, SignOut ends it. Without them there is no page to sign in: who is not
	// let in is told so.
	SignIn  func(w http.ResponseWriter, r *http.Request, token string) error
	SignOut func(w http.ResponseWriter, r *http.Request)
	Tour    Tour // of the demo [none]
	// Settings are those of the server, as its settings page shows them: without secrets. Tokens lists who may sign in, for admins.
	Settings []Setting
	Tokens   func() []auth.Token
	// Patience is how long a page waits for metrics that are being added up, of many queues or a long time, and how long it looks for text
	// in jobs. It says what it did without: metrics are brought by its stream, a search goes on with the next page. The overview waits no
	// longer for the first look of a server at its queues, either [200 ms].
	Patience time.Duration
	// Eager takes the first look, and gets the templates ready, when the handler is made: the first page of a server has to wait for
	// neither [when somebody asks].
	Eager bool
	// NotFound answers programs, which do not ask for HTML, where there is no page [a page].
	NotFound http.HandlerFunc
}

// app is Mission Control of one engine.
type app struct {
	e         *pawl.Engine
	who       auth.Auth
	opts      Options
	assets    *assets
	templates *template.Template
	cache     *cache
	hub       *hub
	history   history
	died      atomic.Int64 // errors that many died of, when the overview was last made
	young     atomic.Bool  // nothing is known from before the last quarter of an hour: the default range is shorter
	mux       *http.ServeMux
	pages     []page
	actions   []action
	trends    trends // of queues, while somebody looks
	told      told
}

// policy is what pages may load: nothing that is not ours, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Handler serves Mission Control of an engine. But for an eager one, it looks only when somebody does, and it holds nothing that needs
// closing.
func Handler(e *pawl.Engine, who auth.Auth, opts ...Options) http.Handler {
	a := &app{e: e, who: who, assets: loadAssets(), cache: newCache(), mux: http.NewServeMux(), pages: allPages(), actions: allActions()}
	if len(opts) > 0 {
		a.opts = opts[len(opts)-1]
	}
	a.opts.Prefix = strings.TrimSuffix(a.opts.Prefix, "/")
	a.opts.Logger = cmp.Or(a.opts.Logger, slog.Default())
	a.opts.Version = cmp.Or(a.opts.Version, "dev")
	a.opts.Patience = cmp.Or(a.opts.Patience, 200*time.Millisecond)
	a.hub = newHub(a)
	a.templates = a.parse()
	for i := range a.pages {
		p := &a.pages[i]
		a.mux.Handle("GET "+exact(p.path), a.page(p))
		a.mux.Handle("GET "+exact("/live"+p.path), a.live(p))
	}
	for i := range a.actions {
		one := &a.actions[i]
		path := "/" + one.noun + "/" + one.verb
		a.mux.Handle("POST /do"+path, a.do(one))
		a.mux.Handle("GET /ask"+path, a.ask(one))
	}
	for _, d := range allDownloads() {
		a.mux.Handle("GET "+d.path, a.download(d))
	}
	a.mux.HandleFunc("GET /static/{hash}/{file...}", a.static)
	a.mux.HandleFunc("GET /prefs", a.setPrefs)
	a.signIn()
	a.mux.HandleFunc("/", a.nowhere)
	if a.opts.Eager {
		a.hurry()
	}
	return a
}

// exact matches a path and nothing below it.
func exact(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

// ServeHTTP answers under the prefix.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if a.opts.Prefix != "" {
		if r.URL.Path == a.opts.Prefix {
			http.Redirect(w, r, a.opts.Prefix+"/", http.StatusMovedPermanently)
			return
		}
		if strings.HasPrefix(r.URL.Path, a.opts.Prefix+"/") {
			http.StripPrefix(a.opts.Prefix, a.mux).ServeHTTP(w, r)
			return
		}
	}
	a.mux.ServeHTTP(w, r)
}

// link is an address under the prefix: each {} of the path takes one of the arguments, the rest are names and values of the query, of
// which empty ones are left out.
func (a *app) link(path string, args ...any) string {
	var b strings.Builder
	b.WriteString(a.opts.Prefix)
	for {
		before, after, found := strings.Cut(path, "{}")
		b.WriteString(before)
		if !found || len(args) == 0 {
			break
		}
		b.WriteString(url.PathEscape(text(args[0])))
		path, args = after, args[1:]
	}
	query := url.Values{}
	for i := 0; i+1 < len(args); i += 2 {
		if value := text(args[i+1]); value != "" {
			query.Set(text(args[i]), value)
		}
	}
	if len(query) > 0 {
		b.WriteString("?" + query.Encode())
	}
	return b.String()
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}

// back is where a form came from: a path of ours, or else the overview.
func (a *app) back(path string) string {
	if !strings.HasPrefix(path, a.link("/")) || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n") || len(path) > 4000 {
		return a.link("/")
	}
	return path
}

// identify finds out who asks; false after it was answered.
func (a *app) identify(w http.ResponseWriter, r *http.Request, role auth.Role) (auth.Identity, bool) {
	id, err := a.who.Identify(r)
	switch {
	case err == nil && id.Role >= role:
		return id, true
	case err == nil:
		a.refuse(w, r, id, &fault{http.StatusForbidden, "This is not for you.",
			"It needs the role " + role.String() + ", and " + id.Name + " is " + id.Role.String() + "."})
	case !errors.Is(err, auth.ErrNoToken) && !errors.Is(err, auth.ErrBadToken):
		a.opts.Logger.ErrorContext(r.Context(), "a request could not be identified", "error", err)
		a.refuse(w, r, id, &fault{http.StatusInternalServerError, "The server failed.", "Its log says why."})
	case a.opts.SignIn != nil && r.Method == http.MethodGet && r.Header.Get("HX-Request") == "" && !strings.HasPrefix(r.URL.Path, "/live/"):
		http.Redirect(w, r, a.link("/login", "back", a.opts.Prefix+r.URL.RequestURI()), http.StatusSeeOther)
	default:
		a.refuse(w, r, id, &fault{http.StatusUnauthorized, "Nobody is signed in.", "Sign in, and try again: " + err.Error() + "."})
	}
	return auth.Identity{}, false
}

// fault is what went wrong, for people.
type fault struct {
	status      int
	Title, Text string
}

func (f *fault) Error() string { return f.Title + " " + f.Text }

// faults are what errors of the engine are, the first that matches.
var faults = []struct {
	err    error
	status int
	title  string
}{
	{pawl.ErrNotFound, http.StatusNotFound, "There is no such thing."},
	{pawl.ErrInvalid, http.StatusUnprocessableEntity, "This cannot be done."},
	{pawl.ErrBusy, http.StatusServiceUnavailable, "The store is busy."},
	{pawl.ErrUnavailable, http.StatusServiceUnavailable, "The store does not answer."},
	{pawl.ErrClosed, http.StatusServiceUnavailable, "The server is stopping."},
	{pawl.ErrReadOnly, http.StatusServiceUnavailable, "The store can only be read."},
	{pawl.ErrFull, http.StatusInsufficientStorage, "The store is full."},
	{errors.ErrUnsupported, http.StatusNotImplemented, "This store cannot do that."},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "The store took too long."},
	{context.Canceled, http.StatusServiceUnavailable, "The request was ended."},
}

// faultOf says an error for people. What is not in the table is a fault of ours: its text is for the log.
func (a *app) faultOf(ctx context.Context, err error) *fault {
	if f := (*fault)(nil); errors.As(err, &f) {
		return f
	}
	for _, k := range faults {
		if errors.Is(err, k.err) {
			return &fault{k.status, k.title, sentence(strings.TrimPrefix(err.Error(), "pawl: "))}
		}
	}
	a.opts.Logger.ErrorContext(ctx, "a page failed", "error", err)
	return &fault{http.StatusInternalServerError, "The server failed.", "Its log says why."}
}

// sentence is text with a capital and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// refuse answers with what went wrong: a toast for htmx, a line for streams, else a page.
func (a *app) refuse(w http.ResponseWriter, r *http.Request, id auth.Identity, f *fault) {
	switch {
	case r.Header.Get("HX-Request") != "":
		a.toast(w, r, f.status, &outcome{Text: f.Title, More: f.Text, Bad: true})
	case strings.HasPrefix(r.URL.Path, "/live/"):
		http.Error(w, f.Error(), f.status)
	default:
		v := a.view(w, r, id, &page{name: "fault", title: f.Title})
		a.send(w, r, f.status, v, f)
	}
}

func (a *app) nowhere(w http.ResponseWriter, r *http.Request) {
	if a.opts.NotFound != nil && (!strings.Contains(r.Header.Get("Accept"), "text/html") || r.Method != http.MethodGet) {
		a.opts.NotFound(w, r)
		return
	}
	if id, ok := a.identify(w, r, auth.Nobody); ok {
		a.refuse(w, r, id, &fault{http.StatusNotFound, "There is no such page.", fmt.Sprintf("Nothing is at %.200s.", r.URL.Path)})
	}
}

// compressed sends a page, small where the browser can read it.
func compressed(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "Accept-Encoding")
	if len(text) > 1400 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed+2)
		_, _ = z.Write(text)
		_ = z.Close()
		h.Set("Content-Encoding", "gzip")
		text = b.Bytes()
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // to who has hung up
	}
}

// readTime bounds what one page may read.
const readTime = 10 * time.Second
