package groups

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// takeTurn lets the members of a shelf take turns, and lets the commit not wait for the
	// disk: what a crash takes back is only delivered again.
	takeTurn = `SELECT pg_advisory_xact_lock($1), set_config('synchronous_commit', 'off', true)`

	// me finds the hand ($2) by its turn ($3), and whether what this process knows of the log
	// is still so: its life ($12) and its topics ($13).
	//
	//   - hand_at_pkey, consumer_group_pkey, log_life_pkey; topic_id, backwards.
	me = `WITH me AS MATERIALIZED (
	SELECT g.version, g.paused, ` + log.StillSo + `$12) AS same,
		coalesce((` + log.NewestTopic + `), 0) AS topics
	FROM pawl.hand_at AS h
	JOIN pawl.consumer_group AS g ON g.namespace = h.namespace AND g.id = $4
	WHERE h.namespace = $1 AND h.hand = $2 AND h.turn = $3
),`

	// picked takes what waits on the shelf ($5) and is due: one that must be alone, for an
	// idle member ($7), or up to as many as are wanted ($6) of the others. A busy member that
	// meets a suspect takes nothing, unless another waits for it: one that is dead, whose last
	// turn came between, does not count.
	//
	//   - retry_suspect, retry_due, hand_pkey.
	picked = `
suspect AS MATERIALIZED (
	SELECT r.seq, r.wants
	FROM me
	CROSS JOIN LATERAL (
		SELECT seq, wants
		FROM pawl.retry
		WHERE namespace = $1 AND shelf = $5 AND hand = 0 AND losses >= 2
			AND due <= {now}
			AND ($7::boolean OR wants = 0 OR wants = $2
				OR NOT EXISTS (SELECT FROM pawl.hand AS h WHERE h.namespace = $1 AND h.id = retry.wants))
		ORDER BY namespace, shelf, due
		LIMIT 1
		FOR UPDATE SKIP LOCKED
	) AS r
	WHERE $6::int > 0 AND NOT me.paused
),
wanted AS (
	UPDATE pawl.retry AS r
	SET wants = $2
	FROM suspect
	WHERE NOT $7 AND r.namespace = $1 AND r.shelf = $5 AND r.seq = suspect.seq
),
pick AS MATERIALIZED (
	SELECT seq, true AS alone
	FROM suspect
	WHERE $7
	UNION ALL
	SELECT r.seq, false
	FROM me
	CROSS JOIN LATERAL (
		SELECT seq
		FROM pawl.retry
		WHERE namespace = $1 AND shelf = $5 AND hand = 0 AND losses < 2
			AND due <= {now}
		ORDER BY namespace, shelf, due, seq
		LIMIT $6
		FOR UPDATE SKIP LOCKED
	) AS r
	WHERE NOT me.paused AND NOT EXISTS (SELECT FROM suspect)
),`

	// bound is how many new events are wanted ($6 less what was picked), and how many are
	// looked at for them ($14; 0: as many).
	bound = `
bound AS MATERIALIZED (
	SELECT b.n, CASE WHEN $14::int = 0 THEN b.n ELSE $14::int END AS visits
	FROM me
	CROSS JOIN LATERAL (SELECT $6 - count(*)::int AS n FROM pick) AS b
	WHERE me.same AND me.topics = $13::int AND NOT me.paused AND b.n > 0
		AND NOT EXISTS (SELECT FROM suspect)
),
place AS MATERIALIZED (
	SELECT s.turn, s.upto, bound.n, bound.visits
	FROM bound
	CROSS JOIN LATERAL (
		SELECT turn, upto
		FROM pawl.shelf_at
		WHERE namespace = $1 AND shelf = $5
		ORDER BY namespace DESC, shelf DESC, turn DESC
		LIMIT 1
	) AS s
),`

	// fits is what a filter chooses ($15 to $20).
	fits = `($15::text = '' OR l.key = $15)
			AND ($16::text = '' OR starts_with(l.key, $16))
			AND ($17::text = '' OR l.type = $17)
			AND ($18::text = '' OR l.source = $18)
			AND ($19::timestamptz IS NULL OR l.time >= $19)
			AND ($20::timestamptz IS NULL OR l.time < $20)`

	// behindAll are the events behind the shelf up to the head ($11), behindTopic those of one
	// topic ($22), behindTopics those of some: at most as many as are looked at. The first two
	// are read as far as they are asked for.
	//
	// Who begins before the highest low mark ($23) seeks topics from their own: what was trimmed
	// is not walked, also while somebody's snapshot keeps its entries.
	//
	//   - event_pkey; event_topic; event_topic, a seek for each topic; topic_trim_pkey.
	behindAll = `FROM pawl.event
			WHERE event.namespace = $1 AND seq > place.upto AND seq <= $11::bigint
			ORDER BY event.namespace, seq
			LIMIT place.visits`

	behindTopic = `FROM pawl.event
			WHERE event.namespace = $1 AND event.topic = ($22::int[])[1] AND event.topic > 0
				AND seq > greatest(place.upto, CASE
					WHEN place.upto < $23::bigint THEN (
						SELECT s.low
						FROM pawl.topic_trim AS s
						WHERE s.namespace = $1 AND s.topic = ($22::int[])[1]
					)
				END) AND seq <= $11::bigint
			ORDER BY event.namespace, event.topic, seq
			LIMIT place.visits`

	behindTopics = `FROM (SELECT $1::int AS namespace, t.topic FROM unnest($22::int[]) AS t (topic) OFFSET 0) AS t
			CROSS JOIN LATERAL (
				SELECT *
				FROM pawl.event
				WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0
					AND seq > greatest(place.upto, CASE
						WHEN place.upto < $23::bigint THEN (
							SELECT s.low
							FROM pawl.topic_trim AS s
							WHERE s.namespace = t.namespace AND s.topic = t.topic
						)
					END) AND seq <= $11::bigint
				ORDER BY event.namespace, event.topic, seq
				LIMIT place.visits
			) AS e
			ORDER BY e.seq
			LIMIT place.visits`

	// fit are as many of them as are wanted, in order: their numbers. What they say is read
	// afterwards (givenEvents), and goes to the client without being kept here.
	fit = `
fit AS MATERIALIZED (
	SELECT e.seq, e.bytes
	FROM place
	CROSS JOIN LATERAL (
		SELECT l.seq, l.bytes
		FROM (
			SELECT seq, key, type, source, time, octet_length(data) AS bytes
			{behind}
		) AS l
		WHERE ` + fits + `
		ORDER BY l.seq
		LIMIT place.n
	) AS e
),`

	// cut is how far of it the bytes of a turn ($21) reach: all of it, mostly. looked is how far
	// was looked, where that is not said by what was found.
	cut = `
cut AS MATERIALIZED (
	SELECT f.n, CASE
			WHEN f.bytes <= $21::bigint THEN f.last
			ELSE (SELECT max(w.seq)
				FROM (
					SELECT seq, row_number() OVER w AS place, sum(bytes) OVER w AS bytes
					FROM fit
					WINDOW w AS (ORDER BY seq ROWS UNBOUNDED PRECEDING)
				) AS w
				WHERE w.place = 1 OR coalesce(w.bytes, 0) <= $21)
		END AS upto, f.last
	FROM (SELECT count(*) AS n, max(seq) AS last, coalesce(sum(bytes), 0) AS bytes FROM fit) AS f
),
looked AS MATERIALIZED (
	SELECT count(*) AS n, max(e.seq) AS last
	FROM place
	CROSS JOIN LATERAL (
		SELECT seq
		{behind}
	) AS e
	WHERE (SELECT n FROM cut) < place.n
),
reached AS MATERIALIZED (
	SELECT CASE
			WHEN cut.upto < cut.last OR cut.n = place.n THEN cut.upto
			WHEN looked.n >= place.visits THEN looked.last
			ELSE greatest($11, looked.last)
		END AS upto,
		cut.upto < cut.last OR cut.n < place.n AND looked.n >= place.visits AS more
	FROM place
	CROSS JOIN cut
	CROSS JOIN looked
	WHERE cut.n > 0 OR looked.n > 0
),`

	// fitting are the numbers of the events that are taken.
	fitting = `array(SELECT seq FROM fit WHERE seq <= (SELECT upto FROM cut) ORDER BY seq)`

	// written moves hand and shelf, and gives the hand what was picked and taken. $8: something is
	// settled; $9: what stays open; $10: rows that are done. The turn of the shelf is a scalar, so
	// that it is sought: a join would step over every version that a held snapshot keeps.
	//
	//   - hand_at_pkey, shelf_at_pkey, retry_pkey.
	written = `
put AS (
	UPDATE pawl.hand_at
	SET turn = turn + 1, turned = {now},
		open = $9::bigint[] || {taken}
	WHERE namespace = $1 AND hand = $2 AND turn = $3
		AND ($8::boolean OR EXISTS (SELECT FROM reached) OR EXISTS (SELECT FROM pick))
	RETURNING 1 AS one
),
move AS (
	UPDATE pawl.shelf_at AS s
	SET turn = s.turn + 1, upto = reached.upto
	FROM reached
	WHERE s.namespace = $1 AND s.shelf = $5 AND s.turn = (SELECT turn FROM place)
		AND EXISTS (SELECT FROM put)
),
again AS (
	UPDATE pawl.retry AS r
	SET hand = $2, alone = pick.alone, wants = 0
	FROM pick
	WHERE r.namespace = $1 AND r.shelf = $5 AND r.seq = pick.seq
		AND r.hand = 0
		AND EXISTS (SELECT FROM put)
	RETURNING r.seq, r.stripe, r.failures, r.losses, r.alone
),
gone AS (
	DELETE FROM pawl.retry AS r
	WHERE r.namespace = $1 AND r.shelf = $5 AND r.seq = ANY ($10::bigint[])
		AND r.hand = $2
		AND EXISTS (SELECT FROM put)
)
SELECT me.version, me.same, me.topics = $13 OR me.paused, EXISTS (SELECT FROM put),
	coalesce((SELECT wants FROM suspect), -1),
	coalesce((SELECT more FROM reached), false),
	coalesce((SELECT upto FROM place), -1), coalesce((SELECT upto FROM reached), (SELECT upto FROM place), -1),
	(SELECT (extract(epoch FROM r.due - {now}) * 1000000)::bigint
		FROM pawl.retry AS r
		WHERE r.namespace = $1 AND r.shelf = $5 AND r.hand = 0 AND r.due > {now}
		ORDER BY r.namespace, r.shelf, r.due
		LIMIT 1),
	coalesce(a.seq, 0), coalesce(a.stripe, 0), coalesce(a.failures, 0), coalesce(a.losses, 0), coalesce(a.alone, false)
FROM me
LEFT JOIN again AS a ON true
ORDER BY a.seq`

	// givenEvents are the events that a turn has taken behind the shelf: those of the hand
	// ($2), which is at the next turn ($3), behind what it had ($4). It is a statement of the
	// same transaction: its rows go out as they are read, where those of the one before were
	// kept, joined and sorted.
	//
	//   - hand_at_pkey, event_pkey.
	givenEvents = `SELECT e.stripe, ` + entryColumns + `
FROM (
	SELECT h.namespace, n.seq
	FROM pawl.hand_at AS h
	CROSS JOIN LATERAL unnest(h.open[$4::int + 1:]) AS n (seq)
	WHERE h.namespace = $1 AND h.hand = $2 AND h.turn = $3
	OFFSET 0
) AS n
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[n.namespace]) AND e.seq = n.seq`

	// givenBetween are the same, of all topics or of one: what fits from the first that was
	// taken to the last, so that they need not be sought one by one.
	//
	//   - hand_at_pkey, event_pkey; event_topic.
	givenBetween = `SELECT e.stripe, ` + entryColumns + `
FROM (
	SELECT h.namespace, h.open[$4::int + 1] AS low, h.open[cardinality(h.open)] AS high
	FROM pawl.hand_at AS h
	WHERE h.namespace = $1 AND h.hand = $2 AND h.turn = $3
	OFFSET 0
) AS h
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[h.namespace]) {topic}AND e.seq BETWEEN h.low AND h.high
WHERE {fits}`

	entryColumns = `e.seq, e.topic, e.schema, e.appended, e.time, e.expires,
		e.id, e.key, e.type, e.source, e.content_type, e.rest, e.data, e.version`

	// raise says that there may be news for other members.
	//
	//   - consumer_group_pkey.
	raise = `UPDATE pawl.consumer_group
SET version = version + 1
WHERE namespace = $1 AND id = $2
RETURNING version`

	// forgetRows removes rows of a hand whose event is gone from the log.
	//
	//   - retry_pkey.
	forgetRows = `DELETE FROM pawl.retry
WHERE namespace = $1 AND shelf = $2 AND seq = ANY ($3::bigint[]) AND hand = $4`
)

var (
	turnAll    = turnBehind(behindAll)
	turnTopic  = turnBehind(behindTopic)
	turnTopics = turnBehind(behindTopics)
	turnAhead  = strings.ReplaceAll(me+picked+foreseen+written, "{taken}", foreseenTaken)

	givenAll   = givenOf("")
	givenTopic = givenOf("AND e.topic = ANY (ARRAY[$11::int]) AND e.topic > 0 ")
)

// turnBehind is the statement that reads such events.
func turnBehind(behind string) string {
	return strings.NewReplacer("{behind}", behind, "{taken}", fitting).Replace(me + picked + bound + fit + cut + written)
}

// givenOf is the statement that reads what was taken of all topics, or of one.
func givenOf(topic string) string {
	chosen := strings.NewReplacer("$15", "$5", "$16", "$6", "$17", "$7", "$18", "$8", "$19", "$9", "$20", "$10", "l.", "e.").Replace(fits)
	return strings.NewReplacer("{topic}", topic, "{fits}", chosen).Replace(givenBetween)
}

// Turn settles what a member says and gives it more.
func (r *Room) Turn(ctx context.Context, t *store.Turn) (store.TurnReply, error) {
	if err := r.log.Enter(ctx); err != nil {
		return store.TurnReply{}, err
	}
	defer r.pg.Leave()
	if t.Hand.Mode == stream.Ordered {
		return r.turnOrdered(ctx, t)
	}
	return r.turnShared(ctx, t)
}

// turnShared makes turns until one has looked at the log as it is: what this process knows
// of its head and its topics may be old.
func (r *Room) turnShared(ctx context.Context, t *store.Turn) (reply store.TurnReply, err error) {
	next := *t
	fresh, anew := false, false
	for range 4 {
		u := &shared{turn: turn{room: r, t: &next}}
		if err := u.know(ctx, fresh, anew); err != nil {
			return reply, err
		}
		if err := u.run(ctx); err != nil {
			return reply, err
		}
		given := u.reply.Given
		if len(reply.Given) > 0 {
			given = append(reply.Given, given...)
		}
		reply = u.reply
		reply.Given = given
		short := len(given)+reply.Taken < t.Want.N && !reply.More
		switch {
		case u.suspect >= 0: // nothing comes beside it
			return reply, nil
		case !u.same:
			if _, err := r.log.AskHead(ctx); err != nil {
				return reply, err
			}
		case !u.known:
			anew = true
		case next.Ahead != nil && short && reply.Taken == 0: // the shelf is elsewhere
		case next.Ahead != nil:
			reply.More = reply.More || short
			return reply, nil
		case short && !fresh:
			now, err := r.log.Known(ctx, true)
			if err != nil || now == u.head {
				return reply, err
			}
			fresh = true
		default:
			return reply, nil
		}
		// The rest is another turn of the same hand, which settles nothing more.
		next = store.Turn{Hand: reply.Hand, Match: t.Match, Want: t.Want, Open: u.open}
		next.Want.N -= len(given)
		next.Want.Idle = t.Want.Idle && len(given) == 0
		if next.Want.N < 1 {
			return reply, nil
		}
	}
	reply.More = true // the log changes faster than we look
	return reply, nil
}

// turn is one under way.
type turn struct {
	room    *Room
	t       *store.Turn
	reply   store.TurnReply
	open    []int64 // what the hand has open without a row, afterwards
	topicOf []int32 // the events that are given: numbers
	found   bool    // the hand was at its turn
}

// shared is a turn of a member that shares a shelf.
type shared struct {
	turn
	head    log.Known
	topics  matched
	same    bool          // the head holds
	known   bool          // there are no other topics
	put     bool          // the hand has moved on
	suspect int64         // whom one that must be alone waited for, 0: nobody; -1: there is none
	picked  []store.Given // of retry: events without what they say
	missing []int64
}

func (u *shared) statement(open, done []int64) *pg.Statement {
	t, h := u.t, &u.t.Hand
	m := t.Match
	if open == nil {
		open = []int64{}
	}
	if done == nil {
		done = []int64{}
	}
	args := []any{u.room.pg.Namespace, h.ID, h.Number, h.Group, h.Shelf, t.Want.N, t.Want.Idle, t.Settles, open, done}
	if a := t.Ahead; a != nil {
		args = append(args, a.Place, u.head.Life, u.topics.newest, a.Seqs())
		return &pg.Statement{Text: turnAhead, Args: args, Each: u.read}
	}
	args = append(append(append(args, u.head.Seq, u.head.Life, u.topics.newest, visits(m)), chosen(m)...), int64(store.TurnBytes))
	text := turnAll
	if m.Pattern.String() != ">" {
		text, args = turnTopics, append(args, u.topics.ids, u.head.Low)
		if len(u.topics.ids) == 1 {
			text = turnTopic
		}
	}
	return &pg.Statement{Text: text, Args: args, Each: u.read}
}

// visits is how many events are looked at; 0: as many as are wanted.
func visits(m *stream.Matcher) int {
	if m.Narrow() {
		return store.TurnVisits
	}
	return 0
}

// chosen are the parameters of fits.
func chosen(m *stream.Matcher) []any {
	return []any{m.Key, m.KeyPrefix, m.Type, m.Source, timeOrNull(m.After), timeOrNull(m.Before)}
}

func timeOrNull(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// read takes one row of the answer in.
func (u *shared) read(scan pg.Scan) error {
	var due pgtype.Int8
	var seq int64
	var failures, losses int32
	g := store.Given{Row: true}
	err := scan(&u.reply.Hand.Version, &u.same, &u.known, &u.put, &u.suspect, &u.reply.More, &u.reply.From, &u.reply.Upto, &due,
		&seq, &g.Stripe, &failures, &losses, &g.Alone)
	if err != nil {
		return err
	}
	u.found, u.reply.Next = true, -1
	if due.Valid {
		u.reply.Next = time.Duration(due.Int64) * time.Microsecond
	}
	if seq > 0 {
		g.Event.Position = stream.At(u.head.Epoch, seq)
		g.Failures, g.Losses = int(failures), int(losses)
		u.picked = append(u.picked, g)
	}
	return nil
}

// given is the statement that reads what the turn has taken, beside what the hand had.
func (u *shared) given(had int) *pg.Statement {
	h := &u.t.Hand
	var w log.Row
	var stripe int16
	dest := append([]any{&stripe}, w.Dest()...)
	text, args := givenEvents, []any{u.room.pg.Namespace, h.ID, h.Number + 1, had}
	m := u.t.Match
	switch {
	case m.Pattern.String() == ">":
		text, args = givenAll, append(args, chosen(m)...)
	case len(u.topics.ids) == 1:
		text, args = givenTopic, append(append(args, chosen(m)...), u.topics.ids[0])
	}
	return &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		if err := scan(dest...); err != nil || !u.put {
			return err
		}
		if u.reply.Given == nil {
			u.reply.Given, u.topicOf = make([]store.Given, 0, u.t.Want.N), make([]int32, 0, u.t.Want.N)
		}
		e := w.Entry(u.head.Epoch)
		u.reply.Given = append(u.reply.Given, store.Given{Event: e.Event, Bad: e.Bad, Stripe: stripe})
		u.topicOf = append(u.topicOf, e.Number)
		return nil
	}}
}

// givenAgain reads the events that were picked: they come before the others.
func (u *shared) givenAgain(ctx context.Context) error {
	if len(u.picked) == 0 {
		return nil
	}
	r, found, seqs := u.room, map[int64]log.Entry{}, make([]int64, len(u.picked))
	for i := range u.picked {
		seqs[i] = u.picked[i].Event.Position.Seq()
	}
	if err := r.pg.Send(ctx, r.pg.Work, nil, r.eventsOf(seqs, u.head.Epoch, found)); err != nil {
		return err
	}
	var given []store.Given
	var topicOf []int32
	for _, g := range u.picked {
		seq := g.Event.Position.Seq()
		e, ok := found[seq]
		if !ok {
			u.missing = append(u.missing, seq)
			continue
		}
		g.Event, g.Bad = e.Event, e.Bad
		given, topicOf = append(given, g), append(topicOf, e.Number)
	}
	u.reply.Given, u.topicOf = append(given, u.reply.Given...), append(topicOf, u.topicOf...)
	return nil
}
