//go:build fault || soak

package fault

import (
	"context"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// eraseStep is how many rows one transaction of an eraser removes: few, so that there are many moments to be killed at.
const eraseStep = 5

// erase removes all that the namespace has, and says so step by step.
func erase(ctx context.Context, e *pawl.Engine) error {
	for s := e.Store().(store.Eraser); ctx.Err() == nil; {
		n, more, err := s.Erase(ctx, eraseStep)
		if err != nil {
			say("failed", meaning(err))
			return err
		}
		if say("erased", n); !more {
			return nil
		}
	}
	return nil
}
