package pawl

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
)

// Then hands a job to the end of this run: it is accepted in the commit that makes
// the run's job done, also where that is the handler's own transaction, or not at
// all (J33). It costs no commit of its own. A run that fails, is put off or loses
// its lease leaves nothing behind: the next one says it again. At most 1,000 a
// run; the engine's Enqueue hook sees each. It comes before Tx.Finish, and before the
// handler returns: a run that has ended hands nothing over. Where a unique key is
// held by another job, nothing is added, and the id is of no job.
func (i *Info) Then(args Args, opts ...EnqueueOption) (ID, error) {
	if i.says == nil {
		return ID{}, job.Invalid("job", "made by hand", "must be one that a handler was given")
	}
	drafts, end, err := i.engine.drafts(i.says.within(), []Item{{args, opts}})
	if err != nil {
		return ID{}, err
	}
	id, err := i.handOver(&drafts[0])
	end(err)
	return id, err
}

// handOver keeps a draft for the end of the run.
func (i *Info) handOver(d *job.Draft) (ID, error) {
	i.says.thenMu.Lock()
	defer i.says.thenMu.Unlock()
	if i.says.ended || i.task.Ends() {
		return ID{}, job.Invalid("job", "finished", "must not be: say it before Tx.Finish, and before the handler returns")
	}
	if i.says.then == nil {
		i.says.then = &job.FollowUps{}
	}
	list := &i.says.then.Drafts
	if len(*list) >= job.MaxFollowUps {
		return ID{}, job.Invalid("follow-ups", len(*list)+1, fmt.Sprintf("must be at most %d in a run", job.MaxFollowUps))
	}
	if !d.Resend { // it has no id of its own choosing
		d.ID = job.FollowUpID(i.ID, i.Run, i.task.Job.Started, len(*list))
	}
	*list = append(*list, *d)
	return d.ID, nil
}

// enter notes the context of the handler, with what middleware has put into it.
func (s *says) enter(ctx context.Context) {
	s.thenMu.Lock()
	defer s.thenMu.Unlock()
	s.ctx = ctx
}

// within is the context of the handler.
func (s *says) within() context.Context {
	s.thenMu.Lock()
	defer s.thenMu.Unlock()
	return s.ctx
}

// end makes what was handed over all there is.
func (s *says) end() *job.FollowUps {
	s.thenMu.Lock()
	s.ended = true
	s.thenMu.Unlock()
	return s.followUps()
}

// followUps are what the handler has handed to its end so far; nil for none.
func (s *says) followUps() *job.FollowUps {
	s.thenMu.Lock()
	defer s.thenMu.Unlock()
	if s.then == nil {
		return nil
	}
	return &job.FollowUps{Drafts: s.then.Drafts[:len(s.then.Drafts):len(s.then.Drafts)]}
}
