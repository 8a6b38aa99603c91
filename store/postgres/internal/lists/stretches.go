package lists

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
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
			gated := s
			gated.where = append(slices.Clone(s.where), when("state = 2 AND gate IS NOT NULL AND queue = %s", f.Queue))
			gated.unsorted, gated.index = true, "gate, priority, due, id"
			list = append(list, gated)
			s.where = append(s.where, when("state = 2 AND gate IS NULL AND queue = %s", f.Queue))
			s.unsorted, s.index = true, "priority, due, id"
		default:
			s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
			s.unsorted, s.index = state == job.Running, "worker, claim"
			if f.Worker != 0 {
				s.where = append(s.where, when("worker = %s", int64(f.Worker)))
			}
			s.match = append(s.match, inQueue(f)...)
		}
		list = append(list, s)
	}
	for _, state := range archived {
		s := stretch{table: "pawl.job_archive", columns: jobs.ArchivedColumns, state: state, where: []condition{r.here()}, match: narrow(f, false)}
		if state != 0 {
			s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
			s.prefix, s.index = "queue DESC, ", "queue DESC, id DESC"
			if f.Queue == "" {
				s.by = "queue"
			} else {
				s.where = append(s.where, when(queueIs("%[1]s"), f.Queue))
			}
		}
		list = append(list, s)
	}
	return list
}

func (r *Room) here() condition { return when("namespace = %s", r.pg.Namespace) }

// live is the live jobs, to be walked by their key.
func (r *Room) live(f store.Filter) stretch {
	return stretch{table: "pawl.job", columns: jobs.LiveColumns, where: []condition{r.here()}, match: narrow(f, true)}
}

func inQueue(f store.Filter) []condition {
	if f.Queue == "" {
		return nil
	}
	return []condition{when("queue = %s", f.Queue)}
}

// stretches are those of a page: what has no index in its order is sorted where
// it is few, else walked by its id.
func (r *Room) stretches(ctx context.Context, f store.Filter, order store.Order) (list []stretch, err error) {
	if order == store.ByDue {
		return []stretch{r.byDue(f)}, nil
	}
	all, err := r.withQueues(ctx, r.of(f))
	if err != nil {
		return nil, err
	}
	most := store.MaxSorted
	if order == store.ByFinish {
		most = store.MaxWalked
		for i := range all {
			all[i].unsorted = true
		}
	}
	lengths, err := r.lengths(ctx, all, most+1)
	if err != nil {
		return nil, err
	}
	var walked []string
	total := 0
	for i, s := range all {
		total += lengths[i]
		if lengths[i] > most {
			walked = append(walked, strconv.Itoa(int(s.state)))
			continue
		}
		list = append(list, s)
	}
	switch {
	case order == store.ByFinish && total > most:
		return nil, store.TooManyToSort()
	case walked != nil:
		s := r.live(f)
		s.match = append(append(s.match, when("state IN ("+strings.Join(walked, ", ")+")")), inQueue(f)...)
		list = append(list, s)
	}
	return list, nil
}

// byDue is the waiting jobs of a queue, priority after priority, each in the
// order of job_ready.
func (r *Room) byDue(f store.Filter) stretch {
	s := r.live(f)
	s.where = append(s.where, when("state = 2 AND gate IS NULL AND queue = %s", f.Queue))
	if !f.DueBefore.IsZero() {
		s.where = append(s.where, when("due <= %s", f.DueBefore))
	}
	if !f.DueAfter.IsZero() {
		s.where = append(s.where, when("due > %s", f.DueAfter))
	}
	s.each, s.lists, s.by = jobs.Priorities, len(jobs.Priorities), "priority"
	return s
}

// withQueues names the queues of stretches that go queue after queue.
func (r *Room) withQueues(ctx context.Context, list []stretch) (known []stretch, err error) {
	if !slices.ContainsFunc(list, func(s stretch) bool { return s.by != "" }) {
		return list, nil
	}
	names := make([][]string, len(list))
	err = r.pg.Read(ctx, func() []*pg.Statement {
		statements := []*pg.Statement{seek()}
		for i, s := range list {
			if s.by == "" {
				continue
			}
			names[i] = nil
			statements = append(statements, &pg.Statement{Text: queuesOf(s.state), Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
				var name string
				err := scan(&name)
				names[i] = append(names[i], name)
				return err
			}})
		}
		return statements
	})
	for i, s := range list {
		if s.by != "" {
			if names[i] == nil {
				continue
			}
			s.each, s.lists = names[i], len(names[i])
		}
		known = append(known, s)
	}
	return known, err
}

// lengths is how long the stretches are that have to be sorted, up to a bound.
func (r *Room) lengths(ctx context.Context, list []stretch, most int) ([]int, error) {
	lengths := make([]int, len(list))
	if !slices.ContainsFunc(list, func(s stretch) bool { return s.unsorted }) {
		return lengths, nil
	}
	err := r.pg.Read(ctx, func() []*pg.Statement {
		statements := []*pg.Statement{seek()}
		for i, s := range list {
			if !s.unsorted {
				continue
			}
			b := &listing{}
			text := "SELECT count(*)\nFROM (\n\tSELECT *\n\tFROM (\n\t" + b.each(s, b.read(s, "1")) + "\n\t) AS stretch\n\tLIMIT " + b.arg(most) + "\n) AS counted"
			statements = append(statements, &pg.Statement{Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&lengths[i]) }})
		}
		return statements
	})
	return lengths, err
}

// queuesOf steps from queue to queue on job_archive_state: one seek for each.
func queuesOf(state job.State) string {
	return fmt.Sprintf(`WITH RECURSIVE queues AS (
	(
		SELECT queue
		FROM pawl.job_archive
		WHERE namespace = $1 AND state = %[1]d
		ORDER BY queue
		LIMIT 1
	)
	UNION ALL
	SELECT (
		SELECT a.queue
		FROM pawl.job_archive AS a
		WHERE a.namespace = $1 AND a.state = %[1]d AND a.queue > queues.queue
		ORDER BY a.queue
		LIMIT 1
	)
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queue
FROM queues
WHERE queue IS NOT NULL`, state)
}
