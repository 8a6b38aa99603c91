package webui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// listed is one page of jobs.
type listed struct {
	Jobs    []pawl.JobRecord
	Next    string // place of the page behind it; empty: there is none
	Stopped bool   // it ended at a bound: others may match
	Looked  int    // rows that were read to find them, where that is more than the page
	Took    time.Duration
}

// Bounds of what one page of a list costs.
const (
	searchRows  = 20_000 // that text is looked for in, unless patience ends before
	mergeQueues = 12     // whose jobs are merged by due time
)

// list reads a page. Jobs by due time come from one index for each queue: where the list is of all, those of a few queues are merged.
func (a *app) list(ctx context.Context, q *jobsQuery, l *look, now time.Time, after string, size int) (*listed, error) {
	began := time.Now()
	f := q.filter(now)
	if err := f.Check(); err != nil {
		return nil, err
	}
	var out *listed
	var err error
	switch {
	case q.Order == store.ByDue && q.Queue == "":
		if queues := waiting(l); len(queues) <= mergeQueues {
			out, err = a.merge(ctx, q, f, queues, after, size)
		} else {
			q.Order = store.ByID
			out, err = a.search(ctx, q, f, after, size)
		}
	default:
		out, err = a.search(ctx, q, f, after, size)
	}
	if err != nil {
		return nil, err
	}
	out.Took = time.Since(began)
	return out, nil
}

// waiting are the queues in which jobs wait.
func waiting(l *look) (names []string) {
	if l == nil {
		return nil
	}
	for i := range l.Queues {
		if q := &l.Queues[i]; q.Ready.Jobs+q.Scheduled.Jobs > 0 {
			names = append(names, q.Name)
		}
	}
	return names
}

// matches looks at what the store cannot.
func (q *jobsQuery) matches(j *pawl.JobRecord, hidden bool) bool {
	if q.View == "retries" && j.Failures.None() {
		return false
	}
	if q.Text == "" {
		return true
	}
	text := strings.ToLower(q.Text)
	if last, ok := j.Failures.Last(); ok && strings.Contains(strings.ToLower(last.Message), text) {
		return true
	}
	return strings.Contains(strings.ToLower(j.Reason), text) || !hidden && strings.Contains(strings.ToLower(string(j.Args)), text)
}

// search reads pages until one is full, or a bound is reached.
func (a *app) search(ctx context.Context, q *jobsQuery, f pawl.Filter, after string, size int) (*listed, error) {
	out := &listed{}
	page := pawl.Page{Limit: size, Order: q.Order, After: readPlace(after)}
	if q.Text != "" || q.View == "retries" {
		page.Limit = store.MaxPage
	}
	end := time.Now().Add(a.opts.Patience)
	for visited := 0; ; {
		found, err := a.e.List(ctx, f, page)
		if err != nil {
			return nil, err
		}
		if visited += len(found.Jobs); found.Stopped {
			visited += store.MaxWalked // rows that it has looked at in vain
		}
		for i := range found.Jobs {
			j := &found.Jobs[i]
			out.Looked++
			if !q.matches(j, q.hidden) {
				continue
			}
			out.Jobs = append(out.Jobs, *j)
			if len(out.Jobs) == size && (i+1 < len(found.Jobs) || found.More) {
				out.Next = place(found.Order.Bookmark(j))
				if i+1 == len(found.Jobs) {
					out.Next = place(found.Next)
				} else if found.Order != page.Order || found.Next.Part != 0 { // within a part of a list that is split
					mark := found.Order.Bookmark(j)
					mark.Part, mark.Below, mark.Beyond = found.Next.Part, found.Next.Below, found.Next.Beyond
					out.Next = place(mark)
				}
				return out, nil
			}
		}
		if !found.More {
			return out, nil
		}
		if page.After = found.Next; visited >= searchRows || time.Now().After(end) || found.Stopped && q.Text == "" && len(out.Jobs) > 0 {
			out.Stopped, out.Next = true, place(found.Next)
			return out, nil
		}
	}
}

// merge is a page by due time over some queues. The place is one for all of them: a due time and an id.
func (a *app) merge(ctx context.Context, q *jobsQuery, f pawl.Filter, queues []string, after string, size int) (*listed, error) {
	out := &listed{}
	var all []pawl.JobRecord
	more := false
	var bound pawl.Bookmark // behind the nearest end of a queue's page nothing is known
	for _, name := range queues {
		one := f
		one.Queue = name
		page := pawl.Page{Limit: size + 1, Order: store.ByDue, After: readPlace(after)}
		if q.View == "retries" || q.Text != "" {
			page.Limit = 500
		}
		found, err := a.e.List(ctx, one, page)
		if err != nil {
			return nil, err
		}
		out.Looked += len(found.Jobs)
		for i := range found.Jobs {
			if q.matches(&found.Jobs[i], q.hidden) {
				all = append(all, found.Jobs[i])
			}
		}
		if found.More && len(found.Jobs) > 0 {
			more = true
			end := store.ByDue.Bookmark(&found.Jobs[len(found.Jobs)-1])
			if bound.Begins() || store.ByDue.Compare(end, bound) < 0 {
				bound = end
			}
		}
	}
	slices.SortFunc(all, func(x, y pawl.JobRecord) int {
		return store.ByDue.Compare(store.ByDue.Bookmark(&x), store.ByDue.Bookmark(&y))
	})
	if more {
		all = slices.DeleteFunc(all, func(j pawl.JobRecord) bool { return store.ByDue.Compare(store.ByDue.Bookmark(&j), bound) > 0 })
	}
	if len(all) > size {
		all, more = all[:size], true
		bound = store.ByDue.Bookmark(&all[size-1])
	}
	if out.Jobs = all; more {
		out.Next, out.Stopped = place(bound), len(all) < size
	}
	return out, nil
}
