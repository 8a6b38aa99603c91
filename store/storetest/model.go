package storetest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// model is what a store should be, as plain maps. Its rules are written from the
// design and share nothing with the stores or with the deciders of package job:
// where the two agree, two writers understood the same words alike.
type model struct {
	now      moment
	jobs     map[job.ID]*modelJob // live and archived
	graves   map[job.ID]moment    // ids that are not kept, and until when
	unique   map[string]holder
	workers  []modelWorker
	paused   map[string]bool
	limits   map[string]modelLimit // of queues
	heads    map[modelKey]job.ID   // taken last, where jobs run in order
	registry int                   // one more than how often the workers that share totals have changed
}

// moment is a time of the model: whole ticks that programs move the clock by,
// then the number of the operation that read it. Real time passes far less than
// a tick in a whole program, so later operations have later times and no
// program depends on how fast it runs.
type moment struct{ tick, operation int }

func (m moment) after(n moment) bool {
	return m.tick > n.tick || m.tick == n.tick && m.operation > n.operation
}
func (m moment) add(ticks int) moment { return moment{m.tick + ticks, m.operation} }

// modelJob is one job.
type modelJob struct {
	id                          job.ID
	queue, kind, owner          string // owner is its key
	version, priority, attempts int
	state                       job.State
	created, due                moment
	deadline                    *moment
	key                         string // of uniqueness; empty means none
	period                      int    // ticks

	run, seq                     int64
	used, lost, rescues, snoozes int
	deferred                     int
	worker                       int
	begun, asked                 bool
	failures                     []string
	reason, result               string
	wait                         job.Wait

	finished, expires moment
}

// holder is who has a unique key, and until when; nil while it lives.
type holder struct {
	id    job.ID
	until *moment
}

type modelWorker struct {
	beat       moment
	lost, gone bool
	seq        int64
	queues     []string
	totals     []store.Total
	split      int // the registry's version that its last beat stored; 0 while it does not share
	told       int // and the one it was told in answer
}

func (w modelWorker) live() bool { return !w.lost && !w.gone }

// The numbers that the model and the stores it is compared with are set up with.
const (
	modelMaxLost   = 2
	modelLostAfter = 3      // ticks
	modelGrave     = 24 * 6 // ticks of ten minutes in a day
	modelKeepDone  = 4
	modelKeepDead  = 8
	modelKeepRest  = 6
	neverKept      = -1
)

func newModel() *model {
	return &model{registry: 1, jobs: map[job.ID]*modelJob{}, graves: map[job.ID]moment{}, unique: map[string]holder{}, paused: map[string]bool{},
		limits: map[string]modelLimit{}, heads: map[modelKey]job.ID{}}
}

// forgets reports whether a queue keeps nothing.
func forgets(queue string) bool { return strings.HasPrefix(queue, "c") }

// kept is how many ticks a job is kept after its end.
func kept(queue string, s job.State) int {
	if forgets(queue) {
		return neverKept
	}
	switch s {
	case job.Done:
		return modelKeepDone
	case job.Dead:
		return modelKeepDead
	}
	return modelKeepRest
}

// enqueue accepts one draft.
func (m *model) enqueue(d modelDraft) job.Receipt {
	_, buried := m.graves[d.id]
	if m.jobs[d.id] != nil || buried {
		return job.Receipt{ID: d.id, Duplicate: true}
	}
	if d.key != "" {
		if h, ok := m.unique[d.key]; ok && (h.until == nil || h.until.after(m.now)) {
			return job.Receipt{ID: h.id, Duplicate: true}
		}
		m.unique[d.key] = holder{id: d.id}
	}
	j := &modelJob{
		id: d.id, queue: d.queue, kind: d.kind, owner: d.owner, version: d.version, priority: d.priority, attempts: d.attempts,
		state: job.Waiting, created: m.now, due: m.now.add(d.in), key: d.key, period: d.period, worker: -1,
	}
	if d.at != nil {
		j.due = moment{tick: *d.at}
	}
	if m.now.after(j.due) {
		j.due = m.now
	}
	if d.deadline != nil {
		j.deadline = &moment{tick: *d.deadline}
	}
	m.jobs[d.id] = j
	return job.Receipt{ID: d.id}
}

// beginAtOnce lets a draft that was just accepted begin, if it asks for that and may.
func (m *model) beginAtOnce(d modelDraft) bool {
	j := m.jobs[d.id]
	if d.beginner == 0 || d.outdated || !m.workers[d.beginner-1].live() || j.run > 0 {
		return false
	}
	j.state, j.worker, j.run = job.Running, d.beginner-1, 1
	return true
}

// claim gives ready jobs to a worker; false when it is lost.
func (m *model) claim(w int, seq int64, queues []store.QueueClaim, offer job.Offer) ([]*modelJob, bool) {
	worker := &m.workers[w]
	if !worker.live() {
		return nil, false
	}
	var taken []*modelJob
	if seq <= worker.seq {
		for _, j := range m.jobs {
			if j.state == job.Running && j.worker == w && j.seq == seq {
				taken = append(taken, j)
			}
		}
		return taken, true
	}
	worker.seq = seq
	for _, q := range queues {
		if m.paused[q.Queue] {
			continue
		}
		n := 0
		jobs := m.ready(q.Queue, offer)
		if l, limited := m.limits[q.Queue]; limited {
			jobs = m.through(q.Queue, l, offer)
		}
		for _, j := range jobs {
			if n == q.Limit {
				break
			}
			if n >= q.Start && j.rescues > 0 {
				continue
			}
			n++
			j.state, j.worker, j.seq = job.Running, w, seq
			j.run++
			taken = append(taken, j)
		}
	}
	return taken, true
}

// ready lists what a worker may take from a queue, the first to take first.
func (m *model) ready(queue string, offer job.Offer) []*modelJob {
	var list []*modelJob
	for _, j := range m.jobs {
		newest, known := offer.Kinds[j.kind]
		if j.state == job.Waiting && j.queue == queue && !j.due.after(m.now) && known && j.version <= newest {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *modelJob) int {
		switch {
		case a.priority != b.priority:
			return a.priority - b.priority
		case a.due != b.due && a.due.after(b.due):
			return 1
		case a.due != b.due:
			return -1
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	return list
}

// holds finds the job of a run that the worker owns.
func (m *model) holds(w int, id job.ID, run int64) *modelJob {
	j := m.jobs[id]
	if j == nil || j.state != job.Running || j.worker != w || j.run != run {
		return nil
	}
	return j
}

// begin marks runs as begun.
func (m *model) begin(w int, runs []store.RunRef) {
	for _, r := range runs {
		if j := m.holds(w, r.ID, r.Run); j != nil {
			j.begun = true
		}
	}
}

// finish ends one run.
func (m *model) finish(w int, e modelEnd) job.Verdict {
	j := m.holds(w, e.id, e.run)
	switch {
	case j == nil && e.again && m.workers[w].live():
		return job.Already
	case j == nil:
		return job.Stale
	}
	if e.failure != "" {
		j.used++
		j.fail(e.failure)
	}
	if e.snooze {
		j.snoozes++
	}
	if e.deferred {
		j.deferred++
	}
	m.leave(j, e.to, e.delay, e.reason, e.result)
	if j.state == job.Suspended {
		j.wait = e.wait
	}
	return job.Applied
}

func (j *modelJob) fail(message string) {
	j.failures = append(j.failures, message)
	if len(j.failures) > 32 {
		j.failures = j.failures[1:]
	}
}

// leave moves a job out of running. Who was asked to stop does not wait again.
func (m *model) leave(j *modelJob, to job.State, delay int, reason, result string) {
	if j.asked && (to == job.Waiting || to == job.Suspended) {
		to, reason = job.Cancelled, "cancelled"
	}
	j.seq, j.begun, j.reason = 0, false, reason
	switch to {
	case job.Waiting:
		j.state, j.worker, j.due = to, -1, m.now.add(delay)
	case job.Suspended:
		j.state, j.worker = to, -1
	default:
		m.end(j, to, result)
	}
}

// end makes a job final. One that ran stays with the worker that ran it.
func (m *model) end(j *modelJob, to job.State, result string) {
	j.state, j.asked, j.result, j.finished, j.wait = to, false, result, m.now, job.NoWait
	j.deferred = 0
	if j.key != "" {
		if j.period > 0 {
			until := m.now.add(j.period)
			m.unique[j.key] = holder{j.id, &until}
		} else {
			delete(m.unique, j.key)
		}
	}
	ticks := kept(j.queue, to)
	if ticks < 0 {
		m.bury(j)
		return
	}
	j.expires = m.now.add(ticks)
}

func (m *model) bury(j *modelJob) {
	delete(m.jobs, j.id)
	m.graves[j.id] = m.now.add(modelGrave)
}
