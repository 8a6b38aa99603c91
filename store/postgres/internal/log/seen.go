package log

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

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
SET event = '', seq = 0, version = 0, call = excluded.call, expires = excluded.expires
WHERE s.expires <= {now}`

	// findSeen reads what names stand for, with a later snapshot.
	//
	//   - seen_pkey.
	findSeen = `SELECT n.place, s.event, s.seq, s.version, s.call
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
SET event = n.event, seq = n.seq, version = n.version
FROM (
	SELECT $1::int AS namespace, n.*
	FROM unnest($2::int[], $3::boolean[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
		AS n (topic, key, name, event, seq, version)
	OFFSET 0
) AS n
WHERE s.namespace = ANY (ARRAY[n.namespace]) AND s.topic = n.topic AND s.key = n.key AND s.name = n.name AND s.seq = 0`
)

// seenNames are the names of a call, each once, in the order in which all calls take them.
type seenNames struct {
	list   []stream.SeenName
	topics []int32
	keys   []bool
	texts  []string
}

func namesOf(drafts []stream.Publication, topics *numbered) *seenNames {
	s := &seenNames{}
	for i := range drafts {
		s.list = append(s.list, drafts[i].Names()...)
	}
	slices.SortFunc(s.list, func(a, b stream.SeenName) int {
		if n := int(topics.of[a.Topic]) - int(topics.of[b.Topic]); n != 0 {
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
		s.topics, s.keys, s.texts = append(s.topics, topics.of[n.Topic]), append(s.keys, n.Key), append(s.texts, n.Text)
	}
	return s
}

// appendNamed appends events that are known by names, that have versions or are delayed, in a
// transaction of the store's own: apart from those that gather, because a name or a version
// may have to wait for somebody's transaction.
func (r *Room) appendNamed(ctx context.Context, drafts []stream.Publication) (list []stream.PublishReply, err error) {
	drafts = slices.Clone(drafts)
	for i := range drafts {
		drafts[i].Given = true // so that none of the call is there twice when its answer is lost
	}
	call := uuid.New()
	err = r.pg.Retry(ctx, "append", pg.Always, func(ctx context.Context, _ bool) error {
		topics, err := r.numbers(ctx, drafts) // before: it needs a connection of its own
		if err != nil {
			return err
		}
		_, versioned, err := r.special(ctx, drafts, topics)
		if err != nil {
			return err
		}
		err = r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			list, err = r.naming(t, drafts, topics, versioned).append(ctx, call)
			return err
		})
		if errors.Is(err, errEpoch) {
			err = errors.Join(r.anchor(ctx), pg.Fault{Err: err, Passing: true}.AsError())
		}
		return err
	})
	if err == nil {
		var p Published
		p.Add(list)
		r.Told(p)
	}
	return list, err
}

// naming is one call whose events are special.
type naming struct {
	room      *Room
	t         pg.Session
	drafts    []stream.Publication
	topics    *numbered
	versioned map[string]bool // topics
	within    bool            // in a user's transaction
	epoch     uint32
	now       time.Time
	sifted    []stream.Sifted
	fresh     []stream.SeenEvent // by place in the call
}

func (r *Room) naming(t pg.Session, drafts []stream.Publication, topics *numbered, versioned map[string]bool) *naming {
	return &naming{room: r, t: t, drafts: drafts, topics: topics, versioned: versioned, fresh: make([]stream.SeenEvent, len(drafts))}
}

// append appends what is new. What locks rows that others may want comes in one order for
// all: names, then versions; the mark is taken when nothing is left to wait for.
func (n *naming) append(ctx context.Context, call uuid.UUID) ([]stream.PublishReply, error) {
	drafts := n.drafts
	names := namesOf(drafts, n.topics)
	again, err := n.find(ctx, names, call)
	if err != nil {
		return nil, err
	}
	bump, err := n.insert(ctx)
	if err != nil {
		return nil, err
	}
	of := stream.Resolve(drafts, n.sifted, n.fresh)
	stands := map[stream.SeenName]stream.SeenEvent{}
	list := make([]stream.PublishReply, len(drafts))
	answered := map[int64]bool{} // of this call
	for i, e := range of {
		own := len(drafts[i].Names()) == 0 || n.sifted[i].Fresh
		for _, name := range drafts[i].Names() {
			own = own || again[name] && e.ID == drafts[i].ID // its answer was lost: nobody else has sent it
			if _, ok := stands[name]; !ok {
				stands[name] = e
			}
		}
		list[i] = e.Reply(n.epoch, !own || answered[e.Seq])
		answered[e.Seq] = true
	}
	events, numbers, versions := make([]string, len(names.list)), make([]int64, len(names.list)), make([]int64, len(names.list))
	for i, name := range names.list {
		events[i], numbers[i], versions[i] = stands[name].ID, stands[name].Seq, stands[name].Version
	}
	fill := &pg.Statement{Text: fillSeen, Args: []any{n.room.pg.Namespace, names.topics, names.keys, names.texts, events, numbers, versions}}
	return list, n.t.Run(ctx, append(bump, fill)...)
}

// find reads what names stand for, and sifts by it. again are those that this very call has
// put before, when its answer was lost.
func (n *naming) find(ctx context.Context, names *seenNames, call uuid.UUID) (again map[stream.SeenName]bool, err error) {
	r := n.room
	found := map[stream.SeenName]stream.SeenEvent{}
	again = map[stream.SeenName]bool{}
	same := true
	err = n.t.Run(ctx,
		&pg.Statement{Text: claimSeen, Args: []any{r.pg.Namespace, call, names.topics, names.keys, names.texts}},
		&pg.Statement{Text: findSeen, Args: []any{r.pg.Namespace, names.topics, names.keys, names.texts}, Each: func(scan pg.Scan) error {
			var place int64
			var e stream.SeenEvent
			var by uuid.UUID
			if err := scan(&place, &e.ID, &e.Seq, &e.Version, &by); err != nil {
				return err
			}
			if name := names.list[place-1]; e.Seq != 0 {
				found[name], again[name] = e, by == call
			}
			return nil
		}},
		r.life(&n.epoch, &same, &n.now))
	if err == nil && (!same || n.epoch != 0 && n.epoch != n.topics.epoch) { // 0: its snapshot is older than the first
		err = errEpoch
	}
	n.sifted = stream.Sift(n.drafts, found)
	return again, err
}

// insert appends the new ones, or keeps them until they are due. What is answered says what
// their keys have come to, and is still to be written.
func (n *naming) insert(ctx context.Context) (bump []*pg.Statement, err error) {
	var now, later []int
	for i, s := range n.sifted {
		switch {
		case !s.Fresh:
		case n.drafts[i].Due(n.now).IsZero():
			now = append(now, i)
		default:
			later = append(later, i)
		}
	}
	if err := n.delay(ctx, later); err != nil {
		return nil, err
	}
	versions, bump, err := n.versions(ctx)
	if err != nil || len(now) == 0 {
		return bump, err
	}
	r := n.room
	fresh, of := make([]stream.Publication, len(now)), make([]pgtype.Int8, len(now))
	for i, place := range now {
		fresh[i], of[i] = n.drafts[place], pgtype.Int8{Int64: versions[place], Valid: versions[place] > 0}
	}
	args, err := columns(r.pg.Namespace, r.mark, n.topics, fresh)
	if err != nil {
		return nil, err
	}
	shape, args := shaped(args)
	kind := insertKind{shape: shape, by: byCall, versions: true}
	if args = append(args, of); n.within {
		kind.by, args = byUser, append(args, r.markName())
	}
	i := 0
	err = n.t.Run(ctx, &pg.Statement{Text: kind.text(), Args: args, Each: func(scan pg.Scan) error {
		e := &n.fresh[now[i]]
		e.Version = versions[now[i]]
		i++
		return scan(&e.Seq)
	}})
	if err == nil && i < len(now) {
		err = errEpoch
	}
	return bump, err
}
