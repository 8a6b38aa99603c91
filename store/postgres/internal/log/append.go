package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
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

// markedOnce takes the mark of a user's transaction, once: a local setting says that it
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

// insertEvents puts events in, in order. What is numbered comes out of a row of marked: the
// number is taken after the mark. Of a column in which all are the same there is one (shorten): each
// array costs the server as much as an index, and most columns of most events are alike.
const insertEvents = `
INSERT INTO pawl.event (namespace, seq, appended, topic, stripe, schema, time, expires,
	id, key, type, source, content_type, rest, data)
SELECT $1, nextval('pawl.event_seq'), {now},
	coalesce(e.topic, ($3::int[])[1]),
	coalesce(e.stripe, ($4::smallint[])[1]),
	coalesce(e.schema, ($5::int[])[1]),
	coalesce(e.time, {now}),
	coalesce(e.expires, {now} + e.ttl * interval '1 microsecond'),
	e.id,
	coalesce(e.key, ($10::text[])[1]),
	coalesce(e.type, ($11::text[])[1]),
	coalesce(e.source, ($12::text[])[1]),
	coalesce(e.content_type, ($13::text[])[1]),
	e.rest, e.data
FROM (
	SELECT e.*
	FROM marked
	CROSS JOIN unnest($3::int[], $4::smallint[], $5::int[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
		$9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bytea[], $15::bytea[])
		WITH ORDINALITY AS e (topic, stripe, schema, time, expires, ttl,
			id, key, type, source, content_type, rest, data, n)
	WHERE marked.held IS NOT NULL
	ORDER BY e.n
	OFFSET 0
) AS e`

var (
	appendWithin = `WITH ` + markedOnce + insertEvents + `
RETURNING seq`
)

// appendNumbered and appendNumberedWithin append events with the versions of their keys ($17);
// the setting of a user's transaction is $18 there.
var (
	// insertVersioned is insertEvents with versions.
	insertVersioned = strings.NewReplacer(
		"content_type, rest, data)\nSELECT", "content_type, rest, data, version)\nSELECT",
		"e.rest, e.data\nFROM", "e.rest, e.data, e.version\nFROM",
		"$15::bytea[])", "$15::bytea[], $17::bigint[])",
		"rest, data, n)", "rest, data, version, n)",
	).Replace(insertEvents)
	appendNumbered       = "WITH " + marked + insertVersioned + "\nRETURNING seq"
	appendNumberedWithin = "WITH " + strings.ReplaceAll(markedOnce, "$17", "$18") + insertVersioned + "\nRETURNING seq"
)

// markName is the local setting by which a user's transaction knows that it has a mark.
func (r *Room) markName() string { return fmt.Sprintf("pawl.mark_%d", uint32(r.mark)) }

// columns are the arguments of insertEvents, of the events of one or more calls.
func columns(namespace, mark int32, topics *numbered, calls ...[]stream.Publication) ([]any, error) {
	n := 0
	for _, drafts := range calls {
		n += len(drafts)
	}
	topic, stripe, schema := make([]int32, n), make([]int16, n), make([]int32, n)
	when, expires, ttl := make([]pgtype.Timestamptz, n), make([]pgtype.Timestamptz, n), make([]pgtype.Int8, n)
	id, key, kind, source, content := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	rest, data := make([][]byte, n), make([][]byte, n)
	i := 0
	for _, drafts := range calls {
		for at := range drafts {
			d := &drafts[at]
			topic[i], stripe[i], schema[i] = topics.of[d.Topic], stream.Stripe(d.Topic, d.Key), int32(d.Schema)
			when[i] = pgtype.Timestamptz{Time: d.Time, Valid: !d.Time.IsZero()}
			expires[i] = pgtype.Timestamptz{Time: d.Expires, Valid: !d.Expires.IsZero()}
			ttl[i] = pgtype.Int8{Int64: d.TTL.Microseconds(), Valid: d.TTL > 0}
			id[i], key[i], kind[i], source[i], content[i], data[i] = d.ID, d.Key, d.Type, d.Source, d.ContentType, d.Data
			var err error
			if rest[i], err = d.Rest(); err != nil {
				return nil, fmt.Errorf("%w event: %w", job.ErrInvalid, err)
			}
			i++
		}
	}
	return []any{namespace, mark, topic, stripe, schema, when, expires, ttl, id, key, kind, source, content, rest, data,
		int32(topics.epoch)}, nil
}

// idColumn has as many values as there are events, whatever they are: it says how many to put in.
const idColumn = 8

// shorten leaves one value of each column in which all are the same, and none where all are NULL, which
// is what insertEvents wants.
func shorten(args []any) []any {
	for i := 2; i < 15; i++ {
		switch list := args[i].(type) {
		case []int32:
			args[i] = same(list)
		case []int16:
			args[i] = same(list)
		case []string:
			if i != idColumn {
				args[i] = same(list)
			}
		case []pgtype.Timestamptz:
			if !slices.ContainsFunc(list, func(t pgtype.Timestamptz) bool { return t.Valid }) {
				args[i] = list[:0]
			}
		case []pgtype.Int8:
			if !slices.ContainsFunc(list, func(n pgtype.Int8) bool { return n.Valid }) {
				args[i] = list[:0]
			}
		case [][]byte:
			if !slices.ContainsFunc(list, func(b []byte) bool { return b != nil }) {
				args[i] = list[:0]
			}
		}
	}
	return args
}

// same is the first of values that are all alike, or all of them.
func same[T comparable](list []T) []T {
	for _, v := range list {
		if v != list[0] {
			return list
		}
	}
	return list[:1]
}

func receipts(drafts []stream.Publication, seqs []int64, epoch uint32) (list []stream.PublishReply, rest []int64) {
	list = make([]stream.PublishReply, len(drafts))
	for i := range drafts {
		list[i] = stream.PublishReply{ID: drafts[i].ID, Position: stream.At(epoch, seqs[i])}
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
	list := make([]stream.PublishReply, 0, len(drafts))
	var epoch uint32
	same := true
	err = in.Run(ctx, &pg.Statement{Text: appendWithin, Args: append(shorten(args), r.markName()),
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
