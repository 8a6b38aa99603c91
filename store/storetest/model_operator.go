package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// What people and upkeep do to the model.

func (m *model) cancel(id job.ID) store.Change {
	j := m.jobs[id]
	switch {
	case j == nil:
		return store.NotFound
	case j.state.Final():
		return store.Ended
	case j.state == job.Running:
		j.asked = true
		return store.Asked
	}
	j.reason = "cancelled"
	m.end(j, job.Cancelled, "")
	return store.Changed
}

func (m *model) retry(id job.ID) store.Change {
	j := m.jobs[id]
	switch {
	case j == nil:
		return store.NotFound
	case j.state == job.Done:
		return store.Ended
	case j.state == job.Running:
		return store.Active
	case j.state == job.Waiting:
		if !j.due.after(m.now) {
			return store.Active
		}
		j.due = m.now
		return store.Changed
	case j.state == job.Suspended && j.wait != job.Parked:
		return store.Active // it waits for something else
	case j.state == job.Suspended:
		j.state, j.due, j.used, j.reason, j.wait = job.Waiting, m.now, 0, "", job.NoWait
		return store.Changed
	}
	if j.key != "" {
		if h, ok := m.unique[j.key]; ok && h.id != id && (h.until == nil || h.until.after(m.now)) {
			return store.Duplicate
		}
		m.unique[j.key] = holder{id: id}
	}
	j.state, j.due, j.used, j.lost, j.reason, j.result = job.Waiting, m.now, 0, 0, "", ""
	j.finished, j.expires, j.worker = moment{}, moment{}, -1
	if j.deadline != nil && !j.deadline.after(m.now) {
		j.deadline = nil // else the retry would end at once
	}
	return store.Changed
}

func (m *model) delete(id job.ID) store.Change {
	j := m.jobs[id]
	switch {
	case j == nil:
		return store.NotFound
	case j.state == job.Running:
		j.asked = true
		return store.Asked
	}
	if h, ok := m.unique[j.key]; ok && j.key != "" && h.id == id {
		delete(m.unique, j.key)
	}
	m.bury(j)
	return store.Changed
}

// hold gives back what the worker does not know of, and names what it only believes to have.
func (m *model) hold(w int, held []store.RunRef) store.ReportReply {
	var answer store.ReportReply
	believed := map[store.RunRef]bool{}
	for _, r := range held {
		believed[r] = true
		if m.holds(w, r.ID, r.Run) == nil {
			answer.Stale = append(answer.Stale, r)
		}
	}
	for _, j := range m.jobs {
		if j.state == job.Running && j.worker == w && !believed[store.RunRef{ID: j.id, Run: j.run}] {
			answer.Returned++
			m.leave(j, job.Waiting, 0, "", "")
		}
	}
	return answer
}

// lose declares those lost that missed their beats. Who does it has just beaten.
func (m *model) lose(by int) int {
	n := 0
	for i := range m.workers {
		w := &m.workers[i]
		if w.live() && w.beat.after(m.now) { // the clock was set back since
			w.beat = m.now
		}
		if i != by && w.live() && m.now.after(w.beat.add(modelLostAfter)) {
			m.resign(i)
			w.lost = true
			n++
		}
	}
	return n
}

// rescue takes back the runs of lost and absent workers.
func (m *model) rescue() store.RescueReply {
	var answer store.RescueReply
	for id, j := range m.jobs {
		if j.state != job.Running || m.workers[j.worker].live() {
			continue
		}
		j.rescues++
		to, reason := job.Waiting, ""
		if j.begun {
			j.lost++
			j.deferred = 0
			j.fail("the worker was lost while it ran the job")
			if j.lost >= modelMaxLost {
				to, reason = job.Dead, "lost"
			}
		}
		switch {
		case to == job.Dead:
			answer.Dead++
			answer.Deaths = append(answer.Deaths, store.Death{ID: id})
		case j.asked:
			answer.Cancelled++
		default:
			answer.Waiting++
		}
		m.leave(j, to, 0, reason, "")
	}
	answer.Deaths = onlyIDs(answer.Deaths)
	return answer
}

// expire ends what does not run and is past its deadline.
func (m *model) expire() store.ExpireReply {
	var answer store.ExpireReply
	for id, j := range m.jobs {
		if (j.state == job.Waiting || j.state == job.Suspended) && j.deadline != nil && !j.deadline.after(m.now) {
			answer.Dead++
			answer.Deaths = append(answer.Deaths, store.Death{ID: id})
			j.reason = "expired"
			m.end(j, job.Dead, "")
		}
	}
	answer.Deaths = onlyIDs(answer.Deaths)
	return answer
}

// purge forgets what is past its time.
func (m *model) purge() {
	for id, j := range m.jobs {
		if j.state.Final() && !j.expires.after(m.now) {
			delete(m.jobs, id)
		}
	}
	for id, until := range m.graves {
		if !until.after(m.now) {
			delete(m.graves, id)
		}
	}
	for key, h := range m.unique {
		if h.until != nil && !h.until.after(m.now) {
			delete(m.unique, key)
		}
	}
}
