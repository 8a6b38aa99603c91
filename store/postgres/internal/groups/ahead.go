package groups

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// foreseen stands where a turn would look for events: they were read before ($14: their
	// numbers), behind a place of the shelf ($11). It takes as many as are wanted, where the shelf
	// is at that place still, the server has not crashed since, and there is no other topic: so
	// nothing can have come between them.
	//
	//   - shelf_at_pkey.
	foreseen = `
place AS MATERIALIZED (
	SELECT s.turn, s.upto, CASE WHEN s.upto = $11::bigint THEN b.n ELSE 0 END AS n
	FROM me
	CROSS JOIN LATERAL (SELECT least($6 - count(*)::int, cardinality($14::bigint[])) AS n FROM pick) AS b
	CROSS JOIN LATERAL (
		SELECT turn, upto
		FROM pawl.shelf_at
		WHERE namespace = $1 AND shelf = $5
		ORDER BY namespace DESC, shelf DESC, turn DESC
		LIMIT 1
	) AS s
	WHERE me.same AND me.topics = $13::int AND NOT me.paused AND b.n > 0
		AND NOT EXISTS (SELECT FROM suspect)
),
reached AS MATERIALIZED (
	SELECT ($14::bigint[])[place.n] AS upto, false AS more
	FROM place
	WHERE place.n > 0
),`

	// foreseenTaken are the numbers of what is taken of them.
	foreseenTaken = `coalesce(($14::bigint[])[1:(SELECT n FROM place)], '{}')`

	// readAhead reads events behind a place ($2) up to the head ($3), at most as many as are
	// looked at ($4) and wanted ($5). The data of a large one ($6) stays behind: what is read ends
	// before it.
	//
	//   - event_pkey; event_topic; event_topic, a seek for each topic; topic_trim_pkey.
	readAhead = `SELECT coalesce(octet_length(e.data) > $6::int, false), e.stripe,
	e.seq, e.topic, e.schema, e.appended, e.time, e.expires, e.id, e.key, e.type, e.source, e.content_type, e.rest,
	CASE WHEN octet_length(e.data) <= $6 THEN e.data END, e.version
FROM (
			SELECT {columns}
			{behind}
) AS e
WHERE {fits}
ORDER BY e.seq
LIMIT $5::int`
)

var (
	aheadAll    = aheadBehind(behindAll, "*")
	aheadTopic  = aheadBehind(behindTopic, "*")
	aheadTopics = aheadBehind(behindTopics, "e.*")
)

// aheadBehind is the statement that reads such events ahead.
func aheadBehind(behind, columns string) string {
	behind = strings.NewReplacer("place.upto", "$2::bigint", "place.visits", "$4::int", "$11", "$3", "$22", "$13", "$23", "$14").Replace(behind)
	fits := strings.NewReplacer("$15", "$7", "$16", "$8", "$17", "$9", "$18", "$10", "$19", "$11", "$20", "$12", "l.", "e.").Replace(fits)
	return strings.NewReplacer("{columns}", columns, "{behind}", behind, "{fits}", fits).Replace(readAhead)
}

// knew is what a turn compares of what was known of the log when it was read ahead.
type knew struct {
	epoch  uint32
	life   uuid.UUID
	newest int32 // topic
}

// ReadAhead reads what lies behind a place of a shelf, up to the head as this process knows it.
func (r *Room) ReadAhead(ctx context.Context, m *stream.Matcher, place int64, room []*store.Given) (a store.Ahead, err error) {
	if err := r.log.Enter(ctx); err != nil {
		return a, err
	}
	defer r.pg.Leave()
	head, err := r.log.Known(ctx, false)
	if err != nil {
		return a, err
	}
	topics, err := r.matching(ctx, m.Pattern, false)
	if err != nil {
		return a, err
	}
	look := visits(m)
	if look == 0 {
		look = len(room)
	}
	args := append([]any{r.pg.Namespace, place, head.Seq, look, len(room), store.TurnBytes / max(len(room), 1)}, chosen(m)...)
	text := aheadAll
	if m.Pattern.String() != ">" {
		text, args = aheadTopics, append(args, topics.ids, head.Low)
		if len(topics.ids) == 1 {
			text = aheadTopic
		}
	}
	var row log.Reader
	topicOf, ends := make([]int32, 0, len(room)), false
	err = r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: text, Args: args, Raw: func(cols [][]byte) error {
		row.Begin(cols)
		if ends = ends || row.Bool(); ends {
			return nil
		}
		stripe := int16(row.Int2())
		e := row.Entry(head.Epoch)
		*room[len(topicOf)] = store.Given{Event: e.Event, Bad: e.Bad, Stripe: stripe}
		topicOf = append(topicOf, e.Number)
		return row.Err
	}})
	if err != nil {
		return a, err
	}
	names, err := r.log.Names(ctx, topicOf)
	for i := range names {
		room[i].Event.Topic = names[i]
	}
	return store.Ahead{Place: place, Given: room[:len(names)], Knew: knew{head.Epoch, head.Life, topics.newest}}, err
}

// know is what the turn goes by: what this process knows of the log, or knew when it read ahead.
func (u *shared) know(ctx context.Context, fresh, anew bool) (err error) {
	if a := u.t.Ahead; a != nil && !u.needsTransaction() {
		if k, ok := a.Knew.(knew); ok {
			u.head, u.topics = log.Known{Epoch: k.epoch, Life: k.life}, matched{newest: k.newest}
			return nil
		}
	}
	u.t.Ahead = nil
	if u.head, err = u.room.log.Known(ctx, fresh); err != nil {
		return err
	}
	u.topics, err = u.room.matching(ctx, u.t.Match.Pattern, anew)
	return err
}

// takeAhead counts what was taken of what was read ahead.
func (u *shared) takeAhead() {
	if u.t.Ahead == nil || u.reply.From != u.t.Ahead.Place {
		return
	}
	for _, seq := range u.t.Ahead.Seqs() {
		if seq > u.reply.Upto {
			break
		}
		u.open = append(u.open, seq)
		u.reply.Taken++
	}
}
