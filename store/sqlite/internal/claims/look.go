package claims

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// look is one queue's part of a claim: it steps through the ready jobs of each
// priority in order and takes what the worker can run.
type look struct {
	*jobs.Transition
	claim *store.Claim
	queue *store.QueueClaim
	gate  int64 // behind which it looks; zero: at jobs that have none
	from  Places
	room  int64 // bytes that are left
	// allow says whether the bounds beside its gate's own have room for a job, which
	// it is given then; nil: there are none.
	allow func(kind, key string) bool
	// ordered: what cannot be taken is not passed.
	ordered bool
	// strangers: only they are looked for. What bounds the others is not known.
	strangers bool

	lanes   [job.MaxPriority + 1]*lane
	next    int // behind a gate, nothing waits of a priority that is lower, unless it has a lane
	taken   int
	bounded bool
	gated   []gatedJob // that have to go behind a gate
}

// gatedJob is a job that was met where it does not wait by the rules.
type gatedJob struct {
	id        job.ID
	gate      int64 // where it does; zero: in front of gates
	kind, key string
}

// misplaced says where the row that a lane stands on has to wait, if that is not here.
func (l *look) misplaced(q *lite.Query) (gate int64, is bool) {
	if l.claim.Gates == nil {
		return 0, false
	}
	gate = l.claim.Gates.Gate(l.queue.Queue, q.ColText(atKind), q.ColText(atKey))
	return gate, gate != l.gate
}

// moveToGate puts a job that waits behind a gate, or in front of them, by primary key.
const moveToGate = `UPDATE pawl_job
	SET gate = ?
	WHERE namespace = ? AND id = ? AND state = 2`

// putRight moves what was met in the wrong place to the right one. All rows are read by
// then: changing an index while stepping through it would show rows twice.
func (l *look) putRight() error {
	for _, g := range l.gated {
		if err := l.Query(moveToGate).IntOrNull(g.gate).Int(l.Namespace).Blob(g.id[:]).Exec(); err != nil {
			return err
		}
	}
	return nil
}

// lane is the ready jobs of one priority, in order. The statement is stepped
// only as far as jobs are needed.
type lane struct {
	q       *lite.Query
	place   front // where the look began
	skipped int   // rows this worker cannot run
	bound   int
	passed  position // the last row that was taken or skipped
	head    position // the row that q stands on, when row is set
	row     bool     // q stands on a row that the worker can run
	rescued bool     // and which was taken back from a lost worker before
	refused bool     // a job was left that this worker takes: another bound has no room, or it may only start
	blocked bool     // q stands on a row that nobody behind it may pass
}

// position is a place in the order of a lane.
type position struct {
	due int64
	id  job.ID
}

// What lists ready jobs of one priority, behind a place in their order: those
// without a gate, and those behind one.
//   - pawl_job_ready, in its order; pawl_job_gated in its.
var (
	readyAfter = "SELECT " + jobs.TakenRow.Columns + `
	FROM pawl_job INDEXED BY pawl_job_ready
	WHERE namespace = ? AND state = 2 AND gate IS NULL
		AND queue = ? AND priority = ? AND due <= ? AND (due, id) > (?, ?)
	ORDER BY due, id`

	gatedAfter = "SELECT " + jobs.TakenRow.Columns + `
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL
		AND queue = ? AND priority = ? AND due <= ? AND (due, id) > (?, ?) AND gate = ?
	ORDER BY due, id`
)

// Where a look finds what it decides by.
var (
	atID           = jobs.TakenRow.At("id")
	atDue          = jobs.TakenRow.At("due")
	atRescues      = jobs.TakenRow.At("rescues")
	atVersion      = jobs.TakenRow.At("version")
	atQueue        = jobs.TakenRow.At("queue")
	atKind         = jobs.TakenRow.At("kind")
	atKey          = jobs.TakenRow.At(`"key"`)
	atCapabilities = jobs.TakenRow.At("capabilities")
)

// Each lane has a statement of its own, because several are open at once.
var readyLanes, gatedLanes = laneQueries(readyAfter), laneQueries(gatedAfter)

func laneQueries(text string) (texts [job.MaxPriority + 1]string) {
	for p := range texts {
		texts[p] = text + " -- priority " + string(rune('0'+p))
	}
	return texts
}

// take appends the jobs of one queue, up to its limit, in the order of their
// priority, or of their shifted due times when the queue ages.
func (l *look) take(leased []store.LeasedJob) ([]store.LeasedJob, error) {
	defer l.close()
	for l.taken < l.queue.Limit {
		if l.room <= 0 {
			l.bounded = true
			return leased, nil
		}
		p, err := l.first()
		if err != nil || p == 0 {
			return leased, err
		}
		lane := l.lanes[p]
		if lane.blocked {
			lane.refused = true
			return leased, nil
		}
		if l.allow != nil && !l.allow(lane.q.ColText(atKind), lane.q.ColText(atKey)) {
			if lane.refused = true; l.ordered {
				return leased, nil
			}
			if err := l.advance(lane); err != nil {
				return leased, err
			}
			if lane.skipped++; lane.skipped >= lane.bound {
				l.bounded = true
				return leased, nil
			}
			continue
		}
		leased = append(leased, store.LeasedJob{})
		j := &leased[len(leased)-1].Job
		jobs.TakenRow.Read(lane.q, j)
		if l.gate != 0 {
			j.Rarely().Gate = l.gate
		}
		l.room -= jobs.Large(j)
		l.taken++
		if err := l.advance(lane); err != nil {
			return leased, err
		}
	}
	return leased, nil
}

// first is the priority whose next job comes first; 0 when there is none.
func (l *look) first() (int, error) {
	best, bestAt := 0, int64(0)
	for p := job.MinPriority; p <= job.MaxPriority; p++ {
		if l.lanes[p] == nil {
			if p < l.next {
				continue // nothing waits there
			}
			if l.gate != 0 {
				if err := l.skip(p); err != nil {
					return 0, err
				}
				if p < l.next {
					continue
				}
			}
			if err := l.open(p); err != nil {
				return 0, err
			}
		}
		lane := l.lanes[p]
		if lane.row && !lane.blocked && lane.rescued && l.taken >= l.queue.Start { // it was found while there were slots
			if lane.refused = true; l.ordered {
				return 0, nil
			}
			if err := l.advance(lane); err != nil {
				return 0, err
			}
		}
		if !lane.row {
			continue
		}
		if l.queue.Aging <= 0 {
			return p, nil
		}
		if at := lane.head.due + int64(p)*l.queue.Aging.Microseconds(); best == 0 || at < bestAt {
			best, bestAt = p, at
		}
	}
	return best, nil
}

// nextPriority is the first of which something waits behind a gate.
//   - A seek on pawl_job_gated.
const nextPriority = `SELECT priority
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ? AND gate = ? AND priority >= ?
	ORDER BY priority
	LIMIT 1`

// skip finds the next priority of which something waits: there are many gates, and most
// have jobs of one.
func (l *look) skip(p int) error {
	next, err := l.On(nextPriority).Text(l.queue.Queue).Int(l.gate).Int(int64(p)).One()
	if err != nil {
		return err
	}
	if l.next = int(next); next == 0 {
		l.next = job.MaxPriority + 1
	}
	return nil
}

func (l *look) name(p int) laneName { return laneName{l.queue.Queue, l.gate, p} }

func (l *look) open(p int) error {
	from := l.from[l.name(p)]
	if from.since > l.Now || from.at.due > l.Now {
		from = front{} // the clock was set back: new jobs come in front of this place
	}
	lane := &lane{place: from, passed: from.at, bound: 1000 + 10*l.queue.Limit}
	text := readyLanes[p]
	if l.gate != 0 {
		text = gatedLanes[p]
	}
	lane.q = l.On(text).Text(l.queue.Queue).Int(int64(p)).Int(l.Now).Int(from.at.due).Blob(from.at.id[:])
	if l.gate != 0 {
		lane.q.Int(l.gate)
	}
	l.lanes[p] = lane
	return l.advance(lane)
}

// advance steps to the lane's next job that this worker can run now. A job
// that was rescued before is only taken to start at once: were it prefetched,
// it could die again without having begun.
func (l *look) advance(lane *lane) error {
	if lane.row {
		lane.passed, lane.row = lane.head, false
	}
	for lane.q.Step() {
		lane.head = position{due: lane.q.ColInt(atDue), id: lane.q.ColID(atID)}
		// One whose needs cannot be read is for nobody, and the jobs behind it go on (P8).
		needs, err := jobs.ParseWords(lane.q.ColText(atCapabilities))
		lane.rescued = lane.q.ColInt(atRescues) > 0
		if gate, is := l.misplaced(lane.q); is {
			l.gated = append(l.gated, gatedJob{lane.head.id, gate, lane.q.ColText(atKind), lane.q.ColText(atKey)})
		} else if !l.strangers {
			takes := err == nil && l.claim.Offer.Takes(lane.q.ColText(atKind), int(lane.q.ColInt(atVersion)), needs)
			late := lane.rescued && l.taken >= l.queue.Start
			lane.refused = lane.refused || takes && late
			if lane.blocked = l.ordered && (!takes || late); lane.blocked || takes && !late {
				lane.row = true
				return nil
			}
		}
		lane.passed = lane.head
		if lane.skipped++; lane.skipped >= lane.bound {
			l.bounded = true
			return nil
		}
	}
	if err := lane.q.Err(); err != nil {
		return err
	}
	lane.passed = position{} // the end: the next look starts in front
	return nil
}

// close ends the statements and leaves behind where the next look goes on.
func (l *look) close() {
	for p, lane := range l.lanes {
		if lane == nil {
			continue
		}
		_ = lane.q.Done()
		l.from.leave(l.name(p), lane, l.Now)
	}
}
