package runner

import (
	"log/slog"
	"sync"

	"github.com/pawlwork/pawl/supervise"
)

// services is the tree of Run: the loops and what runs beside them.
type services struct {
	mu    sync.Mutex
	tree  *supervise.Supervisor // nil before Run
	ended bool                  // by a stop: nothing is woken any more
}

func (s *services) set(tree *supervise.Supervisor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree = tree
}

func (s *services) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// wake lets a tick come at once.
func (s *services) wake(tick string, log *slog.Logger) {
	s.mu.Lock()
	tree, ended := s.tree, s.ended
	s.mu.Unlock()
	if tree == nil || ended {
		return
	}
	if err := tree.Wake(tick); err != nil {
		log.Error("cannot wake a service", "service", tick, "error", err)
	}
}

// Wake lets a tick of the services beside Run come at once.
func (r *Runner) Wake(tick string) { r.services.wake(tick, r.log) }

// wakeBeat lets the next beat come at once.
func (r *Runner) wakeBeat() { r.services.wake("beat", r.log) }

// Services is the status of the loops; nil before Run.
func (r *Runner) Services() []supervise.Status {
	r.services.mu.Lock()
	tree := r.services.tree
	r.services.mu.Unlock()
	if tree == nil {
		return nil
	}
	return tree.Snapshot()
}
