package storetest

import "strings"

// Features says what a store under test can do beyond the seam's rules.
type Features struct {
	// Shared: opening the same opener again gives another store on the same
	// database, as another process or another namespace would.
	Shared bool
	// Durable: what was accepted is there after Close and another Open.
	Durable bool
	// Listen: the store is a store.Listener.
	Listen bool
	// Spoil: the opener is a Spoiler.
	Spoil bool
}

// A Setup is one way of running a store that the suite must be green on.
type Setup struct {
	Name     string
	Features Features
}

// Setups are the declared features: the columns of docs/conformance.md.
var setups = []Setup{
	{"sqlite file", Features{Shared: true, Durable: true, Listen: true, Spoil: true}},
	{"sqlite memory", Features{Listen: true, Spoil: true}},
	{"sqlite spaces", Features{Shared: true, Durable: true, Listen: true, Spoil: true}},
	{"sqlite two processes", Features{Shared: true, Durable: true, Listen: true}},
	{"postgres", Features{Shared: true, Durable: true, Listen: true, Spoil: true}},
	{"postgres spaces", Features{Shared: true, Durable: true, Listen: true, Spoil: true}},
	{"postgres poll-only", Features{Shared: true, Durable: true}},
	{"postgres two connections", Features{Shared: true, Durable: true}},
	{"postgres only the user's pool", Features{Shared: true, Durable: true}},
}

// Declared gives the features declared for a setup of docs/conformance.md.
func Declared(name string) Features {
	for _, s := range setups {
		if s.Name == name {
			return s.Features
		}
	}
	panic("storetest: no setup " + name + " is declared in features.go")
}

// missing names what a case needs and a store does not have.
func (f Features) missing(needs Features) string {
	var names []string
	for _, n := range []struct {
		name         string
		needed, have bool
	}{
		{"shared", needs.Shared, f.Shared},
		{"durable", needs.Durable, f.Durable},
		{"listen", needs.Listen, f.Listen},
		{"spoil", needs.Spoil, f.Spoil},
	} {
		if n.needed && !n.have {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ", ")
}
