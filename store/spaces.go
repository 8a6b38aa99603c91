package store

// Spaces opens namespaces of one database that share what can be shared: its
// connections, its listener and notifier, and what they ask for at the same moment.
// A process that serves a hundred tenants costs the database little more than one
// that serves one. Each store that it opens is closed by itself; what happens in
// one namespace is not seen, and not felt, in another (P8).
type Spaces interface {
	Opener
	// Close closes the stores that are still open, as their own Close does, and
	// then releases what they shared. It is idempotent; Open is answered ErrClosed
	// after it.
	Close() error
}
