package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// takeTurn takes the write lock for a user's statement or transaction.
func (s *shared) takeTurn(ctx context.Context) error {
	if in, ok := ctx.Value(insideKey{s}).(*inside); ok && !in.over.Load() {
		return store.ErrInsideTx
	}
	defer s.lock.Await()()
	return s.lock.Acquire(ctx)
}
