package postgres

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/commit"
)

// maxGathered bounds the rows of one shared commit.
const maxGathered = 4096

// newGather lets calls of many goroutines share a commit. What was taken is on its
// way to the server, which may be slow: a caller whose context ends then is told
// that the outcome is unknown.
func newGather[C commit.Shareable](s *Store, most int, run func(context.Context, []C)) *commit.Committer[C] {
	return commit.Start(commit.Options[C]{
		MaxRows: most,
		Commit:  func(calls []C) { run(s.pg.Ending, calls) }, // it may keep them, and answer later
		Yield:   commit.UntilAll,
		Unknown: func(cause error) error { return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, cause) },
		Closed:  store.ErrClosed,
	})
}

// answer ends a call.
func answer(c interface{ Answer(error) }, err error) { c.Answer(err) }
