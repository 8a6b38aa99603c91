package hints

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const (
	// hintsKept is how long hints stay after their commit, for the looks of others.
	// A process that does not look for so long finds out by its sweep.
	hintsKept = 30 * time.Second
	// RemovedAtOnce is how many hints one statement removes.
	RemovedAtOnce = 5_000
	// removalPause lets others come between two of them.
	removalPause = 5 * time.Millisecond
	// afterFailure is the pause before a round that failed is tried again.
	afterFailure = 30 * time.Second
	// removeAnew is after how many rounds one begins in front again, for rows that
	// another process had locked and did not remove after all.
	removeAnew = 60
)

// Remover removes hints that every look has had time to see. Every process
// does it that has left or seen some, also one that runs no jobs: while no worker
// runs, rows would gather without end. Who has done neither asks nothing.
type Remover struct {
	room    *Room
	Wake    chan struct{} // holds one token: there may be rows
	Stopped chan struct{}

	rounds int
	from   string // the transaction from which rows may be left; in front of it, dead index entries may be
}

func startRemover(r *Room) *Remover {
	remover := r.NewRemover()
	go remover.work()
	return remover
}

// NewRemover makes one that does nothing by itself.
func (r *Room) NewRemover() *Remover {
	return &Remover{room: r, Wake: make(chan struct{}, 1), Stopped: make(chan struct{})}
}

// Some says that there are hints.
func (r *Remover) Some() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

func (r *Remover) work() {
	defer close(r.Stopped)
	for {
		select {
		case <-r.room.pg.Ending.Done():
			return
		case <-r.Wake:
		}
		if err := r.Round(r.room.pg.Ending, hintsKept); err != nil {
			r.room.pg.Logger.Debug("hints were not removed, the next round goes on", "error", err)
			if !Wait(r.room.pg.Ending, afterFailure) { // the server may be away for long
				return
			}
			r.Some()
		}
	}
}

// committedNow is what a round may remove.
const committedNow = `SELECT now.snapshot::text, pg_snapshot_xmin(now.snapshot)::text
FROM (SELECT pg_current_snapshot() AS snapshot) AS now`

// Round removes everything that is committed now, after it was kept for a time.
func (r *Remover) Round(ctx context.Context, kept time.Duration) error {
	var now, xmin string
	err := r.room.pg.Send(ctx, r.room.pg.Upkeep, nil, &pg.Statement{
		Text: committedNow,
		Each: func(scan pg.Scan) error { return scan(&now, &xmin) },
	})
	if err != nil {
		return err
	}
	if !Wait(ctx, r.room.meets.kept(kept)) {
		return ctx.Err()
	}
	if some, ok := r.room.meets.some.Do(ctx, r.room.pg.Namespace); ok && !some {
		return nil // as nearly always after a first look
	}
	if r.rounds++; r.from == "" || r.rounds%removeAnew == 0 {
		r.from = "0"
	}
	for more := true; more; {
		if more, err = r.remove(ctx, removeHints, r.room.pg.Namespace, RemovedAtOnce, r.from, now); err != nil {
			return err
		}
	}
	r.from = xmin // whatever is older had ended, and is gone
	for more := true; more; {
		if more, err = r.remove(ctx, removeForeignHints, r.room.pg.Namespace, RemovedAtOnce); err != nil {
			return err
		}
	}
	return nil
}

// remove sends one statement and reports whether there may be more to remove. A
// commit that is lost in a crash leaves rows that are removed again, so it need
// not reach the disk.
func (r *Remover) remove(ctx context.Context, text string, args ...any) (more bool, err error) {
	var removed int
	var last pgtype.Text
	err = r.room.pg.Send(ctx, r.room.pg.Upkeep, pg.SharedLimits,
		&pg.Statement{Text: "SELECT set_config('synchronous_commit', 'off', true)"},
		&pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error { return scan(&removed, &last) }})
	if err != nil {
		return false, err
	}
	if last.Valid {
		r.from = last.String
	}
	if removed < RemovedAtOnce {
		return false, nil
	}
	if !Wait(ctx, removalPause) {
		return false, ctx.Err()
	}
	return true, nil
}

// Wait waits, unless the context ends.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// removeHints removes what was committed by a snapshot. What another process is
// removing is left to it.
//
//   - hint_transaction finds the rows, from where the last statement ended: with a
//     snapshot held open, what that one removed is still in the index.
const removeHints = `WITH gone AS (
	DELETE FROM pawl.hint
	WHERE ctid = ANY (ARRAY(
		SELECT ctid
		FROM pawl.hint
		WHERE namespace = $1
			AND transaction >= $3::text::xid8
			AND transaction < pg_snapshot_xmax($4::text::pg_snapshot)
			AND pg_visible_in_snapshot(transaction, $4::text::pg_snapshot)
		ORDER BY transaction
		LIMIT $2
		FOR UPDATE SKIP LOCKED
	))
	RETURNING transaction
)
SELECT count(*), (array_agg(transaction ORDER BY transaction DESC))[1]::text
FROM gone`

// removeForeignHints removes what claims to be of a transaction that has not
// begun: a dump brought it along from a server that had counted further, and
// every look would find it again.
//
//   - hint_transaction finds the rows.
const removeForeignHints = `WITH gone AS (
	DELETE FROM pawl.hint
	WHERE ctid = ANY (ARRAY(
		SELECT ctid
		FROM pawl.hint
		WHERE namespace = $1 AND transaction >= pg_snapshot_xmax(pg_current_snapshot())
		ORDER BY transaction
		LIMIT $2
		FOR UPDATE SKIP LOCKED
	))
	RETURNING 1
)
SELECT count(*), NULL::text
FROM gone`
