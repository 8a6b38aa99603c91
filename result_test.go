package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ28_ResultOfAJobWithoutOneIsAClearError(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) { ignore[Welcome](to) }, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		_, err := pawl.Result[Video](t.Context(), e.Engine, r.ID)
		if !errors.Is(err, pawl.ErrNotDone) {
			t.Errorf("before the end: %v", err)
		}
		e.RunUntilIdle()
		_, err = pawl.Result[Video](t.Context(), e.Engine, r.ID)
		if !errors.Is(err, pawl.ErrNoResult) || errors.Is(err, pawl.ErrNotDone) || !strings.Contains(err.Error(), "HandleResult") || !strings.Contains(err.Error(), "welcome") {
			t.Errorf("got %v", err)
		}
	})
}

// nothing is a codec that writes everything as no bytes at all, as protobuf does
// with a message without fields.
type nothing struct{}

func (nothing) Marshal(any) ([]byte, error) { return nil, nil }
func (nothing) Unmarshal([]byte, any) error { return nil }

func TestJ28_AnEmptyResultIsAResult(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleResult(to, func(context.Context, *pawl.Job[Encode]) (Video, error) { return Video{}, nil })
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Encode{})
		e.RunUntilIdle()
		if _, err := pawl.Result[Video](t.Context(), e.Engine, r.ID); err != nil {
			t.Error(err)
		}
	}, pawltest.Config(func(c *pawl.Config) { c.Codec = nothing{} }))
}
