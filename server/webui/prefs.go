package webui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// prefs are what a browser chose, kept in a cookie of its own. Nothing of them is secret, and what cannot be read is the default.
type prefs struct {
	Theme   string // "", light or dark; empty: as the system has it
	Zone    string // local or utc
	Density string // "" or dense
	Size    int    // rows of a page
	Keys    bool   // single keys do something
	Hide    string // what was closed for good, such as "try"
}

const prefsCookie = "pawl_prefs"

// pageSizes are what can be chosen; the first is the default.
var pageSizes = []int{50, 20, 100, 200}

func readPrefs(r *http.Request) prefs {
	values := url.Values{}
	if cookie, err := r.Cookie(prefsCookie); err == nil && len(cookie.Value) < 500 {
		values, _ = url.ParseQuery(cookie.Value)
	}
	return prefsOf(values)
}

func prefsOf(values url.Values) prefs {
	one := func(name string, of ...string) string {
		if v := values.Get(name); slices.Contains(of, v) {
			return v
		}
		return of[0]
	}
	p := prefs{
		Theme: one("theme", "", "light", "dark"), Zone: one("zone", "local", "utc"), Density: one("density", "", "dense"),
		Keys: one("keys", "on", "off") == "on", Size: pageSizes[0], Hide: one("hide", "", "try"),
	}
	if n, err := strconv.Atoi(values.Get("size")); err == nil && slices.Contains(pageSizes, n) {
		p.Size = n
	}
	return p
}

func (p prefs) values() url.Values {
	v := url.Values{"zone": {p.Zone}, "keys": {"off"}, "size": {strconv.Itoa(p.Size)}}
	if p.Keys {
		v.Set("keys", "on")
	}
	for name, value := range map[string]string{"theme": p.Theme, "density": p.Density, "hide": p.Hide} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// setPrefs changes those that the query names, and goes back. It changes nothing but the browser's own cookie, so it may be a link.
func (a *app) setPrefs(w http.ResponseWriter, r *http.Request) {
	values := readPrefs(r).values()
	for name, given := range r.URL.Query() {
		values[name] = given
	}
	http.SetCookie(w, &http.Cookie{
		Name: prefsCookie, Value: prefsOf(values).values().Encode(), Path: a.link("/"), MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, a.back(r.URL.Query().Get("back")), http.StatusSeeOther)
}
