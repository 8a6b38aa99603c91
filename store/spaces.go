package store

import "time"

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

// Rhythmic is a store whose periodic calls come at the same moments as those of
// other namespaces of its process, because they are sent as one then.
type Rhythmic interface {
	// Rhythm is what they keep; nil where the store is by itself, and each caller
	// goes by its own clock.
	Rhythm() *Rhythm
}

// RhythmOf is the rhythm of a store, nil when it keeps none.
func RhythmOf(s any) *Rhythm {
	if r, ok := s.(Rhythmic); ok {
		return r.Rhythm()
	}
	return nil
}

// Rhythm is when periodic calls of several namespaces come: whole periods after
// one moment, which is another in each process.
type Rhythm struct {
	start time.Time
}

// NewRhythm begins at a moment.
func NewRhythm(start time.Time) *Rhythm { return &Rhythm{start} }

// After is when a call that comes every period comes next, after the given time
// and at most one period later. Without a rhythm it is exactly one.
func (r *Rhythm) After(t time.Time, period time.Duration) time.Time {
	if r == nil || period <= 0 {
		return t.Add(period)
	}
	into := t.Sub(r.start) % period
	if into < 0 {
		into += period
	}
	return t.Add(period - into)
}
