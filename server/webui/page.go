package webui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/pawlwork/pawl/server/auth"
)

// page is one page. See doc.go for how to add one.
type page struct {
	path   string // under the prefix, as http.ServeMux has it: "/jobs/{id}"
	name   string // of its template
	title  string // load may set another: view.Title
	nav    nav    // its place in the sidebar; zero: none
	under  string // name of the page that the sidebar marks instead, where it has no place of its own
	ranges bool   // the top bar offers ranges; view.span reads the chosen one
	early  bool   // it comes before the first look of a server is read: its parts say so, and its stream brings them
	calm   bool   // all of it is from the look, or old anyway: its stream does not look again before that is read anew, or calmTime passed
	// load reads what the page and its regions share; nil: nothing. It is called once for the page, and once for each tick of its
	// stream.
	load func(*view) (any, error)
	// regions are parts of the page that fail alone and, where they have an interval, are sent again when they change.
	regions []region
}

// region is a part of a page: {{.Region "name"}} puts it there, with an element around it that has the name as id. Its template
// has the name too, and so have its events: it must not be that of an event of the browser's own, such as error.
type region struct {
	name  string
	every time.Duration // how often it is looked at while somebody watches; 0: never
	tag   string        // of the element around it ["div"]
	class string        // of that element
	attrs string        // others of that element, such as `tabindex="0"`
	fails string        // what cannot be read where load fails: "Metrics"
	load  func(*view) (any, error)
	// items is instead of load for lists whose entries keep their place: only those that changed are sent. The template is that of one.
	items func(*view) ([]item, error)
	grows bool // new entries are added at its end
	quiet bool // it is empty while what it shows is still being read: others of the page say so
}

// item is one entry of such a list. Its element must have the id, and {{.OOB}} among its attributes.
type item struct {
	id   string
	data any
}

// view is one look at a page: by a request, or by a tick of a stream, in which nobody in particular looks.
type view struct {
	app    *app
	page   *page
	ctx    context.Context
	path   string // with the query, under the prefix: of the page, also in its stream
	params map[string]string
	query  url.Values
	id     auth.Identity
	data   any // that page.load has read
	live   bool
	origin string
	// patient is until when the page waits for metrics that are being read.
	patient time.Time

	Now   time.Time // by the store's clock
	Title string
	Crumb []anchor // before the title
	Prefs prefs
	CSRF  string // empty in streams: there htmx has it
	Flash *outcome
}

// anchor is a link with its words.
type anchor struct{ Text, Link string }

// part is what templates get: Data is what load of the page or region has read.
type part struct {
	*view
	Data any
	OOB  template.HTMLAttr
}

// view begins a look by a request.
func (a *app) view(w http.ResponseWriter, r *http.Request, id auth.Identity, p *page) *view {
	v := &view{
		app: a, page: p, ctx: r.Context(), path: r.URL.RequestURI(), params: map[string]string{}, query: r.URL.Query(), id: id,
		Title: p.title, Prefs: readPrefs(r), CSRF: csrfToken(a.csrfSecret(w, r)), Now: time.Now(),
		patient: time.Now().Add(a.opts.Patience),
	}
	for _, name := range paramsOf(p.path) {
		v.params[name] = r.PathValue(name)
	}
	if v.origin = "http://" + r.Host; r.TLS != nil {
		v.origin = "https://" + r.Host
	}
	v.Flash = takeFlash(a, w, r)
	return v
}

// paramsOf are the names in the pattern of a path.
func paramsOf(path string) (names []string) {
	for _, piece := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(piece, "{"); ok {
			names = append(names, strings.TrimRight(name, ".}"))
		}
	}
	return names
}

// page serves one.
func (a *app) page(p *page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := a.identify(w, r, auth.Viewer)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), readTime)
		defer cancel()
		v := a.view(w, r.WithContext(ctx), id, p)
		if err := v.begin(); err != nil {
			a.refuse(w, r, id, a.faultOf(ctx, err))
			return
		}
		if to := v.redirect(); to != "" {
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
		if a.opts.Tour != nil {
			a.opts.Tour.Visited(r.URL.Path)
		}
		a.send(w, r, http.StatusOK, v, v.data)
	})
}

// elsewhere is what load answers to send the browser to another page.
type elsewhere string

func (v *view) redirect() string {
	to, _ := v.data.(elsewhere)
	return string(to)
}

// begin reads the store's clock, and what the page needs.
func (v *view) begin() (err error) {
	if l, err := v.look(); err == nil {
		v.Now = l.Now.Add(time.Since(l.read))
	} else if now, err := v.app.e.Store().Now(v.ctx); err == nil {
		v.Now = now
	}
	if v.page.load != nil {
		v.data, err = v.page.load(v)
	}
	return err
}

// send renders the page within its frame.
func (a *app) send(w http.ResponseWriter, r *http.Request, status int, v *view, data any) {
	body, err := v.render(v.page.name, data, "")
	var whole template.HTML
	if err == nil {
		whole, err = v.render("frame", body, "")
	}
	if err != nil && r.Context().Err() != nil {
		return // who asked has gone
	}
	if err != nil {
		a.opts.Logger.ErrorContext(r.Context(), "a page could not be rendered", "page", v.page.name, "error", err)
		http.Error(w, "The page could not be rendered; the server's log says why.", http.StatusInternalServerError)
		return
	}
	compressed(w, r, status, []byte(whole))
}

// render executes a template.
func (v *view) render(name string, data any, oob template.HTMLAttr) (template.HTML, error) {
	var b bytes.Buffer
	err := v.app.templates.ExecuteTemplate(&b, name, part{v, data, oob})
	return template.HTML(b.String()), err
}

// Region renders a region with its element. What it cannot read it says, and the rest of the page stays.
func (v *view) Region(name string) (template.HTML, error) {
	for i := range v.page.regions {
		if r := &v.page.regions[i]; r.name == name {
			inner, err := v.region(r)
			return r.wrap(inner), err
		}
	}
	for i := range frameRegions {
		if r := &frameRegions[i]; r.name == name {
			inner, err := v.region(r)
			return r.wrap(inner), err
		}
	}
	return "", fmt.Errorf("page %s has no region %s", v.page.name, name)
}

func (r *region) wrap(inner template.HTML) template.HTML {
	tag := r.tag
	if tag == "" {
		tag = "div"
	}
	class, swap := "", ""
	if r.attrs != "" {
		swap = " " + r.attrs
	}
	if r.class != "" {
		class = ` class="` + r.class + `"`
	}
	if r.every > 0 {
		how := "innerHTML"
		if r.items != nil {
			how = "none"
		}
		swap += ` sse-swap="` + r.name + `" hx-swap="` + how + `"`
	}
	return template.HTML("<"+tag+` id="`+r.name+`"`+class+swap+">") + inner + template.HTML("</"+tag+">")
}

// region renders what is within a region.
func (v *view) region(r *region) (template.HTML, error) {
	if r.items != nil {
		items, err := r.items(v)
		if err != nil {
			return v.failed(r, err)
		}
		var all template.HTML
		for _, i := range items {
			one, err := v.render(r.name, i.data, "")
			if err != nil {
				return "", err
			}
			all += one
		}
		return all, nil
	}
	data := v.data
	if r.load != nil {
		var err error
		if data, err = r.load(v); err != nil {
			return v.failed(r, err)
		}
	}
	return v.render(r.name, data, "")
}

// failed says what could not be read.
func (v *view) failed(r *region, err error) (template.HTML, error) {
	if v.ctx.Err() != nil {
		return "", v.ctx.Err()
	}
	what := r.fails
	if what == "" {
		what = "This part"
	}
	if v.heldBack(err) {
		return "", err
	} else if errors.Is(err, errLater) {
		if r.quiet {
			return "", nil
		}
		return v.render("later", what, "")
	}
	return v.render("failed", map[string]string{"What": what, "Why": v.app.faultOf(v.ctx, err).Text}, "")
}

// Can reports whether who looks may do what needs a role.
func (v *view) Can(role auth.Role) bool { return v.id.Role >= role }

// Hidden reports whether payloads are hidden from who looks.
func (v *view) Hidden() bool { return v.id.Hidden }

// Who is who looks; nobody in streams.
func (v *view) Who() string { return v.id.Name }

// Role is what who looks may do.
func (v *view) Role() string { return v.id.Role.String() }

// Origin is how the server is called, for commands to copy.
func (v *view) Origin() string { return v.origin }

// Here is the page's own address, for forms that come back to it.
func (v *view) Here() string { return v.app.opts.Prefix + v.path }

// LiveURL is the address of the page's stream, empty where it has none. load of the page may add to its query by Watch.
func (v *view) LiveURL() string {
	if v.page.path == "" {
		return ""
	}
	return v.app.opts.Prefix + "/live" + v.path
}

// With is the page's own address with other values in its query: names and values, empty ones taken away. Where the page begins
// anew, its place in a list goes too.
func (v *view) With(pairs ...any) string {
	query := url.Values{}
	for name, values := range v.query {
		if name != "after" && name != "before" && name != watchParam {
			query[name] = values
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Del(text(pairs[i]))
		if value := text(pairs[i+1]); value != "" {
			query.Set(text(pairs[i]), value)
		}
	}
	path, _, _ := strings.Cut(v.path, "?")
	if len(query) == 0 {
		return v.app.opts.Prefix + path
	}
	return v.app.opts.Prefix + path + "?" + query.Encode()
}

// watchParam is what a stream watches beside what its page's address says, such as the rows that are there.
const watchParam = "watch"

// Watch adds to the address of the stream what it watches.
func (v *view) Watch(what string) {
	mark := "?"
	if strings.Contains(v.path, "?") {
		mark = "&"
	}
	v.path += mark + watchParam + "=" + url.QueryEscape(what)
}

// timeText is the words of times: they go on by themselves in the browser, and are no change.
var timeText = regexp.MustCompile(`(<time [^>]*>)[^<]*</time>`)
