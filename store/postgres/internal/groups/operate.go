package groups

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// replayParked lets parked events wait again: those of a list ($3), or the oldest ($4, at
	// most $5), whose event and shelf are there. The others can never be, and go.
	//
	//   - retry_parked, event_pkey, shelf_pkey.
	replayParked = `WITH chosen AS MATERIALIZED (
	SELECT shelf, seq
	FROM pawl.retry
	WHERE namespace = $1 AND consumer_group = $2 AND hand = -1 AND ($4::boolean OR seq = ANY ($3::bigint[]))
	ORDER BY namespace, consumer_group, due, seq
	LIMIT $5
	FOR UPDATE
), replayed AS (
	UPDATE pawl.retry AS r
	SET hand = 0, alone = false, wants = 0, failures = 0, losses = 0, due = {now}, reason = ''
	FROM chosen AS c
	WHERE r.namespace = $1 AND r.shelf = c.shelf AND r.seq = c.seq
		AND EXISTS (SELECT FROM pawl.event AS e WHERE e.namespace = ANY (ARRAY[r.namespace]) AND e.seq = c.seq)
		AND EXISTS (SELECT FROM pawl.shelf AS s WHERE s.namespace = $1 AND s.id = c.shelf)
	RETURNING r.shelf, r.seq
), gone AS (
	DELETE FROM pawl.retry AS r
	USING chosen AS c
	WHERE r.namespace = $1 AND r.shelf = c.shelf AND r.seq = c.seq
		AND NOT EXISTS (SELECT FROM replayed AS y WHERE y.shelf = c.shelf AND y.seq = c.seq)
)
SELECT (SELECT count(*) FROM chosen), (SELECT count(*) FROM replayed)`

	// replayLetters lets events wait again whose dead letters are replayed.
	//
	//   - shelf_member, event_pkey, retry_pkey.
	replayLetters = `INSERT INTO pawl.retry (namespace, shelf, consumer_group, seq, stripe, hand, failures, losses, due)
SELECT e.namespace, s.id, $2, e.seq, e.stripe, 0, 0, 0, {now}
FROM (SELECT $1::int AS namespace, n.seq FROM unnest($3::bigint[]) AS n (seq) OFFSET 0) AS n
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[n.namespace]) AND e.seq = n.seq
JOIN pawl.shelf AS s ON s.namespace = $1 AND s.consumer_group = $2 AND s.member = ''
ON CONFLICT DO NOTHING`

	moreParked = `SELECT 1
FROM pawl.retry
WHERE namespace = $1 AND consumer_group = $2 AND hand = -1
LIMIT 1`

	// handsOf locks the members of a group.
	//
	//   - hand_member.
	handsOf = `SELECT id
FROM pawl.hand
WHERE namespace = $1 AND consumer_group = $2
ORDER BY id
FOR UPDATE`

	removeTurns = `DELETE FROM pawl.hand_at
WHERE namespace = $1 AND hand = ANY ($2::bigint[])`

	removeAcked = `DELETE FROM pawl.acked
WHERE namespace = $1 AND hand = ANY ($2::bigint[])`

	removeHands = `DELETE FROM pawl.hand
WHERE namespace = $1 AND id = ANY ($2::bigint[])`

	shelfIDs = `SELECT id
FROM pawl.shelf
WHERE namespace = $1 AND consumer_group = $2`

	// removeWaiting removes what waits on shelves ($2), and removeAllRows what is parked too.
	//
	//   - retry_pkey.
	removeWaiting = `DELETE FROM pawl.retry
WHERE namespace = $1 AND shelf = ANY ($2::bigint[]) AND hand <> -1`

	removeAllRows = `DELETE FROM pawl.retry
WHERE namespace = $1 AND shelf = ANY ($2::bigint[])`

	// removeParked is by retry_parked: parked ones of members that have left.
	removeParked = `DELETE FROM pawl.retry
WHERE namespace = $1 AND consumer_group = $2 AND hand = -1`

	// seekShelves is by shelf_at_pkey, seekStripes by stripe_pkey.
	seekShelves = `UPDATE pawl.shelf_at
SET turn = turn + 1, upto = $3
WHERE namespace = $1 AND shelf = ANY ($2::bigint[])`

	seekStripes = `UPDATE pawl.stripe
SET hand = 0, at = $3
WHERE namespace = $1 AND consumer_group = $2`

	removeShelves = `DELETE FROM pawl.shelf
WHERE namespace = $1 AND id = ANY ($2::bigint[])`

	removePlaces = `DELETE FROM pawl.shelf_at
WHERE namespace = $1 AND shelf = ANY ($2::bigint[])`

	removeStripes = `DELETE FROM pawl.stripe
WHERE namespace = $1 AND consumer_group = $2`

	removeGroup = `DELETE FROM pawl.consumer_group
WHERE namespace = $1 AND id = $2`

	pauseGroup = `UPDATE pawl.consumer_group
SET paused = $3, version = version + 1
WHERE namespace = $1 AND id = $2`
)

// operate locks a group and runs what an operator wants of it, with its audit entry.
func (r *Room) operate(ctx context.Context, name, action string, op store.Operator, detail func() string,
	f func(ctx context.Context, s *pg.Transaction, g *store.GroupRow) error) error {
	if err := r.log.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	err := r.pg.Retry(ctx, action, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(s *pg.Transaction) error {
			g := store.GroupRow{Name: name}
			var mode int16
			find := &pg.Statement{Text: findGroup, Args: []any{r.pg.Namespace, name}, Each: func(scan pg.Scan) error {
				return scan(&g.ID, &mode, &g.Filter)
			}}
			if err := s.Run(ctx, r.gate(name), find); err != nil {
				return err
			}
			if g.ID == 0 {
				return job.NotFound("group", name)
			}
			g.Mode = stream.Mode(mode)
			if err := f(ctx, s, &g); err != nil {
				return err
			}
			return r.settings.Record(ctx, s, op, action, []string{name}, []string{detail()})
		})
	})
	if err == nil {
		r.tell()
	}
	return err
}

func none() string { return "" }

// Replay gives events again that were given up.
func (r *Room) Replay(ctx context.Context, p *store.GroupReplay, op store.Operator) (reply store.ReplayReply, err error) {
	head, err := r.headOf(ctx)
	if err != nil {
		return reply, err
	}
	detail := func() string { return fmt.Sprintf("%d events", reply.Replayed) }
	err = r.operate(ctx, p.Group, "replay group", op, detail, func(ctx context.Context, s *pg.Transaction, g *store.GroupRow) error {
		reply = store.ReplayReply{}
		ns := r.pg.Namespace
		if p.All || len(p.Parked) > 0 {
			chosen, replayed := 0, 0
			list := p.Parked
			if list == nil {
				list = []int64{}
			}
			err := s.Run(ctx, &pg.Statement{Text: replayParked, Args: []any{ns, g.ID, list, p.All, store.MaxReplay},
				Each: func(scan pg.Scan) error {
					return scan(&chosen, &replayed)
				}})
			if err != nil {
				return err
			}
			reply.Replayed, reply.Gone = replayed, chosen-replayed
			if p.All && chosen == store.MaxReplay {
				more := &pg.Statement{Text: moreParked, Args: []any{ns, g.ID}, Each: func(pg.Scan) error { return nil }}
				if err := s.Run(ctx, more); err != nil {
					return err
				}
				reply.More = more.Hits > 0
			}
		}
		if len(p.Letters) > 0 {
			if err := g.Letters(); err != nil {
				return err
			}
			var seqs []int64
			for _, at := range p.Letters {
				if at.Epoch() == head {
					seqs = append(seqs, at.Seq())
				}
			}
			add := &pg.Statement{Text: replayLetters, Args: []any{ns, g.ID, seqs}}
			if err := s.Run(ctx, add); err != nil {
				return err
			}
			reply.Replayed, reply.Gone = reply.Replayed+int(add.Hits), reply.Gone+len(p.Letters)-int(add.Hits)
		}
		return s.Run(ctx, &pg.Statement{Text: raise, Args: []any{ns, g.ID}, Each: func(pg.Scan) error { return nil }})
	})
	return reply, err
}

func (r *Room) headOf(ctx context.Context) (uint32, error) {
	if err := r.log.Enter(ctx); err != nil {
		return 0, err
	}
	defer r.pg.Leave()
	head, err := r.log.AskHead(ctx)
	return head.Epoch, err
}

// ids runs a statement that answers numbers.
func ids(ctx context.Context, s pg.Session, text string, args ...any) (list []int64, err error) {
	list = []int64{}
	return list, s.Run(ctx, &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		var id int64
		err := scan(&id)
		list = append(list, id)
		return err
	}})
}

// dismiss removes all members of a group, and gives its shelves.
func (r *Room) dismiss(ctx context.Context, s pg.Session, g *store.GroupRow) (shelves []int64, err error) {
	ns := r.pg.Namespace
	hands, err := ids(ctx, s, handsOf, ns, g.ID)
	if err != nil {
		return nil, err
	}
	args := []any{ns, hands}
	err = s.Run(ctx, &pg.Statement{Text: removeTurns, Args: args},
		&pg.Statement{Text: removeAcked, Args: args}, &pg.Statement{Text: removeHands, Args: args})
	if err != nil {
		return nil, err
	}
	return ids(ctx, s, shelfIDs, ns, g.ID)
}

// Seek puts a group somewhere else.
func (r *Room) Seek(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	if err := r.log.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	if err := r.log.CheckPosition(ctx, to); err != nil {
		return err
	}
	return r.operate(ctx, name, "seek group", op, to.String, func(ctx context.Context, s *pg.Transaction, g *store.GroupRow) error {
		ns := r.pg.Namespace
		shelves, err := r.dismiss(ctx, s, g)
		if err != nil {
			return err
		}
		return s.Run(ctx,
			&pg.Statement{Text: removeWaiting, Args: []any{ns, shelves}},
			&pg.Statement{Text: seekShelves, Args: []any{ns, shelves, to.Seq()}},
			&pg.Statement{Text: seekStripes, Args: []any{ns, g.ID, to.Seq()}},
			&pg.Statement{Text: raise, Args: []any{ns, g.ID}, Each: func(pg.Scan) error { return nil }})
	})
}

// Pause stops a group from taking events, or lets it go on.
func (r *Room) Pause(ctx context.Context, name string, paused bool, op store.Operator) error {
	action := "resume group"
	if paused {
		action = "pause group"
	}
	return r.operate(ctx, name, action, op, none, func(ctx context.Context, s *pg.Transaction, g *store.GroupRow) error {
		return s.Run(ctx, &pg.Statement{Text: pauseGroup, Args: []any{r.pg.Namespace, g.ID, paused}})
	})
}

// Delete forgets a group.
func (r *Room) Delete(ctx context.Context, name string, op store.Operator) error {
	return r.operate(ctx, name, "delete group", op, none, func(ctx context.Context, s *pg.Transaction, g *store.GroupRow) error {
		ns := r.pg.Namespace
		shelves, err := r.dismiss(ctx, s, g)
		if err != nil {
			return err
		}
		return s.Run(ctx,
			&pg.Statement{Text: removeAllRows, Args: []any{ns, shelves}}, &pg.Statement{Text: removeParked, Args: []any{ns, g.ID}},
			&pg.Statement{Text: removeStripes, Args: []any{ns, g.ID}}, &pg.Statement{Text: removePlaces, Args: []any{ns, shelves}},
			&pg.Statement{Text: removeShelves, Args: []any{ns, shelves}}, &pg.Statement{Text: removeGroup, Args: []any{ns, g.ID}})
	})
}
