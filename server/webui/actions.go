package webui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// action is something that can be done: POST /do/{noun}/{verb}. Who may, what its button says and what it asks before are here, and
// nowhere else. What was done is audited under the name of who did it, with the note of the form.
type action struct {
	noun, verb string
	role       auth.Role
	label      string // of its button; it ends in … where it asks first
	class      string // of its button: "", pri, bad or quiet
	key        string // that does it to the row or job at hand
	// ask says what it would do, and asks for what it needs; nil: it is done at once. It changes nothing.
	ask func(*act) (*dialog, error)
	do  func(*act) (*outcome, error)
}

// act is one call of an action. Its context carries who acts and the note.
type act struct {
	*view
	form url.Values
}

// get is a field of the form.
func (a *act) get(name string) string { return a.form.Get(name) }

// jobID reads the field id.
func (a *act) jobID() (pawl.ID, error) { return pawl.ParseID(a.get("id")) }

// dialog asks before something is done. All of it is shown as text.
type dialog struct {
	Title  string
	Text   string
	Facts  []fact
	Fields []field
	// Choices are ways to go on, each with a dialog of its own.
	Choices []choice
	Type    string // what has to be typed; the form sends it as typed
	Note    string // "", optional or required
	Button  string // repeats the verb and the number; empty: there is nothing to do
	Bad     bool
	Error   string // what was wrong with what was sent

	Noun, Verb string
	Hidden     url.Values
	Back       string
}

// fact is a name with what it is.
type fact struct{ Name, Text string }

// field is an input of a dialog.
type field struct {
	Name, Label, Value, Kind, Hint string // Kind: text or number
	Options                        []string
}

// outcome is what became of it, for a toast.
type outcome struct {
	Text string `json:"t"`
	More string `json:"m,omitempty"`
	Bad  bool   `json:"b,omitempty"`
	Undo *call  `json:"u,omitempty"` // does the opposite
	Link anchor `json:"l,omitzero"`
	// Goto is where to go, where the page is gone.
	Goto string `json:"-"`
}

// call is an action with its fields, as a button has it.
type call struct {
	Noun, Verb string
	Fields     map[string]string
}

const (
	maxForm = 256 << 10
	actTime = 30 * time.Second
)

// begin reads a request for an action; nil after it was refused.
func (a *app) begin(w http.ResponseWriter, r *http.Request, one *action) *act {
	id, ok := a.identify(w, r, one.role)
	if !ok {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		a.refuse(w, r, id, &fault{http.StatusBadRequest, "The form cannot be read.", sentence(err.Error())})
		return nil
	}
	if r.Method == http.MethodPost {
		if err := ours(r); err != nil {
			a.refuse(w, r, id, &fault{http.StatusForbidden, "Nothing was done.", sentence(err.Error())})
			return nil
		}
	}
	v := a.view(w, r, id, &page{name: "ask", title: "Confirm"})
	v.ctx = pawl.As(auth.With(v.ctx, id), id.Name, strings.TrimSpace(r.Form.Get("note")))
	if l, err := v.look(); err == nil {
		v.Now = l.Now.Add(time.Since(l.read))
	}
	form := r.Form
	if r.Method == http.MethodPost {
		form = r.PostForm
	}
	return &act{v, form}
}

// ask serves the dialog of an action: a fragment for htmx, else a page.
func (a *app) ask(one *action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		act := a.begin(w, r, one)
		if act == nil {
			return
		}
		ctx, cancel := context.WithTimeout(act.ctx, actTime)
		defer cancel()
		act.ctx = ctx
		d := &dialog{Title: one.label + "?", Button: one.label}
		if one.ask != nil {
			var err error
			if d, err = one.ask(act); err != nil {
				a.refuse(w, r, act.id, a.faultOf(ctx, err))
				return
			}
		}
		a.asks(w, r, act, one, d, http.StatusOK)
	})
}

// asks sends a dialog.
func (a *app) asks(w http.ResponseWriter, r *http.Request, act *act, one *action, d *dialog, status int) {
	d.Noun, d.Verb, d.Hidden, d.Back = one.noun, one.verb, url.Values{}, a.back(act.get("back"))
	own := map[string]bool{"note": true, "typed": true, "csrf": true, "back": true}
	for _, f := range d.Fields {
		own[f.Name] = true
	}
	for name, values := range act.form {
		if !own[name] {
			d.Hidden[name] = values
		}
	}
	if r.Header.Get("HX-Request") == "" {
		act.Title = d.Title
		a.send(w, r, status, act.view, d)
		return
	}
	text, err := act.render("dialog", d, "")
	if err != nil {
		a.refuse(w, r, act.id, a.faultOf(act.ctx, err))
		return
	}
	compressed(w, r, status, []byte(text))
}

// do serves an action: a toast for htmx, else back to where it came from.
func (a *app) do(one *action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		act := a.begin(w, r, one)
		if act == nil {
			return
		}
		ctx, cancel := context.WithTimeout(act.ctx, actTime)
		defer cancel()
		act.ctx = ctx
		out, err := one.do(act)
		a.hub.changed()
		if err != nil {
			f := a.faultOf(ctx, err)
			if one.ask != nil && f.status == http.StatusUnprocessableEntity { // what was typed stays, with what is wrong beside it
				if d, again := one.ask(act); again == nil {
					d.Error = strings.TrimSpace(f.Text)
					a.asks(w, r, act, one, d, f.status)
					return
				}
			}
			a.refuse(w, r, act.id, f)
			return
		}
		a.answer(w, r, act, out)
	})
}

func (a *app) answer(w http.ResponseWriter, r *http.Request, act *act, out *outcome) {
	if r.Header.Get("HX-Request") != "" && out.Goto == "" {
		a.toast(w, r, http.StatusOK, out)
		return
	}
	to := a.back(act.get("back"))
	if out.Goto != "" {
		to = out.Goto
	}
	putFlash(a, w, out)
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", to)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// toast sends one to htmx, wherever its form wanted the answer.
func (a *app) toast(w http.ResponseWriter, r *http.Request, status int, out *outcome) {
	v := &view{app: a, page: &page{}, Now: time.Now()}
	text, err := v.render("toast", out, "")
	if err != nil {
		http.Error(w, "The answer could not be rendered.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	if r.Header.Get("HX-Target") != "toasts" { // htmx looks from the form on, which a stream may have replaced meanwhile
		h.Set("HX-Retarget", "#toasts")
		h.Set("HX-Reswap", "beforeend")
	}
	h.Set("HX-Trigger", "pawl:done")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // to who has hung up
}

// A flash is the outcome of an action that the next page shows: without JavaScript, or where the page had to change.
const flashCookie = "pawl_flash"

func putFlash(a *app, w http.ResponseWriter, out *outcome) {
	text, err := json.Marshal(out)
	if err != nil || len(text) > 2500 {
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(text), Path: a.link("/"), MaxAge: 60, HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
}

func takeFlash(a *app, w http.ResponseWriter, r *http.Request) *outcome {
	cookie, err := r.Cookie(flashCookie)
	if err != nil || cookie.Value == "" {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: a.link("/"), MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	out := &outcome{}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(text, out) != nil {
		return nil
	}
	return out
}

// action is one by its names.
func (a *app) action(noun, verb string) *action {
	for i := range a.actions {
		if a.actions[i].noun == noun && a.actions[i].verb == verb {
			return &a.actions[i]
		}
	}
	return nil
}

// Button is the button of an action with its fields, in a form of its own; nothing for who may not use it. label and class may be
// given as fields "label" and "class".
func (v *view) Button(noun, verb string, pairs ...any) (template.HTML, error) {
	one := v.app.action(noun, verb)
	if one == nil {
		return "", fmt.Errorf("there is no action %s %s", noun, verb)
	}
	if !v.Can(one.role) {
		return "", nil
	}
	b := button{Label: one.label, Class: one.class, Key: one.key, CSRF: v.CSRF, Back: v.Here()}
	var query []any
	for i := 0; i+1 < len(pairs); i += 2 {
		switch name, value := text(pairs[i]), text(pairs[i+1]); name {
		case "label":
			b.Label = value
		case "class":
			b.Class = value
		default:
			b.Fields = append(b.Fields, fact{name, value})
			query = append(query, name, value)
		}
	}
	b.Do = v.app.link("/do/{}/{}", noun, verb)
	if one.ask != nil {
		b.Ask = v.app.link("/ask/{}/{}", append([]any{noun, verb, "back", b.Back}, query...)...)
	}
	return v.render("button", b, "")
}

// button is for its template.
type button struct {
	Label, Class, Key, CSRF, Back, Do, Ask string
	Fields                                 []fact
}
