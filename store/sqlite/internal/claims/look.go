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
	from  Places
	room  int64 // bytes that are left

	lanes   [job.MaxPriority + 1]*lane
	taken   int
	bounded bool
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
}

// position is a place in the order of a lane.
type position struct {
	due int64
	id  job.ID
}

// readyAfter lists ready jobs of one priority, behind a place in their order.
//   - pawl_job_ready, in its order.
var readyAfter = "SELECT " + jobs.TakenRow.Columns + `
	FROM pawl_job INDEXED BY pawl_job_ready
	WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND due <= ? AND (due, id) > (?, ?)
	ORDER BY due, id`

// Where a look finds what it decides by.
var (
	atID           = jobs.TakenRow.At("id")
	atDue          = jobs.TakenRow.At("due")
	atRescues      = jobs.TakenRow.At("rescues")
	atVersion      = jobs.TakenRow.At("version")
	atQueue        = jobs.TakenRow.At("queue")
	atKind         = jobs.TakenRow.At("kind")
	atCapabilities = jobs.TakenRow.At("capabilities")
)

// Each lane has a statement of its own, because several are open at once.
var laneQueries = func() (texts [job.MaxPriority + 1]string) {
	for p := range texts {
		texts[p] = readyAfter + " -- priority " + string(rune('0'+p))
	}
	return texts
}()

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
		leased = append(leased, store.LeasedJob{})
		j := &leased[len(leased)-1].Job
		jobs.TakenRow.Read(lane.q, j)
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
			if err := l.open(p); err != nil {
				return 0, err
			}
		}
		lane := l.lanes[p]
		if lane.row && lane.rescued && l.taken >= l.queue.Start { // it was found while there were slots
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

func (l *look) open(p int) error {
	from := l.from[laneName{l.queue.Queue, p}]
	if from.since > l.Now || from.at.due > l.Now {
		from = front{} // the clock was set back: new jobs come in front of this place
	}
	lane := &lane{place: from, passed: from.at, bound: 1000 + 10*l.queue.Limit}
	lane.q = l.On(laneQueries[p]).Text(l.queue.Queue).Int(int64(p)).Int(l.Now).Int(from.at.due).Blob(from.at.id[:])
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
		if err == nil && l.claim.Offer.Takes(lane.q.ColText(atKind), int(lane.q.ColInt(atVersion)), needs) &&
			!(lane.rescued && l.taken >= l.queue.Start) {
			lane.row = true
			return nil
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
		l.from.leave(laneName{l.queue.Queue, p}, lane, l.Now)
	}
}
