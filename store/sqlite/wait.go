package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// takeTurn takes the write lock for a user's statement or transaction.
func (s *shared) takeTurn(ctx context.Context) error {
	if s.inside(ctx) {
		return store.ErrInsideTx
	}
	defer s.lock.Await()()
	return s.lock.Acquire(ctx)
}

// inside reports whether a call is made in a transaction of the file, and would
// wait for it.
func (s *shared) inside(ctx context.Context) bool {
	in, ok := ctx.Value(insideKey{s}).(*inside)
	return ok && !in.over.Load()
}
