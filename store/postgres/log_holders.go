package postgres

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

var _ store.LogHolders = (*Store)(nil)

// LogHolders says whose transactions hold the head back.
func (s *Store) LogHolders(ctx context.Context) ([]store.LogHolder, error) { return s.log.Holders(ctx) }
