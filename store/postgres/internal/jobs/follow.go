package jobs

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Follower is what has to happen together with a move of jobs that have a tie: the
// release of a flow's nodes, an event. It belongs to a later room, which this one
// does not know. Plain jobs are never shown to it.
type Follower struct {
	Tie job.Ties
	// Lock locks what the moves of these jobs will change. It is called before the
	// rows of the jobs are locked, with ascending ids.
	Lock func(ctx context.Context, session pg.Session, ids []job.ID) error
	// Apply does it, in the transaction of the moves and after them.
	Apply func(ctx context.Context, session pg.Session, moves []job.Move) error
	// Leave writes down that it is to be done. It is for moves in a transaction of the
	// user's, where nothing that others share may be locked.
	Leave func(ctx context.Context, session pg.Session, moves []job.Move) error
}

// Follow lets somebody follow. It is called while the store is put together, in the
// order in which followers lock.
func (r *Room) Follow(f Follower) { r.followers = append(r.followers, f) }

// followed is, over the tries of one transition, for which jobs followers lock before
// it does. Which ties a job has is certain only once its row is locked, and then it
// is too late to lock what comes before it: the transaction begins anew, and locks in
// order. Nil is for a transaction of the user's.
type followed struct{ ids map[job.ID]job.Ties }

// errUnfollowed ends a try in which a job turned out to have a tie that nobody has
// locked for.
var errUnfollowed = errors.New("pawl: a job has more beside it than was locked")

// followTries is how often a transaction begins anew. A job gets its ties one by one,
// and most of them before it runs.
const followTries = 4

// transact is pg.Transact for moves: followers lock first.
func (r *Room) transact(ctx context.Context, pool *pg.Pool, l *pg.Limits, f *followed, do func(*pg.Transaction) error) error {
	for range followTries {
		err := r.pg.Transact(ctx, pool, l, func(t *pg.Transaction) error {
			if err := r.lockFirst(ctx, t, f); err != nil {
				return err
			}
			return do(t)
		})
		if !errors.Is(err, errUnfollowed) {
			return err
		}
	}
	return pg.Fault{Err: errUnfollowed, Passing: true}.AsError()
}

// expect notes ties that a job is said to have.
func (r *Room) expect(f *followed, id job.ID, ties job.Ties) {
	for _, o := range r.followers {
		if ties&o.Tie != 0 {
			if f.ids == nil {
				f.ids = map[job.ID]job.Ties{}
			}
			f.ids[id] |= o.Tie
		}
	}
}

func (r *Room) lockFirst(ctx context.Context, session pg.Session, f *followed) error {
	for _, o := range r.followers {
		var ids []job.ID
		for id, ties := range f.ids {
			if ties&o.Tie != 0 {
				ids = append(ids, id)
			}
		}
		if ids == nil {
			continue
		}
		slices.SortFunc(ids, func(a, b job.ID) int { return bytes.Compare(a[:], b[:]) })
		if err := o.Lock(ctx, session, ids); err != nil {
			return err
		}
	}
	return nil
}

// followable reports whether everything is locked for these moves. Otherwise it has
// noted what is not.
func (r *Room) followable(f *followed, moves []job.Move) error {
	if len(r.followers) == 0 || f == nil {
		return nil
	}
	missing := false
	for i := range moves {
		s := moves[i].Of
		for _, o := range r.followers {
			missing = missing || s.Ties&o.Tie&^f.ids[s.ID] != 0
		}
		r.expect(f, s.ID, s.Ties)
	}
	if missing {
		return errUnfollowed
	}
	return nil
}

// follow has the followers do what belongs to moves that were written.
func (r *Room) follow(ctx context.Context, session pg.Session, f *followed, moves []job.Move) error {
	for _, o := range r.followers {
		var tied []job.Move
		for i := range moves {
			if moves[i].Of.Ties&o.Tie != 0 {
				tied = append(tied, moves[i])
			}
		}
		if tied == nil {
			continue
		}
		do := o.Apply
		if f == nil {
			do = o.Leave
		}
		if err := do(ctx, session, tied); err != nil {
			return err
		}
	}
	return nil
}
