package store

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

var (
	schemesMu sync.Mutex
	schemes   = map[string]func(address string) (Opener, error){}
)

// RegisterScheme lets Parse read addresses of a scheme. Store packages call it
// from init, as database/sql drivers do.
func RegisterScheme(scheme string, parse func(address string) (Opener, error)) {
	schemesMu.Lock()
	defer schemesMu.Unlock()
	if _, taken := schemes[scheme]; taken {
		panic("store: scheme " + scheme + " registered twice")
	}
	schemes[scheme] = parse
}

// Parse reads an address such as "sqlite:work.db" or "postgres://host/db". Its
// errors never repeat the address, which may hold a password.
func Parse(address string) (Opener, error) {
	schemesMu.Lock()
	defer schemesMu.Unlock()
	var known []string
	for s := range schemes {
		known = append(known, s)
	}
	slices.Sort(known)
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return nil, fmt.Errorf("pawl: store address has no scheme, want one of %v (import the store's package)", known)
	}
	parse, ok := schemes[scheme]
	if !ok {
		return nil, fmt.Errorf("pawl: store scheme %q is not one of %v (import the store's package)", url.PathEscape(scheme), known)
	}
	return parse(address)
}
