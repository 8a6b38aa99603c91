package hints

import (
	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "hint", Key: []string{"namespace", "transaction"}, Ours: []string{"queue"}, Derived: true,
		Except: "it has no primary key: rows come and go in heaps, and nobody looks one up",
		Expiry: table.Expiry{Column: "transaction", Index: "hint_transaction", Own: "half a minute after its commit"},
	},
}

// Room tells claims, here and in other processes, of what became ready.
type Room struct {
	pg       *pg.DB
	wire     *Wire
	meets    *Meets
	instance string // tells this store's notifications from those of others
	Rows     rows
	Notifier *notifier
	Remover  *Remover
	frontier Frontier
	intents  func() // is told that transactions elsewhere have left some
}

func New(db *pg.DB, w *Wire, meets *Meets) *Room {
	return &Room{pg: db, wire: w, meets: meets, instance: uuid.NewString(), intents: func() {}}
}

// Register names what learns of hints in this process.
func (r *Room) Register(f Frontier) { r.frontier = f }

// OnIntents names what learns of intents that were left elsewhere.
func (r *Room) OnIntents(f func()) { r.intents = f }

// Start begins to tell and to remove.
func (r *Room) Start() {
	r.wire.start()
	r.Notifier = newNotifier(r)
	r.Remover = startRemover(r)
}

// Stop tells what is left. No call is under way any more.
func (r *Room) Stop() {
	if r.Notifier != nil {
		r.Notifier.tellLeft()
		r.wire.flush()
	}
}

// Await waits until nothing is removed any more: the store is ending.
func (r *Room) Await() {
	if r.Remover != nil {
		<-r.Remover.Stopped
	}
}
