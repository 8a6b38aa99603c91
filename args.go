package pawl

import (
	"fmt"
	"reflect"

	"github.com/pawlwork/pawl/job"
)

// Args are the typed arguments of a job: a plain struct, passed by value, that
// names its kind. The codec (JSON by default) turns them into bytes.
type Args interface {
	// Kind names the work. It is stored with every job and must not change with
	// a rename of the type; see KindAliases for renaming a kind.
	Kind() string
}

// Args may implement these as well.
type (
	// defaulter gives options that hold for this kind in every process.
	defaulter interface{ Defaults() []EnqueueOption }
	// aliased names earlier kinds that the same handler still takes.
	aliased interface{ KindAliases() []string }
	// versioned numbers the shape of the arguments; older builds do not claim
	// newer versions. Zero when not implemented.
	versioned interface{ Version() int }
)

// Raw is a payload that stays bytes: for handlers of kinds without a Go type.
type Raw []byte

// RawArgs makes arguments of a kind from bytes that the codec does not touch.
func RawArgs(kind string, payload []byte) Args { return rawArgs{kind, payload} }

type rawArgs struct {
	kind    string
	payload []byte
}

func (r rawArgs) Kind() string { return r.kind }

// kindOf reads the kind of arguments and refuses what cannot be stored: nil and
// pointers, whose Kind may be called on nil and which invite sharing.
func kindOf(a Args) (string, error) {
	if a == nil {
		return "", job.Invalid("args", "nil", "must be a struct value")
	}
	if t := reflect.TypeOf(a); t.Kind() == reflect.Pointer {
		return "", job.Invalid("args", t.String(), "must be a value, not a pointer")
	}
	kind := a.Kind()
	if kind == "" {
		return "", job.Invalid("kind", "", fmt.Sprintf("%T.Kind() must not be empty", a))
	}
	return kind, nil
}

func versionOf(a any) int {
	if v, ok := a.(versioned); ok {
		return v.Version()
	}
	return 0
}
