package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// jobRoom is the jobs of a namespace, and all that moves them but a claim.
type jobRoom struct {
	pg       *pg.DB
	hints    *hints.Room
	settings *settings.Room
	workers  *workers.Room
	jobConfig

	plain    *commit.Committer[*enqueueCall] // enqueues that cannot meet a lock
	careful  *commit.Committer[*enqueueCall] // enqueues with a unique key or a chosen id
	finisher *commit.Committer[*finishCall]
	blocked  blocked
	lines    lines // of calls that wait for a held key
	purges   purges
}

// jobConfig is what the settings of a store say about jobs.
type jobConfig struct {
	keepFor   func(queue string) job.Keep
	maxLost   int
	busyLimit time.Duration
	sorting   int // how many connections sort shared commits out
}

func newJobRoom(db *pg.DB, hints *hints.Room, settings *settings.Room, workers *workers.Room, c jobConfig) *jobRoom {
	return &jobRoom{pg: db, hints: hints, settings: settings, workers: workers, jobConfig: c}
}

// start makes shared commits possible. The namespace is known.
func (s *jobRoom) start() {
	s.plain = newGather(s.pg, maxGathered, s.commitPlain)
	s.careful = newGather(s.pg, maxGathered, s.commitCareful)
	s.finisher = newGather(s.pg, maxGathered, s.commitFinishes)
}

// stop ends shared commits. No call is under way any more.
func (s *jobRoom) stop() {
	if s.plain != nil {
		s.plain.Close()
		s.careful.Close()
		s.finisher.Close()
		s.blocked.going.Wait()
	}
}

// maxGathered bounds the rows of one shared commit.
const maxGathered = 4096

// newGather lets calls of many goroutines share a commit. What was taken is on its
// way to the server, which may be slow: a caller whose context ends then is told
// that the outcome is unknown.
func newGather[C commit.Shareable](db *pg.DB, most int, run func(context.Context, []C)) *commit.Committer[C] {
	return commit.Start(commit.Options[C]{
		MaxRows: most,
		Commit:  func(calls []C) { run(db.Ending, calls) }, // it may keep them, and answer later
		Yield:   commit.UntilAll,
		Unknown: func(cause error) error { return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, cause) },
		Closed:  store.ErrClosed,
	})
}

// answer ends a call.
func answer(c interface{ Answer(error) }, err error) { c.Answer(err) }
