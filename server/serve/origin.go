package serve

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// hosts are the names by which a server may be called. A page of somebody else can make
// its own name lead to this machine (DNS rebinding), and is then one of "our" pages for
// the browser; but the browser still says that name.
type hosts struct {
	allowed map[string]bool // lower case, with port where one is needed; nil: all
}

// newHosts are loopback's names with the port, and those that were configured. A server
// that is reached from elsewhere and was told no names takes all: there every request
// needs a token, which a browser sends to no other name.
func newHosts(address net.Addr, configured []string) hosts {
	tcp := address.(*net.TCPAddr)
	if !tcp.IP.IsLoopback() && len(configured) == 0 {
		return hosts{}
	}
	h := hosts{allowed: map[string]bool{}}
	for _, name := range []string{"localhost", "127.0.0.1", "[::1]", hostOf(tcp.IP)} {
		h.allowed[name+":"+strconv.Itoa(tcp.Port)] = true
		if tcp.Port == 80 || tcp.Port == 443 { // browsers leave those out
			h.allowed[name] = true
		}
	}
	for _, name := range configured {
		h.allowed[strings.ToLower(name)] = true
	}
	return h
}

func hostOf(ip net.IP) string {
	if ip.To4() == nil {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}

// takes reports whether a request calls the server by one of its names.
func (h hosts) takes(r *http.Request) bool {
	return h.allowed == nil || h.allowed[strings.ToLower(r.Host)]
}

func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// foreign says what shows that a write was sent by a page that is not ours, if anything
// does. Programs that are no browsers send none of it.
func foreign(r *http.Request) string {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "Sec-Fetch-Site: the page is not of this server" // same-site too: another port of this machine
	}
	for _, text := range r.Header.Values("Origin") {
		origin, err := url.Parse(text)
		if err != nil || !strings.EqualFold(origin.Host, r.Host) || origin.Scheme != "https" && (origin.Scheme != "http" || r.TLS != nil) {
			return "Origin: the page is not of this server"
		}
	}
	return ""
}

// form reports whether a body is of a kind that any page may send without asking
// (a form's), or of none.
func form(r *http.Request) bool {
	if r.ContentLength == 0 { // over HTTP/2 its body is one that is empty, not none
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err != nil || kind == "application/x-www-form-urlencoded" || kind == "multipart/form-data" || kind == "text/plain"
}

// loginPath is where Mission Control's page signs in.
const loginPath = "/login"

// ofPage reports whether a write is one of Mission Control's own. Those are forms, and carry a CSRF token that webui
// holds against a cookie of its own, also where nobody needs a token to be let in.
func ofPage(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.HasPrefix(r.URL.Path, "/do/") || r.URL.Path == loginPath || r.URL.Path == "/logout")
}
