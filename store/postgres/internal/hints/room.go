package hints

import (
	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Room tells claims, here and in other processes, of what became ready.
type Room struct {
	pg       *pg.DB
	instance string // tells this store's notifications from those of others
	Rows     rows
	Notifier *notifier
	Remover  *Remover
	frontier Frontier
}

func New(db *pg.DB) *Room { return &Room{pg: db, instance: uuid.NewString()} }

// Register names what learns of hints in this process.
func (s *Room) Register(f Frontier) { s.frontier = f }

// Start begins to tell and to remove.
func (s *Room) Start() {
	s.Notifier = startNotifier(s)
	s.Remover = startRemover(s)
}

// Stop tells what is left. No call is under way any more.
func (s *Room) Stop() {
	if s.Notifier != nil {
		s.Notifier.stop()
	}
}

// Await waits until nothing is removed any more: the store is ending.
func (s *Room) Await() {
	if s.Remover != nil {
		<-s.Remover.Stopped
	}
}
