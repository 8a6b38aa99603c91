package webui_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl/server/auth"
)

func TestU7_TheFrameOpensAndIsLive(t *testing.T) {
	c := serve(t)
	b := open(t, c, "/")
	b.has("#side", "Overview")
	b.accessible()
	b.shots("frame")
	b.expect("404")
	b.do(chromedp.Navigate(c.url + "/jobs/019a8732-7c4e-7b1d-9e52-4a8f03c1d7e6"))
	b.has("main", "No job 019a8732-7c4e-7b1d-9e52-4a8f03c1d7e6.")
	b.has("main", "It may have been purged")
	b.accessible()
}

func TestU7_WhoIsNotLetInSignsIn(t *testing.T) {
	c := serve(t, func(s *setup) {
		s.who = auth.Func(func(r *http.Request) (auth.Identity, error) {
			if _, err := r.Cookie("in"); err != nil {
				return auth.Identity{}, auth.ErrNoToken
			}
			return auth.Identity{Name: "somebody", Role: auth.Operator}, nil
		})
		s.options.SignIn = func(w http.ResponseWriter, r *http.Request, token string) error {
			if token != "right" {
				return auth.ErrBadToken
			}
			http.SetCookie(w, &http.Cookie{Name: "in", Value: "1", Path: "/"})
			return nil
		}
		s.options.SignOut = func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "in", Path: "/", MaxAge: -1})
		}
	})
	b := tabOf(t, c)
	b.expect("401")
	b.do(chromedp.Navigate(c.url + "/jobs?state=dead"))
	b.has("main", "Sign in with a token")
	b.accessible()
	b.shots("login")
	b.press("wrong\r")
	b.has(".wrong", "not known")
	b.click("input[name=token]")
	b.press("right\r")
	b.wait(`location.pathname + location.search === "/jobs?state=dead"`)
	b.settled()
	b.has(".footer", "somebody · operator")
	b.click(".footer button")
	b.has("main", "Sign in with a token")
}
