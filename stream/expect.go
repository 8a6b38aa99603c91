package stream

import (
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/job"
)

// ErrVersion: the last event of the key has another version than was expected. The text says
// which. Nothing was appended.
var ErrVersion = errors.New("pawl: the key has another version")

// Expect is what the version of a key must be for an event to be appended, on topics that
// are declared versioned. The zero value expects nothing: it is no version.
type Expect struct {
	kind    expectKind
	version int64
}

type expectKind uint8

const (
	expectAny expectKind = iota
	expectNone
	expectExact
)

// AnyVersion expects nothing.
func AnyVersion() Expect { return Expect{} }

// NoStream expects that the key has no event yet.
func NoStream() Expect { return Expect{kind: expectNone} }

// Version expects that the last event of the key has this version, from 1.
func Version(n int64) Expect { return Expect{kind: expectExact, version: n} }

// IsAny reports whether nothing is expected.
func (x Expect) IsAny() bool { return x.kind == expectAny }

// Allows reports whether an event may follow the last version of its key; 0 is that of a
// key without events.
func (x Expect) Allows(last int64) bool {
	switch x.kind {
	case expectNone:
		return last == 0
	case expectExact:
		return last == x.version
	}
	return true
}

func (x Expect) check() error {
	if x.kind == expectExact && x.version < 1 {
		return job.Invalid("expected version", x.version, "must be at least 1; a key without events is NoStream")
	}
	return nil
}

func (x Expect) String() string {
	switch x.kind {
	case expectNone:
		return "no event"
	case expectExact:
		return fmt.Sprintf("version %d", x.version)
	}
	return "any version"
}
