package webui

import (
	"errors"
	"net/http"

	"github.com/pawlwork/pawl/server/auth"
)

// signIn adds the pages with which a browser begins and ends a session, where there are sessions.
func (a *app) signIn() {
	if a.opts.SignIn == nil {
		return
	}
	a.mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { a.login(w, r, http.StatusOK, "") })
	a.mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		if err := r.ParseForm(); err != nil {
			a.login(w, r, http.StatusBadRequest, "The form cannot be read.")
			return
		}
		if err := ours(r); err != nil {
			a.login(w, r, http.StatusForbidden, sentence(err.Error()))
			return
		}
		switch err := a.opts.SignIn(w, r, r.PostForm.Get("token")); {
		case err == nil:
			http.Redirect(w, r, a.back(r.PostForm.Get("back")), http.StatusSeeOther)
		case errors.Is(err, auth.ErrBadToken), errors.Is(err, auth.ErrNoToken):
			a.login(w, r, http.StatusUnauthorized, sentence(err.Error()))
		default:
			a.opts.Logger.ErrorContext(r.Context(), "a session could not begin", "error", err)
			a.login(w, r, http.StatusInternalServerError, "The server failed; its log says why.")
		}
	})
	a.mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		if err := r.ParseForm(); err == nil && ours(r) == nil && a.opts.SignOut != nil {
			a.opts.SignOut(w, r)
		}
		http.Redirect(w, r, a.link("/login"), http.StatusSeeOther)
	})
}

// login sends the form.
func (a *app) login(w http.ResponseWriter, r *http.Request, status int, wrong string) {
	v := a.view(w, r, auth.Identity{}, &page{name: "login", title: "Sign in"})
	back := r.URL.Query().Get("back")
	if back == "" && r.PostForm != nil {
		back = r.PostForm.Get("back")
	}
	text, err := v.render("login", map[string]string{"Wrong": wrong, "Back": a.back(back)}, "")
	if err != nil {
		http.Error(w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	compressed(w, r, status, []byte(text))
}
