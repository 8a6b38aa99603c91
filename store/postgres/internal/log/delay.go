package log

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// addDelayed keeps events until they are due ($15), in order.
	addDelayed = `INSERT INTO pawl.delayed (namespace, topic, stripe, schema, time, expires, ttl,
	id, key, type, source, content_type, rest, data, due)
SELECT $1, e.topic, e.stripe, e.schema, e.time, e.expires, e.ttl,
	e.id, e.key, e.type, e.source, e.content_type, e.rest, e.data, e.due
FROM unnest($2::int[], $3::smallint[], $4::int[], $5::timestamptz[], $6::timestamptz[], $7::bigint[],
	$8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bytea[], $14::bytea[], $15::timestamptz[])
	WITH ORDINALITY AS e (topic, stripe, schema, time, expires, ttl,
		id, key, type, source, content_type, rest, data, due, n)
ORDER BY e.n
RETURNING number`

	// lockDue takes events whose time has come, at most $2 of them and about $3 bytes: who
	// comes second waits, so that they are appended in the order of their times.
	//
	//   - delayed_pkey.
	lockDue = `WITH picked AS MATERIALIZED (
	SELECT due, number, topic, key, octet_length(data) AS bytes
	FROM pawl.delayed
	WHERE namespace = $1 AND due <= {now}
	ORDER BY namespace, due, number
	LIMIT $2
	FOR UPDATE
)
SELECT p.due, p.number, p.topic, p.key
FROM (
	SELECT p.*, sum(coalesce(p.bytes, 0)) OVER (ORDER BY p.due, p.number) - coalesce(p.bytes, 0) AS before
	FROM picked AS p
) AS p
WHERE p.before < $3
ORDER BY p.due, p.number`

	// appendDue moves them into the log, with their versions ($3 times, $4 numbers, $5 versions).
	//
	//   - delayed_pkey.
	appendDueText = `,
due AS MATERIALIZED (
	DELETE FROM pawl.delayed AS d
	USING (
		SELECT $1::int AS namespace, e.*
		FROM unnest($3::timestamptz[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS e (due, number, version, n)
		OFFSET 0
	) AS e
	WHERE d.namespace = ANY (ARRAY[e.namespace]) AND d.due = e.due AND d.number = e.number
	RETURNING d.*, e.version, e.n
)
INSERT INTO pawl.event (namespace, seq, appended, topic, stripe, schema, time, expires,
	id, key, type, source, content_type, rest, data, version)
SELECT $1, nextval('pawl.event_seq'), {now}, e.topic, e.stripe, e.schema, coalesce(e.time, {now}),
	coalesce(e.expires, {now} + e.ttl * interval '1 microsecond'),
	e.id, e.key, e.type, e.source, e.content_type, e.rest, e.data, e.version
FROM (
	SELECT e.*
	FROM marked
	CROSS JOIN due AS e
	WHERE marked.held IS NOT NULL
	ORDER BY e.n
	OFFSET 0
) AS e
RETURNING seq`

	// fillDelayed says what names stand for whose events were delayed ($2 numbers).
	//
	//   - seen_delayed.
	fillDelayed = `UPDATE pawl.seen AS s
SET seq = n.seq, version = n.version
FROM (
	SELECT $1::int AS namespace, n.*
	FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS n (number, seq, version)
	OFFSET 0
) AS n
WHERE s.namespace = ANY (ARRAY[n.namespace]) AND s.seq = -n.number AND s.seq < 0`

	// nextDue is when the next one is due.
	//
	//   - delayed_pkey.
	nextDue = `SELECT {now}, (
		SELECT due
		FROM pawl.delayed
		WHERE namespace = $1 AND due > '-infinity'
		ORDER BY namespace, due
		LIMIT 1
	)`
)

// appendDue is in the epoch that its transaction has read ($6).
var appendDue = "WITH " + strings.ReplaceAll(marked, "$16", "$6") + appendDueText

// delay keeps events of a call until they are due.
func (n *naming) delay(ctx context.Context, places []int) error {
	if len(places) == 0 {
		return nil
	}
	r := n.room
	drafts, due := make([]stream.Publication, len(places)), make([]time.Time, len(places))
	for i, place := range places {
		drafts[i], due[i] = n.drafts[place], n.drafts[place].Due(n.now)
	}
	args, err := columns(r.pg.Namespace, r.mark, n.topics, drafts)
	if err != nil {
		return err
	}
	i := 0
	return n.t.Run(ctx, &pg.Statement{Text: addDelayed, Args: append(append([]any{r.pg.Namespace}, args[2:15]...), due), Each: func(scan pg.Scan) error {
		var number int64
		err := scan(&number)
		n.fresh[places[i]].Seq = -number
		i++
		return err
	}})
}

// Published is what a transaction has published, as others have to hear of it.
type Published struct{ appended, delayed bool }

// Add notes what was answered.
func (p *Published) Add(list []stream.PublishReply) {
	for i := range list {
		p.appended, p.delayed = p.appended || !list[i].Delayed, p.delayed || list[i].Delayed
	}
}

// Told lets others know of what was committed.
func (r *Room) Told(p Published) {
	if p.appended {
		r.Appended()
	}
	if p.delayed {
		r.Delayed()
	}
}

// Left has others told of what was left in a transaction whose end is not seen.
func (r *Room) Left(list []stream.PublishReply) {
	var p Published
	if p.Add(list); p.appended {
		r.hints.Notifier.Left(store.Hint{Subject: store.SubjectTopic})
	}
	if p.delayed {
		r.hints.Notifier.Left(store.Hint{Subject: store.SubjectDelay})
	}
}

// Delayed tells other processes that events were accepted that are not due yet.
func (r *Room) Delayed() { r.hints.Notifier.Say(store.Hint{Subject: store.SubjectDelay}) }

// AppendDue appends events whose time has come. When its answer is lost it is called again:
// what it has appended is not delayed any more.
func (r *Room) AppendDue(ctx context.Context, limit int) (reply store.AppendDueReply, err error) {
	if err := r.enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "append what is due", pg.Always, func(ctx context.Context, _ bool) error {
		reply = store.AppendDueReply{}
		err := r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			reply.Appended, err = r.appendDue(ctx, t, limit)
			return err
		})
		if errors.Is(err, errEpoch) {
			return errors.Join(r.anchor(ctx), pg.Fault{Err: err, Passing: true}.AsError())
		}
		if err != nil {
			return err
		}
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: nextDue, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
			var next pgtype.Timestamptz
			err := scan(&reply.Now, &next)
			reply.Next = next.Time
			return err
		}})
	})
	if reply.Appended > 0 {
		r.Appended()
	}
	return reply, err
}

// dueEvents are those that a transaction has locked.
type dueEvents struct {
	due     []time.Time
	numbers []int64
	topics  []int32
	drafts  []stream.Publication // topic and key
}

func (r *Room) appendDue(ctx context.Context, t pg.Session, limit int) (int, error) {
	var d dueEvents
	var epoch uint32
	same := false
	err := t.Run(ctx, r.life(&epoch, &same, nil), &pg.Statement{Text: lockDue, Args: []any{r.pg.Namespace, limit, store.MaxDueBytes}, Each: func(scan pg.Scan) error {
		var due time.Time
		var number int64
		var topic int32
		var e stream.Publication
		err := scan(&due, &number, &topic, &e.Key)
		d.due, d.numbers, d.topics, d.drafts = append(d.due, due), append(d.numbers, number), append(d.topics, topic), append(d.drafts, e)
		return err
	}})
	if err != nil || len(d.due) == 0 {
		return 0, err
	}
	if !same {
		return 0, errEpoch
	}
	versions, bump, err := r.numberDue(ctx, t, &d)
	if err != nil {
		return 0, err
	}
	of := make([]pgtype.Int8, len(versions))
	for i, v := range versions {
		of[i] = pgtype.Int8{Int64: v, Valid: v > 0}
	}
	var seqs []int64
	steps := append(bump, &pg.Statement{Text: appendDue, Args: []any{r.pg.Namespace, r.mark, d.due, d.numbers, of, int32(epoch)}, Each: func(scan pg.Scan) error {
		var seq int64
		err := scan(&seq)
		seqs = append(seqs, seq)
		return err
	}})
	if err := t.Run(ctx, steps...); err != nil {
		return 0, err
	}
	if len(seqs) < len(d.due) {
		return 0, errEpoch
	}
	return len(seqs), t.Run(ctx, &pg.Statement{Text: fillDelayed, Args: []any{r.pg.Namespace, d.numbers, seqs, versions}})
}

// numberDue gives events that are due the versions of their keys. Which topics are versioned
// is read anew: it may be so since they were accepted.
func (r *Room) numberDue(ctx context.Context, t pg.Session, d *dueEvents) ([]int64, []*pg.Statement, error) {
	names, numbers, versioned := map[int32]string{}, map[string]int32{}, map[int32]bool{}
	err := t.Run(ctx, &pg.Statement{Text: nameTopics, Args: []any{r.pg.Namespace, d.topics}, Each: func(scan pg.Scan) error {
		var name string
		var n int32
		var is bool
		err := scan(&name, &n, &is)
		names[n], numbers[name], versioned[n] = name, n, is
		return err
	}})
	if err != nil {
		return nil, nil, err
	}
	for i := range d.drafts {
		d.drafts[i].Topic = names[d.topics[i]]
	}
	return r.numberKeys(ctx, t, d.drafts, numbers, func(i int) bool { return versioned[d.topics[i]] })
}
