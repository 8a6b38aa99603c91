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

// farAhead numbers its arguments beyond what every store can keep.
type farAhead struct{}

func (farAhead) Kind() string { return "far-ahead" }
func (farAhead) Version() int { return job.MaxVersion + 1 }

func TestP10_AVersionHasABound(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, pawl.ErrInvalid) {
			t.Fatalf("%s: %v, want ErrInvalid", what, err)
		}
		for _, w := range []string{"version", "2147483648", "0..2147483647"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", what, err, w)
			}
		}
	}
	_, err = e.Enqueue(t.Context(), farAhead{})
	refused("enqueue", err)
	pawl.Handle(e, func(context.Context, *pawl.Job[farAhead]) error { return nil })
	refused("run", e.Run(t.Context()))
}
