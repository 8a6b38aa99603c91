package pawl

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawlwork/pawl/job"
)

// checkMethods refuses a type of arguments one of whose methods was meant to be
// an optional one and is not: the compiler cannot tell, and the engine would
// never call it.
//
// Names are given to MethodByName one by one, as constants: the linker then keeps
// the methods of these names only. With a loop over all methods it keeps every
// exported method of the program, which made examples/welcome a fifth larger.
func checkMethods(t reflect.Type) error {
	p := reflect.PointerTo(t)
	var errs []error

	defaults := optional{t, "Defaults", reflect.TypeFor[func() []EnqueueOption](), givesOptions}
	if value, ok := t.MethodByName("Defaults"); ok {
		errs = append(errs, defaults.shape(value))
	} else {
		errs = append(errs,
			defaults.pointer(p.MethodByName("Defaults")),
			defaults.misspelt(p.MethodByName("Default")),
			defaults.misspelt(p.MethodByName("DefaultOptions")),
			defaults.misspelt(p.MethodByName("EnqueueOptions")),
			defaults.misspelt(p.MethodByName("Options")))
	}

	aliases := optional{t, "KindAliases", reflect.TypeFor[func() []string](), givesNames}
	if value, ok := t.MethodByName("KindAliases"); ok {
		errs = append(errs, aliases.shape(value))
	} else {
		errs = append(errs,
			aliases.pointer(p.MethodByName("KindAliases")),
			aliases.misspelt(p.MethodByName("KindAlias")),
			aliases.misspelt(p.MethodByName("Kindaliases")),
			aliases.misspelt(p.MethodByName("KindAliasses")),
			aliases.misspelt(p.MethodByName("KindsAliases")),
			aliases.misspelt(p.MethodByName("AliasKinds")),
			aliases.misspelt(p.MethodByName("Aliases")),
			aliases.misspelt(p.MethodByName("Alias")))
	}

	version := optional{t, "Version", reflect.TypeFor[func() int](), givesNumber}
	if value, ok := t.MethodByName("Version"); ok {
		errs = append(errs, version.shape(value))
	} else {
		errs = append(errs,
			version.pointer(p.MethodByName("Version")),
			version.misspelt(p.MethodByName("ArgsVersion")),
			version.misspelt(p.MethodByName("KindVersion")),
			version.misspelt(p.MethodByName("Versions")))
	}
	errs = append(errs, checkFields(t))
	return errors.Join(errs...)
}

// checkFields refuses a struct none of whose fields a codec can see: its jobs
// would all carry the same empty arguments.
func checkFields(t reflect.Type) error {
	if t.Kind() != reflect.Struct || t.NumField() == 0 || t == reflect.TypeFor[rawArgs]() {
		return nil
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return nil
		}
	}
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.BinaryMarshaler]()} {
		if t.Implements(own) {
			return nil
		}
	}
	return job.Invalid("arguments", t.String(), "must have an exported field: a codec sees no other")
}

// optional is a method that a type of arguments may have.
type optional struct {
	of   reflect.Type
	name string
	is   reflect.Type // the method, without its receiver
	// meant reports whether a method of a near name is meant as this one, and is
	// no business of the user's own.
	meant func(m reflect.Type) bool
}

func givesOptions(m reflect.Type) bool {
	return m.NumOut() > 0 && (m.Out(0) == reflect.TypeFor[[]EnqueueOption]() || m.Out(0) == reflect.TypeFor[EnqueueOption]())
}

func givesNames(m reflect.Type) bool {
	return m.NumIn() == 0 && m.NumOut() == 1 && (m.Out(0) == reflect.TypeFor[[]string]() || m.Out(0) == reflect.TypeFor[string]())
}

func givesNumber(m reflect.Type) bool {
	return m.NumIn() == 0 && m.NumOut() == 1 && m.Out(0).Kind() >= reflect.Int && m.Out(0).Kind() <= reflect.Uint64
}

// want is the method as it should be written.
func (o optional) want() string {
	return fmt.Sprintf("func (%s) %s", o.of.Name(), strings.Replace(o.is.String(), "func", o.name, 1))
}

// shape refuses a method of the right name that takes or returns something else.
func (o optional) shape(m reflect.Method) error {
	if is := signature(m); is != o.is {
		return o.invalid(o.name, is.String(), "must be "+o.want())
	}
	return nil
}

// pointer refuses a method that only a pointer has: arguments are values.
func (o optional) pointer(m reflect.Method, found bool) error {
	if !found {
		return nil
	}
	return o.invalid(o.name, m.Type.In(0).String(), "must have a value receiver: "+o.want())
}

// misspelt refuses a method of a near name that gives what this one should.
func (o optional) misspelt(m reflect.Method, found bool) error {
	if !found || !o.meant(signature(m)) {
		return nil
	}
	return o.invalid(m.Name, signature(m).String(), "would never be called, the name is "+o.want())
}

func (o optional) invalid(method, value, bound string) error {
	return job.Invalid(fmt.Sprintf("method %s.%s", o.of, method), value, bound)
}

// signature is the type of a method without its receiver.
func signature(m reflect.Method) reflect.Type {
	var in, out []reflect.Type
	for i := 1; i < m.Type.NumIn(); i++ {
		in = append(in, m.Type.In(i))
	}
	for i := range m.Type.NumOut() {
		out = append(out, m.Type.Out(i))
	}
	return reflect.FuncOf(in, out, m.Type.IsVariadic())
}
