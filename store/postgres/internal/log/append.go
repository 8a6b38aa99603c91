package log

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	if err := r.gather.Do(ctx, c); err != nil {
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

// markedMoved is marked where a writer has moved on, which says that the epoch is the same.
var markedMoved = strings.Replace(marked, "WHERE "+here, "FROM moved", 1)

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
// number is taken after the mark.
const insertEvents = `
INSERT INTO pawl.event (namespace, seq, appended, topic, stripe, schema, time, expires,
	id, key, type, source, content_type, rest, data)
SELECT $1, nextval('pawl.event_seq'), {now}, e.topic, e.stripe, e.schema, coalesce(e.time, {now}),
	coalesce(e.expires, {now} + e.ttl * interval '1 microsecond'),
	e.id, e.key, e.type, e.source, e.content_type, e.rest, e.data
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
	// appendOwn also moves the writer on ($17, $18): where it is not at that number, its
	// commit has happened already, and nothing is done, nor where the epoch is another. With
	// the numbers comes what topics have come to (heard).
	//
	//   - event_writer_pkey, namespace_pkey.
	appendOwn = `WITH moved AS MATERIALIZED (
	UPDATE pawl.event_writer
	SET number = number + 1, expires = {now} + interval '1 day'
	WHERE namespace = $1 AND writer = $17 AND number = $18 AND ` + here + `
	RETURNING 1 AS one
),
` + markedMoved + insertEvents + `
RETURNING seq, (SELECT n.topic_changes FROM pawl.namespace AS n WHERE n.id = $1)`

	appendWithin = `WITH ` + markedOnce + insertEvents + `
RETURNING seq`

	// addWriter makes the row of a process.
	addWriter = `INSERT INTO pawl.event_writer (namespace, writer, number, expires)
VALUES ($1, $2, $3, {now} + interval '1 day')
ON CONFLICT DO NOTHING`
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

// columns are the arguments of insertEvents.
func columns(namespace, mark int32, drafts []stream.Publication, topics *numbered) ([]any, error) {
	n := len(drafts)
	topic, stripe, schema := make([]int32, n), make([]int16, n), make([]int32, n)
	when, expires, ttl := make([]pgtype.Timestamptz, n), make([]pgtype.Timestamptz, n), make([]pgtype.Int8, n)
	id, key, kind, source, content := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	rest, data := make([][]byte, n), make([][]byte, n)
	for i := range drafts {
		d := &drafts[i]
		topic[i], stripe[i], schema[i] = topics.of[d.Topic], stream.Stripe(d.Topic, d.Key), int32(d.Schema)
		when[i] = pgtype.Timestamptz{Time: d.Time, Valid: !d.Time.IsZero()}
		expires[i] = pgtype.Timestamptz{Time: d.Expires, Valid: !d.Expires.IsZero()}
		ttl[i] = pgtype.Int8{Int64: d.TTL.Microseconds(), Valid: d.TTL > 0}
		id[i], key[i], kind[i], source[i], content[i], data[i] = d.ID, d.Key, d.Type, d.Source, d.ContentType, d.Data
		var err error
		if rest[i], err = d.Rest(); err != nil {
			return nil, fmt.Errorf("%w event: %w", job.ErrInvalid, err)
		}
	}
	return []any{namespace, mark, topic, stripe, schema, when, expires, ttl, id, key, kind, source, content, rest, data,
		int32(topics.epoch)}, nil
}

// commit puts the events of many callers in, in one transaction. When its answer is lost it
// is sent again: it finds out whether it has happened.
func (r *Room) commit(ctx context.Context, calls []*appendCall) {
	drafts, topics := calls[0].drafts, calls[0].topics
	if len(calls) > 1 {
		drafts, topics = nil, &numbered{topics.epoch, map[string]int32{}}
		for _, c := range calls {
			drafts = append(drafts, c.drafts...)
			maps.Copy(topics.of, c.topics.of)
			topics.epoch = min(topics.epoch, c.topics.epoch) // they are asked for anew where one is old
		}
	}
	seqs, epoch, err := r.appendOwn(ctx, drafts, topics)
	if err != nil && len(calls) > 1 && !pg.FaultOf(err).Unknown { // one of many rows may be bad: each alone
		for _, c := range calls {
			r.commit(ctx, []*appendCall{c})
		}
		return
	}
	if err == nil {
		r.Appended()
	}
	for _, c := range calls {
		if err == nil {
			c.receipts, seqs = receipts(c.drafts, seqs, epoch)
		}
		c.Answer(err)
	}
}

func receipts(drafts []stream.Publication, seqs []int64, epoch uint32) (list []stream.PublishReply, rest []int64) {
	list = make([]stream.PublishReply, len(drafts))
	for i := range drafts {
		list[i] = stream.PublishReply{ID: drafts[i].ID, Position: stream.At(epoch, seqs[i])}
	}
	return list, seqs[len(drafts):]
}

// appendOwn appends in a transaction of the store's own.
func (r *Room) appendOwn(
	ctx context.Context, drafts []stream.Publication, topics *numbered,
) (seqs []int64, epoch uint32, err error) {
	args, err := columns(r.pg.Namespace, r.mark, drafts, topics)
	if err != nil {
		return nil, 0, err
	}
	w := &r.writer
	err = r.pg.Retry(ctx, "append", pg.Always, func(ctx context.Context, again bool) error {
		if !w.known { // a process that did nothing for a day has lost its row
			add := &pg.Statement{Text: addWriter, Args: []any{r.pg.Namespace, w.id, w.number}}
			if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, add); err != nil {
				return err
			}
			w.known = true
		}
		same := true
		seqs, epoch = make([]int64, 0, len(drafts)), topics.epoch
		var changes int32
		put := &pg.Statement{Text: appendOwn, Args: append(args, w.id, w.number), Each: func(scan pg.Scan) error {
			var seq int64
			err := scan(&seq, &changes)
			seqs = append(seqs, seq)
			return err
		}}
		limits := pg.SharedLimits
		if again {
			limits = pg.UpkeepLimits // for the lock of its own first try, which is on its way
		}
		if err := r.pg.Send(ctx, r.pg.Work, limits, put); err != nil {
			return err
		}
		if len(seqs) == len(drafts) {
			r.topics.heard(changes)
			return nil
		}
		if err := r.pg.Send(ctx, r.pg.Work, nil, r.life(&epoch, &same, nil)); err != nil {
			return err
		}
		switch {
		case !same || epoch != topics.epoch:
			if err := r.anchor(ctx); err != nil {
				return err
			}
			if topics, err = r.numbers(ctx, drafts); err != nil {
				return err
			}
			if args, err = columns(r.pg.Namespace, r.mark, drafts, topics); err != nil {
				return err
			}
			return pg.Fault{Err: errEpoch, Passing: true}.AsError()
		case again:
			return r.happened(ctx, drafts, &seqs)
		default:
			w.known = false // it was purged
			return pg.Fault{Err: errNoWriter, Passing: true}.AsError()
		}
	})
	if err == nil {
		w.number++
		w.seq = max(w.seq, seqs[len(seqs)-1])
	}
	return seqs, epoch, err
}

var errNoWriter = fmt.Errorf("the row of this process is gone")

// readAgain reads the numbers of events that were put in behind a number ($2), of those ids
// ($3).
//
//   - event_pkey, from where this process saw the log last.
const readAgain = `SELECT id, seq
FROM pawl.event
WHERE namespace = $1 AND seq > $2 AND id = ANY ($3)
ORDER BY seq`

// happened reads the numbers of events whose commit was not answered: the writer's row has
// moved on, so it has happened.
func (r *Room) happened(ctx context.Context, drafts []stream.Publication, seqs *[]int64) error {
	ids := make([]string, len(drafts))
	for i := range drafts {
		ids[i] = drafts[i].ID
	}
	found := map[string][]int64{}
	err := r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: readAgain, Args: []any{r.pg.Namespace, r.writer.seq, ids},
		Each: func(scan pg.Scan) error {
			var id string
			var seq int64
			err := scan(&id, &seq)
			found[id] = append(found[id], seq)
			return err
		}})
	if err != nil {
		return err
	}
	*seqs = make([]int64, len(drafts))
	for i, id := range ids {
		if list := found[id]; len(list) > 0 {
			(*seqs)[i], found[id] = list[0], list[1:]
		}
	}
	return nil
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
	args, err := columns(r.pg.Namespace, r.mark, drafts, topics)
	if err != nil {
		return nil, err
	}
	list := make([]stream.PublishReply, 0, len(drafts))
	var epoch uint32
	same := true
	err = in.Run(ctx, &pg.Statement{Text: appendWithin, Args: append(args, r.markName()),
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
