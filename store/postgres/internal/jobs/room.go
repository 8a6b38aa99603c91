// Package jobs keeps the jobs of a namespace, live and ended, and all that moves
// them but a claim: enqueue, finish, note, report, operators' calls, rescue,
// expire, purge. It owns the tables job, job_archive, job_unique, job_log and
// tombstone, their statements (plans.go says by which index each is served) and
// their rules of Check.
package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "job", Key: []string{"namespace", "id"},
		Users: []string{"args", "headers", "failures", "reason", "progress_note"},
		Ours:  []string{"queue", "kind", "key", "budget", "unique_hash", "capabilities", "tags"},
	},
	{
		Name: "job_archive", Key: []string{"namespace", "id"},
		Users:  []string{"args", "headers", "failures", "reason", "progress_note", "result"},
		Ours:   []string{"queue", "kind", "key", "budget", "unique_hash", "capabilities", "tags"},
		Expiry: table.Expiry{Column: "expires", When: "state >= 5", Index: "job_archive_expires", Own: "`expires` is over, after its log lines"},
	},
	{
		Name: "job_unique", Key: []string{"namespace", "hash"}, Parent: table.Parent{Column: "job", Tables: []string{"job"}},
		Expiry: table.Expiry{Column: "until", When: "until IS NOT NULL", Index: "job_unique_until"},
	},
	{
		Name: "tombstone", Key: []string{"namespace", "id"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "tombstone_expires"},
	},
	{
		Name: "job_log", Key: []string{"namespace", "job", "line"}, Users: []string{"text"},
		Parent: table.Parent{Column: "job", Tables: []string{"job", "job_archive"}},
	},
}

// Room is the jobs of a namespace, and all that moves them but a claim.
type Room struct {
	pg       *pg.DB
	hints    *hints.Room
	settings *settings.Room
	workers  *workers.Room
	meets    *Meets
	Config

	plain    *commit.Committer[*EnqueueCall] // enqueues that cannot meet a lock
	careful  *commit.Committer[*EnqueueCall] // enqueues with a unique key or a chosen id
	finisher *commit.Committer[*finishCall]
	blocked  blocked
	Lines    lines // of calls that wait for a held key
	Purges   purges

	followers []Follower // in the order in which they lock

	lookDue    string
	purgeTexts []string // each removes at most $2 rows, which are counted
}

// Config is what the settings of a store say about jobs.
type Config struct {
	KeepFor   func(queue string) job.Keep
	MaxLost   int
	BusyLimit time.Duration
	Sorting   int           // how many connections sort shared commits out
	Tables    []table.Table // of all rooms
	Asks      []Ask         // of later rooms
}

func New(db *pg.DB, hints *hints.Room, settings *settings.Room, workers *workers.Room, meets *Meets, c Config) *Room {
	r := &Room{pg: db, hints: hints, settings: settings, workers: workers, meets: meets, Config: c}
	expiring := table.Expiring(c.Tables)
	r.lookDue = lookDue(expiring, c.Asks)
	for _, t := range expiring {
		r.purgeTexts = append(r.purgeTexts, pg.PurgeText(&t))
	}
	r.purgeTexts = append(r.purgeTexts, leaveWorkers)
	return r
}

// Meets are the meetings of the namespaces of a process at which they look for
// what upkeep has to do, and report that they hold no runs.
type Meets struct {
	due  *pg.Meeting[dueAsk, dueAnswer]
	idle *pg.Meeting[idleAsk, struct{}]
}

// patience of both: nobody waits for their answer.
const patience = 20 * time.Millisecond

// NewMeets makes them; without a place to meet each namespace is alone.
func NewMeets(t *pg.Together, tables []table.Table, asks []Ask) *Meets {
	kind := pg.MeetingKind{Patience: patience, Reserved: true, Limits: pg.SharedLimits}
	return &Meets{due: pg.Meet(t, kind, lookForDue(lookDueAll(table.Expiring(tables), asks), asks)), idle: pg.Meet(t, kind, lookForIdle)}
}

// Start makes shared commits possible. The namespace is known.
func (r *Room) Start() {
	r.plain = newGather(r.pg, MaxGathered, r.commitPlain)
	r.careful = newGather(r.pg, MaxGathered, r.CommitCareful)
	r.finisher = newGather(r.pg, MaxGathered, r.commitEnds)
}

// Stop ends shared commits. No call is under way any more.
func (r *Room) Stop() {
	if r.plain != nil {
		r.plain.Close()
		r.careful.Close()
		r.finisher.Close()
		r.blocked.going.Wait()
	}
}

// MaxGathered bounds the rows of one shared commit.
const MaxGathered = 4096

// A message to the server has room for a gigabyte, and a commit of many callers
// should be far from that. What they bring is weighed in rows: a job whose
// arguments or result are large counts as several.
const BytesOfRow = 4 << 10

func WeightOf(d *job.Draft) int { return 1 + (len(d.Args)+len(d.HeaderBytes))/BytesOfRow }

func WeightOfEnd(e *job.End) int {
	rows, bytes := 1, len(e.Result)+len(e.Reason)+len(e.Failure)
	if e.Then != nil {
		rows += len(e.Then.Drafts)
		bytes += e.Then.Weight()
	}
	if e.Progress != nil {
		bytes += len(e.Progress.Note)
	}
	for i := range e.Logs {
		bytes += len(e.Logs[i].Text)
	}
	return rows + bytes/BytesOfRow
}

// portion is how many of the items go into one commit, at least one, and what
// they weigh.
func portion[T any](items []T, weigh func(*T) int) (n, weight int) {
	for n < len(items) {
		w := weigh(&items[n])
		if n > 0 && weight+w > MaxGathered {
			break
		}
		weight += w
		n++
	}
	return n, weight
}

// loading is what a load may take beyond the time that every call has.
func loading(weight int) time.Duration { return time.Duration(weight) * time.Millisecond }

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
