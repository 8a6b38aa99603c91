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

// Arguments may say more about their kind. Each such method has a value
// receiver, as Kind has. A method that is nearly one of these (a pointer
// receiver, another signature, another spelling) would be passed over in
// silence, so it is a fault at Handle and an error at Enqueue. To have the
// compiler look, write
//
//	var _ pawl.ArgsWithDefaults = Welcome{}
type (
	// ArgsWithDefaults gives options that hold for this kind in every process
	// that enqueues it; options of the call go before them.
	ArgsWithDefaults interface {
		Args
		Defaults() []EnqueueOption
	}
	// ArgsWithAliases names earlier kinds that the same handler still takes, so
	// that a kind can be renamed while jobs of the old name wait.
	ArgsWithAliases interface {
		Args
		KindAliases() []string
	}
	// ArgsWithVersion numbers the shape of the arguments. A process does not
	// claim jobs of a newer version than its own; for older ones see Upgrade.
	// Arguments without the method are of version 0.
	ArgsWithVersion interface {
		Args
		Version() int
	}
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

// checkArgs is checkMethods, once for each type: Enqueue asks each time.
func (e *Engine) checkArgs(a Args) error {
	t := reflect.TypeOf(a)
	if known, ok := e.argTypes.Load(t); ok {
		err, _ := known.(error)
		return err
	}
	err := checkMethods(t)
	e.argTypes.Store(t, err)
	return err
}

func versionOf(a any) int {
	if v, ok := a.(ArgsWithVersion); ok {
		return v.Version()
	}
	return 0
}
