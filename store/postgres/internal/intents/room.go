package intents

import (
	"context"
	"slices"
	"sync"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Room applies intents.
type Room struct {
	pg    *pg.DB
	hints *hints.Room

	mu       sync.Mutex
	kinds    []store.IntentKind // in the order of their locks
	appliers map[store.IntentKind]Applier
	from     string // the transaction from which fresh rows may be left; in front of it, dead index entries may be

	committed chan struct{} // holds a token: a transaction has committed some
	left      chan struct{} // holds a token: a transaction has left some, whose end is not seen
	stopped   chan struct{} // nil before Start
}

// Applier does what intents of one kind want, several at a time. Both methods get
// the same intents, in order, and have the transaction that removes them: what they
// do commits with that, once. An error costs the intents of this call only; it is
// asked again for fewer of them, to find out which cannot be done.
type Applier interface {
	// Lock locks what the intents are about, in the lock order: worker, gate, flow
	// node, job, each by ascending id. All kinds lock before any applies.
	Lock(ctx context.Context, in pg.Session, list []store.Intent) error
	Apply(ctx context.Context, in pg.Session, list []store.Intent) error
}

func New(db *pg.DB, hints *hints.Room) *Room {
	r := &Room{pg: db, hints: hints, appliers: map[store.IntentKind]Applier{}, committed: make(chan struct{}, 1), left: make(chan struct{}, 1)}
	hints.OnIntents(r.Committed)
	return r
}

// Register names what applies a kind. Kinds are registered in the order of what
// they lock.
func (r *Room) Register(kind store.IntentKind, a Applier) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.appliers[kind] == nil {
		r.kinds = append(r.kinds, kind)
	}
	r.appliers[kind] = a
	r.from = ""
}

// Known lists the kinds that this build applies.
func (r *Room) Known() []store.IntentKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kinds)
}

func (r *Room) applier(kind store.IntentKind) Applier {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appliers[kind]
}

// begin is the transaction from which a look reads.
func (r *Room) begin() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == "" {
		return "0"
	}
	return r.from
}

// reached notes that nothing fresh is left in front of a transaction.
func (r *Room) reached(transaction string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = transaction
}

// numbers are kinds as statements take them.
func numbers(kinds []store.IntentKind) []int16 {
	list := make([]int16, len(kinds))
	for i, k := range kinds {
		list[i] = int16(k)
	}
	return list
}
