package postgres

import (
	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// hintRoom tells claims, here and in other processes, of what became ready.
type hintRoom struct {
	pg       *pg.DB
	instance string // tells this store's notifications from those of others
	rows     hints
	notifier *notifier
	remover  *hintRemover
	frontier frontier
}

func newHintRoom(db *pg.DB) *hintRoom { return &hintRoom{pg: db, instance: uuid.NewString()} }

// register names what learns of hints in this process.
func (s *hintRoom) register(f frontier) { s.frontier = f }

// start begins to tell and to remove.
func (s *hintRoom) start() {
	s.notifier = startNotifier(s)
	s.remover = startHintRemover(s)
}

// stop tells what is left. No call is under way any more.
func (s *hintRoom) stop() {
	if s.notifier != nil {
		s.notifier.stop()
	}
}

// await waits until nothing is removed any more: the store is ending.
func (s *hintRoom) await() {
	if s.remover != nil {
		<-s.remover.stopped
	}
}
