package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Each of these has a method that was meant to count and would be passed over.
type (
	pointerDefaults struct{}
	pointerAliases  struct{}
	pointerVersion  struct{}
	shapeDefaults   struct{}
	shapeAliases    struct{}
	shapeVersion    struct{}
	nameDefaults    struct{}
	nameOptions     struct{}
	nameAlias       struct{}
	nameAliases     struct{}
	nameVersion     struct{}
	twoFaults       struct{}
	inherited       struct{ pointerDefaults }
)

func (pointerDefaults) Kind() string { return "pointer.defaults" }
func (pointerAliases) Kind() string  { return "pointer.aliases" }
func (pointerVersion) Kind() string  { return "pointer.version" }
func (shapeDefaults) Kind() string   { return "shape.defaults" }
func (shapeAliases) Kind() string    { return "shape.aliases" }
func (shapeVersion) Kind() string    { return "shape.version" }
func (nameDefaults) Kind() string    { return "name.defaults" }
func (nameOptions) Kind() string     { return "name.options" }
func (nameAlias) Kind() string       { return "name.alias" }
func (nameAliases) Kind() string     { return "name.aliases" }
func (nameVersion) Kind() string     { return "name.version" }
func (twoFaults) Kind() string       { return "two" }

func (*pointerDefaults) Defaults() []pawl.EnqueueOption                    { return nil }
func (*pointerAliases) KindAliases() []string                              { return nil }
func (*pointerVersion) Version() int                                       { return 2 }
func (shapeDefaults) Defaults(context.Context) []pawl.EnqueueOption        { return nil }
func (shapeAliases) KindAliases() string                                   { return "old" }
func (shapeVersion) Version() int64                                        { return 2 }
func (nameDefaults) Default() []pawl.EnqueueOption                         { return nil }
func (*nameOptions) Options(context.Context) ([]pawl.EnqueueOption, error) { return nil, nil }
func (nameAlias) KindAlias() string                                        { return "old" }
func (nameAliases) Aliases() []string                                      { return []string{"old"} }
func (nameVersion) ArgsVersion() uint8                                     { return 2 }
func (*twoFaults) Defaults() []pawl.EnqueueOption                          { return nil }
func (twoFaults) Version() string                                          { return "v2" }

// own has methods with near names that are plainly the user's own, and the
// optional ones as they should be beside others.
type own struct{ Person string }

func (own) Kind() string                   { return "own" }
func (own) Defaults() []pawl.EnqueueOption { return nil }
func (own) Options() []pawl.EnqueueOption  { return nil } // Defaults is there: this is another's business
func (own) Alias(of string) []string       { return nil }
func (own) Versions() []string             { return nil }
func (*own) Default() own                  { return own{} }

var (
	_ pawl.ArgsWithDefaults = own{}
	_ pawl.ArgsWithDefaults = mailed{}
)

func ignore[A pawl.Args](to pawl.Registrar) {
	pawl.Handle(to, func(context.Context, *pawl.Job[A]) error { return nil })
}

func TestJ31_AnOptionalMethodThatWouldBePassedOverIsAFault(t *testing.T) {
	for _, c := range []struct {
		args     pawl.Args
		register func(pawl.Registrar)
		want     []string
	}{
		{pointerDefaults{}, ignore[pointerDefaults], []string{"pointerDefaults.Defaults", "value receiver", "Defaults() []pawl.EnqueueOption"}},
		{pointerAliases{}, ignore[pointerAliases], []string{"pointerAliases.KindAliases", "value receiver", "KindAliases() []string"}},
		{pointerVersion{}, ignore[pointerVersion], []string{"pointerVersion.Version", "value receiver", "Version() int"}},
		{shapeDefaults{}, ignore[shapeDefaults], []string{"shapeDefaults.Defaults", "func(context.Context) []pawl.EnqueueOption", "must be func (shapeDefaults) Defaults() []pawl.EnqueueOption"}},
		{shapeAliases{}, ignore[shapeAliases], []string{"shapeAliases.KindAliases", "func() string", "must be func (shapeAliases) KindAliases() []string"}},
		{shapeVersion{}, ignore[shapeVersion], []string{"shapeVersion.Version", "func() int64", "must be func (shapeVersion) Version() int"}},
		{nameDefaults{}, ignore[nameDefaults], []string{"nameDefaults.Default", "never be called", "Defaults() []pawl.EnqueueOption"}},
		{nameOptions{}, ignore[nameOptions], []string{"nameOptions.Options", "never be called", "Defaults() []pawl.EnqueueOption"}},
		{nameAlias{}, ignore[nameAlias], []string{"nameAlias.KindAlias", "never be called", "KindAliases() []string"}},
		{nameAliases{}, ignore[nameAliases], []string{"nameAliases.Aliases", "never be called", "KindAliases() []string"}},
		{nameVersion{}, ignore[nameVersion], []string{"nameVersion.ArgsVersion", "never be called", "Version() int"}},
		{twoFaults{}, ignore[twoFaults], []string{"twoFaults.Defaults", "value receiver", "twoFaults.Version", "func() string"}},
		{inherited{}, ignore[inherited], []string{"inherited.Defaults", "value receiver"}},
	} {
		e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c.register(e)
		_, first := e.Enqueue(t.Context(), c.args)
		_, second := e.Enqueue(t.Context(), c.args) // from memory
		for where, err := range map[string]error{"Run": e.Run(t.Context()), "Enqueue": first, "second Enqueue": second} {
			if !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%T: %s: %v", c.args, where, err)
				continue
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%T: %s: %q does not say %q", c.args, where, err, w)
				}
			}
		}
		if n, _ := e.Count(t.Context(), pawl.Filter{}, 0); n.Jobs != 0 {
			t.Errorf("%T: %d jobs were kept", c.args, n.Jobs)
		}
	}
}

func TestJ31_MethodsOfTheUsersOwnAreNoFault(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, func(context.Context, *pawl.Job[own]) error { stop(); return nil })
	r, err := e.Enqueue(ctx, own{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if j, err := e.Get(t.Context(), r.ID); err != nil || j.State != job.Done {
		t.Errorf("%v %v", j.State, err)
	}
}
