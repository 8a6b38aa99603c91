package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

// maxGathered bounds the rows of one shared commit, where large events count as several.
const (
	maxGathered = 4096
	bytesOfRow  = 4 << 10
)

// appendCall is one caller's events.
type appendCall struct {
	commit.Call
	drafts   []stream.Publication
	topics   *numbered
	weight   int
	receipts []stream.PublishReply
}

func (c *appendCall) Rows() int { return c.weight }

func newAppendCall(drafts []stream.Publication) *appendCall {
	c := &appendCall{Call: commit.NewCall(), drafts: drafts, weight: len(drafts)}
	for i := range drafts {
		c.weight += len(drafts[i].Data) / bytesOfRow
	}
	return c
}

// Append accepts events, all or none. Calls of many goroutines share a commit.
func (r *Room) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	if len(drafts) == 0 {
		return nil, nil
	}
	topics, err := r.numbers(ctx, drafts)
	if err != nil {
		return nil, err
	}
	special, _, err := r.special(ctx, drafts, topics)
	if err != nil {
		return nil, err
	}
	if special {
		return r.appendNamed(ctx, drafts)
	}
	c := newAppendCall(drafts)
	c.topics = topics
	if err := r.pick().gather.Do(ctx, c); err != nil {
		return nil, err
	}
	return c.receipts, nil
}

// here says whether the epoch is still the one that the caller knows ($16), on its server. A
// transaction whose snapshot is older than the first epoch sees none.
const here = `coalesce((SELECT e.epoch = $16 AND ` + sameServer + ` FROM pawl.epoch AS e), true)`

// special says which of a call's topics are versioned, and whether the call cannot share a
// commit with others: its events are known by names, have versions or are delayed. Such lock
// rows that somebody may hold, or take more than one statement.
func (r *Room) special(ctx context.Context, drafts []stream.Publication, topics *numbered) (bool, map[string]bool, error) {
	versioned, err := r.versionedOf(ctx, drafts, topics)
	return versioned != nil || stream.AnyNames(drafts) || stream.AnyDelayed(drafts), versioned, err
}

// marked takes the mark of a transaction of the store's own, which appends once.
const marked = `mark AS MATERIALIZED (
	SELECT nextval('pawl.event_seq') AS n
	WHERE ` + here + `
),
marked AS MATERIALIZED (
	SELECT pg_advisory_xact_lock_shared($2, (n & 2147483647)::int)::text AS held
	FROM mark
)`

// markedOnce takes the mark of a user's transaction, once: a local setting ($17) says that it
// has one. Both are undone by a rollback to a savepoint before them, and so is that its
// commit is on disk before anybody reads it: an event that was read and is gone after a crash
// would leave its number to another one.
const markedOnce = `mark AS MATERIALIZED (
	SELECT CASE
			WHEN coalesce(current_setting($17, true), '') = '' THEN nextval('pawl.event_seq')
		END AS n
	WHERE ` + here + `
),
marked AS MATERIALIZED (
	SELECT coalesce(
			pg_advisory_xact_lock_shared($2, (n & 2147483647)::int)::text || set_config($17, n::text, true)
				|| ` + pg.Durability + `, ''
		) AS held
	FROM mark
)`

// markName is the local setting by which a user's transaction knows that it has a mark.
func (r *Room) markName() string { return fmt.Sprintf("pawl.mark_%d", uint32(r.mark)) }

func receipts(drafts []stream.Publication, seqs []int64, epoch uint32) (list []stream.PublishReply, rest []int64) {
	list = make([]stream.PublishReply, len(drafts))
	for i := range drafts {
		list[i].ID = drafts[i].ID
		if seqs[i] > 0 { // else it is gone already: its time was over before anybody could tell its number
			list[i].Position = stream.At(epoch, seqs[i])
		}
	}
	return list, seqs[len(drafts):]
}

// AppendIn accepts events in a user's transaction. Their positions are known, and nobody
// reads past its mark until it has ended.
func (r *Room) AppendIn(ctx context.Context, in pg.Session, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	topics, err := r.numbers(ctx, drafts)
	if err != nil {
		return nil, err
	}
	special, versioned, err := r.special(ctx, drafts, topics)
	if err != nil {
		return nil, err
	}
	if special {
		n := r.naming(in, drafts, topics, versioned)
		n.within = true
		list, err := n.append(ctx, uuid.New())
		for i := range list {
			list[i].Position = stream.Position{} // known when it has committed
		}
		return list, err
	}
	list, err := r.appendWithin(ctx, in, drafts, topics)
	if errors.Is(err, errEpoch) { // nothing was done: it may go on, unless its snapshot is older
		if err := r.anchor(ctx); err != nil {
			return nil, err
		}
		if topics, err = r.numbers(ctx, drafts); err != nil {
			return nil, err
		}
		return r.appendWithin(ctx, in, drafts, topics)
	}
	return list, err
}

func (r *Room) appendWithin(
	ctx context.Context, in pg.Session, drafts []stream.Publication, topics *numbered,
) ([]stream.PublishReply, error) {
	args, err := columns(r.pg.Namespace, r.mark, topics, drafts)
	if err != nil {
		return nil, err
	}
	of, args := shaped(args)
	list := make([]stream.PublishReply, 0, len(drafts))
	var epoch uint32
	same := true
	err = in.Run(ctx, &pg.Statement{Text: insertKind{shape: of, by: byUser}.text(), Args: append(args, r.markName()),
		Each: func(scan pg.Scan) error {
			var seq int64
			err := scan(&seq)
			list = append(list, stream.PublishReply{ID: drafts[len(list)].ID})
			return err
		}}, r.life(&epoch, &same, nil))
	if err == nil && len(list) < len(drafts) {
		err = errEpoch
	}
	return list, err
}
