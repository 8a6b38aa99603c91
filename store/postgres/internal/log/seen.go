package log

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// claimSeen puts names that nobody has, or whose window is over ($3 topics, $4 whether they
	// are idempotency keys, $5 names), in one order for all, and waits for transactions that
	// have put the same ones. They stand for nothing yet.
	//
	//   - seen_pkey.
	claimSeen = `INSERT INTO pawl.seen AS s (namespace, topic, key, name, event, seq, call, expires)
SELECT $1, n.topic, n.key, n.name, '', 0, $2, {now} + interval '1 day'
FROM unnest($3::int[], $4::boolean[], $5::text[]) WITH ORDINALITY AS n (topic, key, name, place)
ORDER BY n.place
ON CONFLICT (namespace, topic, key, name) DO UPDATE
SET event = '', seq = 0, call = excluded.call, expires = excluded.expires
WHERE s.expires <= {now}`

	// findSeen reads what names stand for, with a later snapshot.
	//
	//   - seen_pkey.
	findSeen = `SELECT n.place, s.event, s.seq, s.call
FROM (
	SELECT $1::int AS namespace, n.*
	FROM unnest($2::int[], $3::boolean[], $4::text[]) WITH ORDINALITY AS n (topic, key, name, place)
	OFFSET 0
) AS n
JOIN pawl.seen AS s
	ON s.namespace = ANY (ARRAY[n.namespace]) AND s.topic = n.topic AND s.key = n.key AND s.name = n.name`

	// fillSeen says what names stand for that stood for nothing.
	//
	//   - seen_pkey.
	fillSeen = `UPDATE pawl.seen AS s
SET event = n.event, seq = n.seq
FROM (
	SELECT $1::int AS namespace, n.*
	FROM unnest($2::int[], $3::boolean[], $4::text[], $5::text[], $6::bigint[]) AS n (topic, key, name, event, seq)
	OFFSET 0
) AS n
WHERE s.namespace = ANY (ARRAY[n.namespace]) AND s.topic = n.topic AND s.key = n.key AND s.name = n.name AND s.seq = 0`

	readEpoch = "SELECT epoch FROM pawl.epoch"
)

// seenNames are the names of a call, each once, in the order in which all calls take them.
type seenNames struct {
	list   []stream.SeenName
	topics []int32
	keys   []bool
	texts  []string
}

func namesOf(drafts []stream.Publication, topics map[string]int32) *seenNames {
	s := &seenNames{}
	for i := range drafts {
		s.list = append(s.list, drafts[i].Names()...)
	}
	slices.SortFunc(s.list, func(a, b stream.SeenName) int {
		if n := int(topics[a.Topic]) - int(topics[b.Topic]); n != 0 {
			return n
		}
		if a.Key != b.Key {
			if a.Key {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Text, b.Text)
	})
	s.list = slices.Compact(s.list)
	for _, n := range s.list {
		s.topics, s.keys, s.texts = append(s.topics, topics[n.Topic]), append(s.keys, n.Key), append(s.texts, n.Text)
	}
	return s
}

// appendNamed appends events that are known by names, in a transaction of the store's own:
// apart from those that gather, because a name may have to wait for somebody's transaction.
func (r *Room) appendNamed(ctx context.Context, drafts []stream.Publication) (list []stream.PublishReply, err error) {
	topics, err := r.numbers(ctx, drafts) // before: it needs a connection of its own
	if err != nil {
		return nil, err
	}
	drafts = slices.Clone(drafts)
	for i := range drafts {
		drafts[i].Given = true // so that none of the call is there twice when its answer is lost
	}
	call := uuid.New()
	err = r.pg.Retry(ctx, "append", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			list, err = r.named(ctx, t, drafts, topics, call, marked+insertEvents)
			return err
		})
	})
	if err == nil {
		r.Appended()
	}
	return list, err
}

// named appends what is new among events with names.
func (r *Room) named(ctx context.Context, t pg.Session, drafts []stream.Publication, topics map[string]int32,
	call uuid.UUID, insert string) ([]stream.PublishReply, error) {
	names := namesOf(drafts, topics)
	found, again := map[stream.SeenName]stream.SeenEvent{}, map[stream.SeenName]bool{}
	var epoch uint32
	err := t.Run(ctx,
		&pg.Statement{Text: claimSeen, Args: []any{r.pg.Namespace, call, names.topics, names.keys, names.texts}},
		&pg.Statement{Text: findSeen, Args: []any{r.pg.Namespace, names.topics, names.keys, names.texts}, Each: func(scan pg.Scan) error {
			var place, seq int64
			var event string
			var by uuid.UUID
			if err := scan(&place, &event, &seq, &by); err != nil {
				return err
			}
			if n := names.list[place-1]; seq != 0 {
				found[n], again[n] = stream.SeenEvent{ID: event, Seq: seq}, by == call
			}
			return nil
		}},
		&pg.Statement{Text: readEpoch, Each: func(scan pg.Scan) error { return scan(&epoch) }})
	if err != nil {
		return nil, err
	}
	sifted := stream.Sift(drafts, found)
	seqs, err := r.insertFresh(ctx, t, drafts, sifted, topics, insert)
	if err != nil {
		return nil, err
	}
	of := stream.Resolve(drafts, sifted, seqs)
	stands := map[stream.SeenName]stream.SeenEvent{}
	list := make([]stream.PublishReply, len(drafts))
	answered := map[int64]bool{} // of this call
	for i, e := range of {
		own := len(drafts[i].Names()) == 0 || sifted[i].Fresh
		for _, n := range drafts[i].Names() {
			own = own || again[n] && e.ID == drafts[i].ID // its answer was lost: nobody else has sent it
			if _, ok := stands[n]; !ok {
				stands[n] = e
			}
		}
		list[i] = stream.PublishReply{ID: e.ID, Position: stream.At(epoch, e.Seq), Duplicate: !own || answered[e.Seq]}
		answered[e.Seq] = true
	}
	events, numbers := make([]string, len(names.list)), make([]int64, len(names.list))
	for i, n := range names.list {
		events[i], numbers[i] = stands[n].ID, stands[n].Seq
	}
	return list, t.Run(ctx, &pg.Statement{Text: fillSeen, Args: []any{r.pg.Namespace, names.topics, names.keys, names.texts, events, numbers}})
}

// insertFresh appends the new ones. Their numbers are by place in the call.
func (r *Room) insertFresh(ctx context.Context, t pg.Session, drafts []stream.Publication, sifted []stream.Sifted,
	topics map[string]int32, insert string) ([]int64, error) {
	var fresh []stream.Publication
	var places []int
	for i, s := range sifted {
		if s.Fresh {
			fresh, places = append(fresh, drafts[i]), append(places, i)
		}
	}
	seqs := make([]int64, len(drafts))
	if len(fresh) == 0 {
		return seqs, nil
	}
	args, err := columns(r.pg.Namespace, r.mark, fresh, topics)
	if err != nil {
		return nil, err
	}
	if strings.Contains(insert, "$16") { // the mark of a user's transaction
		args = append(args, fmt.Sprintf("pawl.mark_%d", uint32(r.mark)))
	}
	n := 0
	return seqs, t.Run(ctx, &pg.Statement{Text: "WITH " + insert + "\nRETURNING seq", Args: args, Each: func(scan pg.Scan) error {
		err := scan(&seqs[places[n]])
		n++
		return err
	}})
}
