package pawl

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// EventHolder is an open transaction that has published, and that readers wait for. Its String
// names it.
type EventHolder = store.LogHolder

// WhyBehind says why events that were published cannot be read yet: the transactions that have
// published in this namespace and are still open, first the one that all readers wait for. There
// are none on a store with one writer, and most of the time on any: a transaction that ends
// within moments holds nobody up, and EventHolder.Age says how old it is.
func (e *Engine) WhyBehind(ctx context.Context) ([]EventHolder, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	log, err := e.log()
	if err != nil {
		return nil, err
	}
	tells, ok := log.(store.LogHolders)
	if !ok {
		return nil, nil
	}
	return tells.LogHolders(ctx)
}
