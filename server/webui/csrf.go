package webui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlwork/pawl/server/auth"
)

// A write has to come from one of our own pages. A page of somebody else can make a browser send a form with all its cookies, but
// can neither read the cookie below nor hide where it comes from:
//
//  1. Sec-Fetch-Site and Origin, where a browser sends them, must be ours;
//  2. the form or the header auth.CSRFHeader carries what the cookie has.
//
// The token of a page is masked anew each time, so that nothing can be learnt from how well an answer is compressed.
const (
	csrfCookie = "pawl_csrf"
	csrfField  = "csrf"
	csrfBytes  = 32
)

var errForeign = errors.New("this form was not sent by a page of this server, or the page is too old: load it again, and repeat it")

// csrfSecret is the browser's secret; a new one is set where it has none.
func (a *app) csrfSecret(w http.ResponseWriter, r *http.Request) []byte {
	if secret := secretOf(r); secret != nil {
		return secret
	}
	secret := make([]byte, csrfBytes)
	rand.Read(secret) // never fails
	http.SetCookie(w, &http.Cookie{
		Name: csrfCookie, Value: base64.RawURLEncoding.EncodeToString(secret), Path: a.link("/"), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	return secret
}

func secretOf(r *http.Request) []byte {
	cookie, err := r.Cookie(csrfCookie)
	if err != nil {
		return nil
	}
	secret, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(secret) != csrfBytes {
		return nil
	}
	return secret
}

// csrfToken is the secret under a mask.
func csrfToken(secret []byte) string {
	token := make([]byte, 2*csrfBytes)
	rand.Read(token[:csrfBytes])
	subtle.XORBytes(token[csrfBytes:], token[:csrfBytes], secret)
	return base64.RawURLEncoding.EncodeToString(token)
}

// ours refuses a write that no page of ours has sent. The form is parsed.
func ours(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return errForeign
	}
	for _, text := range r.Header.Values("Origin") {
		origin, err := url.Parse(text)
		if err != nil || !strings.EqualFold(origin.Host, r.Host) {
			return errForeign
		}
	}
	text := r.Header.Get(auth.CSRFHeader)
	if text == "" {
		text = r.PostForm.Get(csrfField)
	}
	secret := secretOf(r)
	token, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(token) != 2*csrfBytes || secret == nil {
		return errForeign
	}
	subtle.XORBytes(token[csrfBytes:], token[:csrfBytes], token[csrfBytes:])
	if subtle.ConstantTimeCompare(token[csrfBytes:], secret) != 1 {
		return errForeign
	}
	return nil
}
