package claims

import (
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "gate", Key: []string{"namespace", "gate"}, Expiry: table.Expiry{Own: "its job has ended and its tokens are all there"}},
}

// Room leases ready jobs to workers.
type Room struct {
	pg        *pg.DB
	hints     *hints.Room
	workers   *workers.Room
	jobs      *jobs.Room
	meets     *Meets
	Frontiers frontiers
	regating  regating
	skims     skims
	gates     struct {
		sync.Mutex
		turns map[string]*gateTurns // by the fingerprint of an offer
	}
}

// Due is what the room asks with the look for what is due: whether jobs wait behind gates,
// and whether something is remembered of them.
var Due = []jobs.Ask{
	{
		Text: `SELECT 1
	FROM pawl.job
	WHERE namespace = $1 AND state = 2 AND gate IS NOT NULL AND queue > ''
	ORDER BY queue
	LIMIT 1`,
		Set:     func(d *store.Due, due bool) { d.Gates = d.Gates || due },
		Indexes: []string{"job_gated"},
	},
	{
		Text: `SELECT 1
	FROM pawl.gate
	WHERE namespace = $1
	ORDER BY gate
	LIMIT 1`,
		Set:     func(d *store.Due, due bool) { d.Gates = d.Gates || due },
		Indexes: []string{"gate_pkey"},
	},
}

// New makes it, and lets hints lower its frontiers.
func New(db *pg.DB, h *hints.Room, workers *workers.Room, jobs *jobs.Room, meets *Meets) *Room {
	s := &Room{pg: db, hints: h, workers: workers, jobs: jobs, meets: meets}
	s.Frontiers.guess = &s.pg.Clock
	s.hints.Register(hints.Frontier{Lower: s.lower, Front: s.Frontiers.Lower, Note: s.note, Wake: s.wake, Drop: s.drop})
	return s
}

// lower makes the next looks begin at a due time, or before.
func (r *Room) lower(queue string, priority int, due time.Time) {
	r.Frontiers.Lower(queue, priority, due)
	r.hintGates(queue, priority, due)
}

// wake makes the next look at a queue a whole one.
func (r *Room) wake(queue string) {
	r.Frontiers.wake(queue)
	r.eachTurns(func(t *gateTurns) { t.Stale(queue) })
}

// drop forgets everything.
func (r *Room) drop() {
	r.Frontiers.Drop()
	r.eachTurns((*gateTurns).Drop)
}
