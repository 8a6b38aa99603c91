package groups

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// lookOrdered finds a hand ($2) by its turn ($3), and whether what this process knows of
	// the log is still so: its life ($5).
	//
	//   - hand_at_pkey, consumer_group_pkey, log_life_pkey; topic_id, backwards.
	lookOrdered = `SELECT g.version, g.paused, ` + log.StillSo + `$5), coalesce((` + log.NewestTopic + `), 0), {now}
FROM pawl.hand_at AS h
JOIN pawl.consumer_group AS g ON g.namespace = h.namespace AND g.id = $4
WHERE h.namespace = $1 AND h.hand = $2 AND h.turn = $3`

	// waitingRows are those of a shelf ($2) that wait, by position.
	//
	//   - retry_line.
	waitingRows = `SELECT seq, stripe, failures, losses, due
FROM pawl.retry
WHERE namespace = $1 AND shelf = $2 AND hand = 0
ORDER BY namespace, shelf, seq
LIMIT $3`

	// laterRow is in how long the next of them is due that is not.
	//
	//   - retry_due.
	laterRow = `SELECT (extract(epoch FROM due - {now}) * 1000000)::bigint
FROM pawl.retry
WHERE namespace = $1 AND shelf = $2 AND hand = 0 AND due > {now}
ORDER BY namespace, shelf, due
LIMIT 1`

	// fitsOrdered is what a filter chooses ($9 to $14), behind where its stripe was read ($8).
	fitsOrdered = `seq > ($8::bigint[])[stripe + 1]
			AND ($9::text = '' OR key = $9)
			AND ($10::text = '' OR starts_with(key, $10))
			AND ($11::text = '' OR type = $11)
			AND ($12::text = '' OR source = $12)
			AND ($13::timestamptz IS NULL OR time >= $13)
			AND ($14::timestamptz IS NULL OR time < $14) AS fits`

	// orderedAll reads events of a range of stripes ($4 to $5) behind a number ($2), up to the
	// head ($3), at most $6; orderedTopics those of some topics ($15). Data come of what is
	// taken, and only as much as a turn may give ($7).
	//
	//   - event_pkey; event_topic, a seek for each topic, which has the stripes.
	orderedAll = `WITH looked AS MATERIALIZED (
	SELECT ` + log.Columns + `, stripe,
			` + fitsOrdered + `
	FROM pawl.event
	WHERE namespace = $1 AND seq > $2 AND seq <= $3 AND stripe BETWEEN $4::smallint AND $5::smallint
	ORDER BY namespace, seq
	LIMIT $6
)` + orderedSized

	orderedTopics = `WITH looked AS MATERIALIZED (
	SELECT e.*
	FROM (SELECT $1::int AS namespace, t.topic FROM unnest($15::int[]) AS t (topic) OFFSET 0) AS t
	CROSS JOIN LATERAL (
		SELECT ` + log.Columns + `, stripe,
			` + fitsOrdered + `
		FROM pawl.event
		WHERE event.namespace = t.namespace AND event.topic = t.topic AND event.topic > 0
			AND seq > greatest($2, CASE
				WHEN $2 < $16::bigint THEN (
					SELECT s.low
					FROM pawl.topic_trim AS s
					WHERE s.namespace = t.namespace AND s.topic = t.topic
				)
			END) AND seq <= $3 AND stripe BETWEEN $4::smallint AND $5::smallint
		ORDER BY event.namespace, event.topic, seq
		LIMIT $6
	) AS e
	ORDER BY e.seq
	LIMIT $6
)` + orderedSized

	orderedSized = `
SELECT e.stripe, e.fits, e.within, e.seq, e.topic, e.schema, e.appended, e.time, e.expires,
	e.id, e.key, e.type, e.source, e.content_type,
	CASE WHEN e.within THEN e.rest END, CASE WHEN e.within THEN e.data END, e.version
FROM (
	SELECT l.*, l.fits AND (count(*) FILTER (WHERE l.fits) OVER w = 1
			OR coalesce(sum(octet_length(l.data)) FILTER (WHERE l.fits) OVER w, 0) <= $7::bigint) AS within
	FROM looked AS l
	WINDOW w AS (ORDER BY l.seq)
) AS e
ORDER BY e.seq`

	// givenRows are the events of rows ($2).
	//
	//   - event_pkey.
	givenRows = `SELECT ` + entryColumns + `
FROM (SELECT $1::int AS namespace, n.seq FROM unnest($2::bigint[]) AS n (seq) OFFSET 0) AS n
JOIN pawl.event AS e ON e.namespace = ANY (ARRAY[n.namespace]) AND e.seq = n.seq`

	// putOrdered moves a hand on: what it has open ($4), how far its stripes were read ($5 to
	// $7), which rows it takes ($9, alone: $10) and which are done ($11).
	//
	//   - hand_at_pkey, retry_pkey.
	putOrdered = `WITH put AS MATERIALIZED (
	UPDATE pawl.hand_at
	SET turn = turn + 1, open = $4::bigint[], turned = {now},
		upto = $5, behind = $6::smallint[], behind_at = $7::bigint[]
	WHERE namespace = $1 AND hand = $2 AND turn = $3
	RETURNING 1 AS one
),
took AS (
	UPDATE pawl.retry AS r
	SET hand = $2, alone = $10::boolean, wants = 0
	WHERE r.namespace = $1 AND r.shelf = $8 AND r.seq = ANY ($9::bigint[]) AND EXISTS (SELECT FROM put)
),
gone AS (
	DELETE FROM pawl.retry AS r
	WHERE r.namespace = $1 AND r.shelf = $8 AND r.seq = ANY ($11::bigint[]) AND r.hand = $2
		AND EXISTS (SELECT FROM put)
)
SELECT one
FROM put`

	notDurable = `SELECT set_config('synchronous_commit', 'off', true)`
)

// orderedTurn is one of a member of an ordered group.
type orderedTurn struct {
	turn
	head    log.Known
	topics  matched
	same    bool // the head holds
	known   bool // there are no other topics
	paused  bool
	now     time.Time
	version int64
	visited int
	plan    store.OrderedPlan
	alone   bool
	upto    func() int64 // how far events were read
	missing []int64      // rows whose event is gone from the log
}

// turnOrdered settles and takes from the member's own stripes; then it gives and takes
// stripes where the members have changed, and looks once more.
func (r *Room) turnOrdered(ctx context.Context, t *store.Turn) (reply store.TurnReply, err error) {
	next := *t
	fresh, anew, shared := false, false, false
	for range 6 {
		head, err := r.log.Known(ctx, fresh)
		if err != nil {
			return reply, err
		}
		topics, err := r.matching(ctx, t.Match.Pattern, anew)
		if err != nil {
			return reply, err
		}
		u := &orderedTurn{turn: turn{room: r, t: &next}, head: head, topics: topics}
		if err := u.run(ctx); err != nil {
			return reply, err
		}
		given := append(reply.Given, u.reply.Given...)
		reply = u.reply
		reply.Given = given
		busy := next.Busy
		if len(u.reply.Given) > 0 {
			busy = map[int16]bool{}
			for s := range next.Busy {
				busy[s] = true
			}
			for i := range u.reply.Given {
				busy[u.reply.Given[i].Stripe] = true
			}
		}
		next = store.Turn{Hand: reply.Hand, Match: t.Match, Want: t.Want, Open: u.open, Busy: busy}
		next.Want.N -= len(given)
		next.Want.Idle = t.Want.Idle && len(given) == 0
		took, err := r.share(ctx, &next, u.version)
		if err != nil {
			return reply, err
		}
		reply.Hand = next.Hand
		short := next.Want.N > 0 && !reply.More && !u.alone && !u.paused
		switch {
		case !u.same:
			if _, err := r.log.AskHead(ctx); err != nil {
				return reply, err
			}
		case !u.known:
			anew = true
		case short && took && !shared:
			shared = true
		case short && !fresh:
			now, err := r.log.Known(ctx, true)
			if err != nil || now == head {
				return reply, err
			}
			fresh = true
		default:
			return reply, nil
		}
		if next.Want.N < 1 {
			return reply, nil
		}
	}
	reply.More = true
	return reply, nil
}

// run makes one turn. When its answer is lost it finds out whether it has happened.
func (u *orderedTurn) run(ctx context.Context) error {
	t, r := u.t, u.room
	if err := u.prepare(ctx); err != nil {
		return err
	}
	news := u.news()
	err := r.pg.Retry(ctx, "take a turn", pg.Always, func(ctx context.Context, again bool) error {
		if again {
			if _, err := u.happened(ctx, u.head); err != nil {
				return err
			}
		}
		u.reset()
		u.visited, u.missing = 0, nil
		if err := u.read(ctx); err != nil {
			return err
		}
		if !u.found {
			return stream.ErrFeedLost
		}
		return u.write(ctx)
	})
	if err != nil {
		return err
	}
	u.reply.Head = u.head.Position()
	if len(u.missing) > 0 {
		gone := &pg.Statement{Text: forgetRows, Args: []any{r.pg.Namespace, t.Hand.Shelf, u.missing, t.Hand.ID}}
		if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, gone); err != nil {
			return err
		}
		u.reply.More, u.alone = true, u.alone && len(u.reply.Given) > 0
	}
	if err := u.name(ctx); err != nil {
		return err
	}
	if len(t.Dead) > 0 && t.Letters != "" {
		r.log.Appended()
	}
	if news {
		r.tell()
	}
	return nil
}

// ours are the stripes that the member has and should have.
func (u *turn) ours() map[int16]int64 {
	h, list := &u.t.Hand, map[int16]int64{}
	for s, at := range h.Stripes {
		if s >= h.First && s < h.End {
			list[s] = at
		}
	}
	return list
}

// read looks at what waits and at new events, in one round trip where nothing waits.
func (u *orderedTurn) read(ctx context.Context) error {
	t, h, r := u.t, &u.t.Hand, u.room
	var waiting []store.Waiting
	var due pgtype.Int8
	u.plan = store.PlanOrdered(t, u.ours(), nil, time.Time{})
	look := &pg.Statement{Text: lookOrdered, Args: []any{r.pg.Namespace, h.ID, h.Number, h.Group, u.head.Life},
		Each: func(scan pg.Scan) error {
			var newest int32
			u.found = true
			err := scan(&u.version, &u.paused, &u.same, &newest, &u.now)
			u.known = newest == u.topics.newest
			return err
		}}
	wait := &pg.Statement{Text: waitingRows, Args: []any{r.pg.Namespace, h.Shelf, store.MaxWaiting}, Each: func(scan pg.Scan) error {
		var w store.Waiting
		var failures, losses int32
		err := scan(&w.Seq, &w.Stripe, &failures, &losses, &w.Due)
		w.Failures, w.Losses = int(failures), int(losses)
		waiting = append(waiting, w)
		return err
	}}
	later := &pg.Statement{Text: laterRow, Args: []any{r.pg.Namespace, h.Shelf}, Each: func(scan pg.Scan) error { return scan(&due) }}
	steps := []*pg.Statement{look, wait, later}
	if u.plan.Low != store.NotRead {
		steps = append(steps, u.events())
	}
	if err := r.pg.Send(ctx, r.pg.Work, nil, steps...); err != nil || !u.found {
		return err
	}
	u.reply.Hand.Version = u.version
	if u.reply.Next = -1; due.Valid {
		u.reply.Next = time.Duration(due.Int64) * time.Microsecond
	}
	if u.paused || !u.same || !u.known {
		u.forget()
		return nil
	}
	if len(waiting) == 0 {
		return nil
	}
	u.forget()
	u.plan = store.PlanOrdered(t, u.ours(), waiting, u.now)
	return u.readAgain(ctx)
}

// forget drops what was read.
func (u *orderedTurn) forget() {
	u.reply.Given, u.topicOf, u.visited = nil, nil, 0
	u.plan = store.OrderedPlan{Low: store.NotRead}
	for i := range u.plan.From {
		u.plan.From[i] = store.NotRead
	}
}

// readAgain reads what waited, then new events of the stripes of which nothing does.
func (u *orderedTurn) readAgain(ctx context.Context) error {
	r := u.room
	found := map[int64]log.Entry{}
	seqs := make([]int64, len(u.plan.Again))
	for i, w := range u.plan.Again {
		seqs[i] = w.Seq
	}
	steps := []*pg.Statement{r.eventsOf(seqs, u.head.Epoch, found)}
	var given []store.Given
	var topicOf []int32
	if u.plan.Low != store.NotRead {
		steps = append(steps, u.events())
	}
	if err := r.pg.Send(ctx, r.pg.Work, nil, steps...); err != nil {
		return err
	}
	for _, w := range u.plan.Again {
		e, ok := found[w.Seq]
		if !ok {
			u.missing = append(u.missing, w.Seq) // gone from the log
			continue
		}
		topicOf = append(topicOf, e.Number)
		given = append(given, store.Given{
			Event: e.Event, Bad: e.Bad, Stripe: w.Stripe, Failures: w.Failures, Losses: w.Losses, Alone: u.plan.Alone, Row: true,
		})
	}
	u.alone = u.plan.Alone
	u.reply.Given, u.topicOf = append(given, u.reply.Given...), append(topicOf, u.topicOf...)
	return nil
}

// eventsOf is the statement that reads the events of rows.
func (r *Room) eventsOf(seqs []int64, epoch uint32, found map[int64]log.Entry) *pg.Statement {
	return &pg.Statement{Text: givenRows, Args: []any{r.pg.Namespace, seqs}, Each: func(scan pg.Scan) error {
		var w log.Row
		if err := scan(w.Dest()...); err != nil {
			return err
		}
		e := w.Entry(epoch)
		found[e.Position.Seq()] = e
		return nil
	}}
}

// events reads new events by the plan. The last that is looked at says how far it came.
func (u *orderedTurn) events() *pg.Statement {
	p, m := &u.plan, u.t.Match
	visits := p.Visits
	if m.Narrow() {
		visits = store.TurnVisits
	}
	args := []any{
		u.room.pg.Namespace, p.Low, u.head.Seq, p.First, p.Last, visits, int64(store.TurnBytes), p.From[:],
		m.Key, m.KeyPrefix, m.Type, m.Source, timeOrNull(m.After), timeOrNull(m.Before),
	}
	text := orderedAll
	if m.Pattern.String() != ">" {
		text, args = orderedTopics, append(args, u.topics.ids, u.head.Low)
	}
	seen, taken, stopped := 0, 0, false
	upto := p.Low
	p2 := p
	u.reply.More = false
	u.upto = func() int64 {
		if seen < visits && !stopped {
			return max(upto, u.head.Seq)
		}
		return upto
	}
	return &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		var w log.Row
		var stripe int16
		var fits, within bool
		if err := scan(append([]any{&stripe, &fits, &within}, w.Dest()...)...); err != nil {
			return err
		}
		seen++
		u.visited++
		if stopped {
			return nil
		}
		if fits && (!within || taken == p2.N) {
			stopped, u.reply.More = true, !within
			return nil
		}
		e := w.Entry(u.head.Epoch)
		upto = e.Position.Seq()
		if fits {
			taken++
			u.topicOf = append(u.topicOf, e.Number)
			u.reply.Given = append(u.reply.Given, store.Given{Event: e.Event, Bad: e.Bad, Stripe: stripe})
		}
		if seen == visits && taken < p2.N {
			u.reply.More = true
		}
		return nil
	}}
}

// write stores the turn, unless nothing has happened.
func (u *orderedTurn) write(ctx context.Context) error {
	t, r := u.t, u.room
	h := &u.reply.Hand
	if u.plan.Low != store.NotRead {
		h.Stripes = cloneStripes(h.Stripes)
		u.plan.Read(h.Stripes, u.upto())
	}
	u.open = append([]int64(nil), t.Open...)
	if !t.Settles && u.visited == 0 && len(u.plan.Again) == 0 {
		return nil
	}
	if u.needsTransaction() {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(s *pg.Transaction) error {
			open, done, err := u.settleIn(ctx, s)
			if err != nil {
				return err
			}
			u.open = append([]int64(nil), open...)
			put := u.put(done)
			raised := int64(0)
			return s.Commit(ctx, put, u.raised(&raised))
		})
	}
	steps := []*pg.Statement{{Text: notDurable}}
	if len(t.Back) > 0 {
		steps = append(steps, u.putRows(rowsOf(t.Hand.ID, t.Back, nil)))
	}
	if len(t.Acked) > 0 {
		steps = append(steps, u.forgetAcked())
	}
	put := u.put(t.Done)
	steps = append(steps, put)
	raised := int64(0)
	if u.news() {
		steps = append(steps, u.raised(&raised))
	}
	if err := r.pg.Send(ctx, r.pg.Work, pg.SharedLimits, steps...); err != nil {
		return err
	}
	if put.Hits == 0 {
		return stream.ErrFeedLost
	}
	return nil
}

func cloneStripes(list map[int16]int64) map[int16]int64 {
	c := make(map[int16]int64, len(list))
	for s, at := range list {
		c[s] = at
	}
	return c
}

// put is the statement that moves the hand on.
func (u *orderedTurn) put(done []int64) *pg.Statement {
	h := &u.reply.Hand
	for i := range u.reply.Given {
		if g := &u.reply.Given[i]; !g.Row {
			u.open = append(u.open, g.Event.Position.Seq())
		}
	}
	open, again := slices.Clone(u.open), make([]int64, len(u.plan.Again))
	for i, w := range u.plan.Again {
		again[i] = w.Seq
	}
	if open == nil {
		open = []int64{}
	}
	if done == nil {
		done = []int64{}
	}
	upto, behind, at := store.Places(h.Stripes)
	h.Number = u.t.Hand.Number + 1
	return &pg.Statement{Text: putOrdered, Args: []any{
		u.room.pg.Namespace, h.ID, u.t.Hand.Number, open, upto, behind, at, h.Shelf, again, u.plan.Alone, done,
	}, Each: func(pg.Scan) error { return nil }}
}
