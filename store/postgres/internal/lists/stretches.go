package lists

import (
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// of says which stretches of which index a filter needs, in any order.
//
// Live jobs: what waits is found by its queue on job_ready, what runs by its
// worker on job_held, what is suspended or blocked on job_idle. Archived jobs: by
// state and queue on job_archive_state, queue after queue where none is named.
// Where nothing of that is asked for, the table itself is read by its key.
func (r *Room) of(f store.Filter) (list []stretch) {
	live, archived := f.Reads()
	for _, state := range live {
		s := r.live(f)
		s.state = state
		switch {
		case state == 0:
		case state == job.Waiting && f.Queue == "":
			s.match = append(s.match, when("state = 2"))
		case state == job.Waiting:
			list = append(list, r.gated(f))
			s = r.waiting(f)
		case state == job.Running:
			s = r.running(f)
		default:
			s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
			s.index = "id DESC"
			s.match = append(s.match, inQueue(f)...)
		}
		list = append(list, s)
	}
	for _, state := range archived {
		list = append(list, r.ended(f, state))
	}
	return list
}

func (r *Room) here() condition { return when("namespace = %s", r.pg.Namespace) }

// live is the live jobs, to be walked by their key.
func (r *Room) live(f store.Filter) stretch {
	return stretch{table: "pawl.job", columns: jobs.LiveColumns, where: []condition{r.here()}, match: narrow(f, true)}
}

// waiting is the waiting jobs of a queue, in the order of job_ready. Those of a list
// by id are few, else it is split.
func (r *Room) waiting(f store.Filter) stretch {
	s := r.live(f)
	s.state = job.Waiting
	s.where = append(s.where, when("state = 2 AND gate IS NULL AND queue = %s", f.Queue))
	s.unsorted, s.index = true, "priority, due, id"
	return s
}

// gated is the jobs of a queue that wait behind gates, in the order of job_gated.
func (r *Room) gated(f store.Filter) stretch {
	s := r.live(f)
	s.state = job.Waiting
	s.where = append(s.where, when("state = 2 AND gate IS NOT NULL AND queue = %s", f.Queue))
	s.unsorted, s.index = true, "gate, priority, due, id"
	return s
}

// running is the running jobs, in the order of job_held. Those of a list by id are
// few, else it is split.
func (r *Room) running(f store.Filter) stretch {
	s := r.live(f)
	s.state = job.Running
	s.where = append(s.where, when("state = 3"))
	if f.Worker != 0 {
		s.where = append(s.where, when("worker >= %[1]s AND worker <= %[1]s", int64(f.Worker))) // as queueIs
	}
	s.match = append(s.match, inQueue(f)...)
	s.unsorted, s.index = true, "worker, claim"
	return s
}

// archived is the jobs that have ended, to be walked by their key.
func (r *Room) archived(f store.Filter) stretch {
	return stretch{table: "pawl.job_archive", columns: jobs.ArchivedColumns, where: []condition{r.here()}, match: narrow(f, false)}
}

// ended is the jobs that ended in one way, in the order of job_archive_state; 0 is
// all of them, by their key.
func (r *Room) ended(f store.Filter, state job.State) stretch {
	s := r.archived(f)
	if s.state = state; state == 0 {
		return s
	}
	s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
	s.prefix, s.index = "queue DESC, ", "queue DESC, id DESC"
	if f.Queue == "" {
		s.by = "queue"
	} else {
		s.where = append(s.where, when(queueIs("%[1]s"), f.Queue))
	}
	return s
}

func inQueue(f store.Filter) []condition {
	if f.Queue == "" {
		return nil
	}
	return []condition{when("queue = %s", f.Queue)}
}
