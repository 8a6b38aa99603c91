package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Eraser is a store that can remove all that a namespace has.
type Eraser interface {
	// Erase removes up to limit rows of the namespace in one transaction, from every
	// table in turn: log lines before their jobs, audit entries too. More is false when
	// there was nothing to remove; until then call again, also after a failure or in
	// another process. It is ErrInUse while a worker of the namespace is live. The
	// namespace itself stays, empty, so that whoever has it open can go on.
	Erase(ctx context.Context, limit int) (n int, more bool, err error)
}

// EraseRows is how many rows one transaction of an erasure removes.
const EraseRows = 2000

// CheckIdle is ErrInUse where one of the workers is live at that time: neither lost
// nor silent for longer than it may be. It names them.
func CheckIdle(workers []WorkerInfo, now time.Time) error {
	var live []string
	for _, w := range workers {
		if !w.Lost && now.Sub(w.Beat) < w.Worker.LostAfter {
			live = append(live, fmt.Sprintf("%d %q on %s, process %d", w.ID, w.Worker.Label, w.Worker.Host, w.Worker.Process))
		}
	}
	if len(live) == 0 {
		return nil
	}
	const most = 5
	named := strings.Join(live[:min(len(live), most)], "; ")
	if more := len(live) - most; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Errorf("%w by live workers, stop them first: %s", ErrInUse, named)
}
