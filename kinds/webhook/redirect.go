package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// redirects reports whether a status asks to post elsewhere. 303 does not: it
// says that the post was taken and something can be read elsewhere.
func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow is where a redirect leads, judged like the URL of a post. Its address is
// judged when it is connected to, like any other.
func (s *sender) follow(from *url.URL, location string) (*url.URL, error) {
	if location == "" {
		return nil, errors.New("it does not say where to")
	}
	if len(location) > mostURL {
		return nil, fmt.Errorf("its location has %d bytes", len(location))
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, errors.New("its location is no URL")
	}
	if err := checkURL(to); err != nil {
		return nil, err
	}
	if from.Scheme == "https" && to.Scheme != "https" {
		return nil, errors.New("from https to http")
	}
	if !sameHost(from, to) && !matchesHost(s.cfg.RedirectHosts, to.Hostname()) {
		return nil, fmt.Errorf("to another host, %s (see Config.RedirectHosts)", to.Host)
	}
	return to, s.cfg.allowed(to)
}

// sameHost reports whether two URLs are of one server: host and port, or from its
// port for http to that for https.
func sameHost(from, to *url.URL) bool {
	if plainHost(from.Hostname()) != plainHost(to.Hostname()) {
		return false
	}
	upgrade := from.Scheme == "http" && to.Scheme == "https" && portOf(from) == 80 && portOf(to) == 443
	return from.Scheme == to.Scheme && portOf(from) == portOf(to) || upgrade
}
