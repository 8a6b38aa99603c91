package groups

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// membersOf is by hand_member.
	membersOf = `SELECT id
FROM pawl.hand
WHERE namespace = $1 AND consumer_group = $2`

	// freeStripes writes where stripes are ($4, $5) that nobody reads from now on.
	//
	//   - stripe_pkey.
	freeStripes = `UPDATE pawl.stripe AS s
SET hand = 0, at = f.at
FROM (SELECT $1::int AS namespace, f.* FROM unnest($4::smallint[], $5::bigint[]) AS f (stripe, at) OFFSET 0) AS f
WHERE s.namespace = ANY (ARRAY[f.namespace]) AND s.consumer_group = $2 AND s.stripe = f.stripe AND s.hand = $3`

	// takeStripes takes those of a range ($4 up to $5) that nobody reads.
	//
	//   - stripe_pkey.
	takeStripes = `UPDATE pawl.stripe
SET hand = $3
WHERE namespace = $1 AND consumer_group = $2 AND stripe >= $4 AND stripe < $5 AND hand = 0
RETURNING stripe, at`

	// putStripes writes how far a hand has read its stripes.
	//
	//   - hand_at_pkey.
	putStripes = `UPDATE pawl.hand_at
SET turn = turn + 1, upto = $4, behind = $5::smallint[], behind_at = $6::bigint[]
WHERE namespace = $1 AND hand = $2 AND turn = $3`

	// stripesOf is by stripe_pkey: a group has few.
	stripesOf = `SELECT stripe
FROM pawl.stripe
WHERE namespace = $1 AND consumer_group = $2 AND hand = $3`
)

// share gives stripes back that are to be another's, when nothing of them is open, and takes
// those that are to be this member's and nobody's now. It reports whether it took some. The
// hand in t is as it is afterwards.
func (r *Room) share(ctx context.Context, t *store.Turn, version int64) (took bool, err error) {
	h := t.Hand
	again := version != h.Looked
	var free []int16
	for s := range h.Stripes {
		if (s < h.First || s >= h.End) && !t.Busy[s] {
			free = append(free, s)
		}
	}
	if !again && len(free) == 0 {
		return false, nil
	}
	told := false
	err = r.pg.Retry(ctx, "share stripes", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		h, took, told = t.Hand, false, false
		h.Stripes = cloneStripes(t.Hand.Stripes)
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(s *pg.Transaction) error {
			took, told, err = r.shareIn(ctx, s, t, &h)
			return err
		})
	})
	if err != nil {
		return false, err
	}
	t.Hand = h
	if told {
		r.tell()
	}
	return took, nil
}

// shareIn is share in a transaction. A turn is one step of a hand, and so is this.
func (r *Room) shareIn(ctx context.Context, s *pg.Transaction, t *store.Turn, h *store.Hand) (took, told bool, err error) {
	ns := r.pg.Namespace
	var members []int64
	ours := &pg.Statement{Text: lockTurn, Args: []any{ns, h.ID, h.Number}, Each: func(pg.Scan) error { return nil }}
	version := int64(0)
	err = s.Run(ctx, ours,
		&pg.Statement{Text: groupVersion, Args: []any{ns, h.Group}, Each: func(scan pg.Scan) error { return scan(&version) }},
		&pg.Statement{Text: membersOf, Args: []any{ns, h.Group}, Each: func(scan pg.Scan) error {
			var id int64
			err := scan(&id)
			members = append(members, id)
			return err
		}})
	if err != nil {
		return false, false, err
	}
	if ours.Hits == 0 {
		return false, false, stream.ErrFeedLost
	}
	h.First, h.End = store.StripesOf(members, h.ID)
	var free []int16
	var at []int64
	for stripe, place := range h.Stripes {
		if (stripe < h.First || stripe >= h.End) && !t.Busy[stripe] {
			free, at = append(free, stripe), append(at, place)
			delete(h.Stripes, stripe)
		}
	}
	var steps []*pg.Statement
	if told = len(free) > 0; told {
		steps = append(steps, &pg.Statement{Text: freeStripes, Args: []any{ns, h.Group, h.ID, free, at}})
	}
	steps = append(steps, &pg.Statement{Text: takeStripes, Args: []any{ns, h.Group, h.ID, h.First, h.End}, Each: func(scan pg.Scan) error {
		var stripe int16
		var place int64
		err := scan(&stripe, &place)
		h.Stripes[stripe], took = place, true
		return err
	}})
	if err := s.Run(ctx, steps...); err != nil {
		return false, false, err
	}
	h.Looked = version
	if !took && !told {
		return false, false, nil // there is nothing to write
	}
	upto, behind, places := store.Places(h.Stripes)
	last := []*pg.Statement{{Text: putStripes, Args: []any{ns, h.ID, h.Number, upto, behind, places}}}
	raised := int64(0)
	if told {
		last = append(last, &pg.Statement{Text: raise, Args: []any{ns, h.Group}, Each: func(scan pg.Scan) error { return scan(&raised) }})
	}
	if err := s.Commit(ctx, last...); err != nil {
		return false, false, err
	}
	h.Number++
	if raised == version+1 {
		h.Looked = raised
	}
	if raised == h.Version+1 { // nobody else had news since it was read
		h.Version = raised
	}
	return took, told, nil
}

// groupVersion is by consumer_group_pkey.
const groupVersion = `SELECT version
FROM pawl.consumer_group
WHERE namespace = $1 AND id = $2`
