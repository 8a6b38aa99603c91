package intents

import (
	"slices"
	"sync"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Appliers are what applies the kinds of intents that this build knows.
type Appliers struct {
	mu       sync.Mutex
	kinds    []store.IntentKind
	appliers map[store.IntentKind]Applier
}

// Applier does what intents of one kind want, several at a time and in order, in
// the transaction that removes them. An error costs the intents of this call only;
// it is asked again for fewer of them, to find out which cannot be done.
type Applier func(in *lite.Session, list []store.Intent) error

// Register names what applies a kind.
func (a *Appliers) Register(kind store.IntentKind, f Applier) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.appliers == nil {
		a.appliers = map[store.IntentKind]Applier{}
	}
	if a.appliers[kind] == nil {
		a.kinds = append(a.kinds, kind)
	}
	a.appliers[kind] = f
}

// Known lists the kinds that this build applies.
func (a *Appliers) Known() []store.IntentKind {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.kinds)
}

func (a *Appliers) of(kind store.IntentKind) Applier {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.appliers[kind]
}
