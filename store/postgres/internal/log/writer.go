package log

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// writers is how many commits of a process are on their way at once, when many callers publish: while
	// the server works at one, the callers of the other make their next events.
	writers = 2
	// shareable is how many calls wait for one writer before the next is asked: few gain more by sharing a commit.
	shareable = 32
)

// writer commits events of many callers, one transaction after the other. The database knows
// it by its id, and by the number of its last commit: so it finds out whether a commit whose answer was
// lost has happened. Only its committer uses what follows that.
type writer struct {
	room   *Room
	gather *commit.Committer[*appendCall]

	id     uuid.UUID
	number int64 // of its last commit; 0: none
	known  bool  // its row is there
}

func startWriter(r *Room) *writer {
	w := &writer{room: r, id: uuid.New()}
	w.gather = commit.Start(commit.Options[*appendCall]{
		MaxRows: maxGathered,
		Commit:  func(calls []*appendCall) { w.commit(r.pg.Ending, calls) },
		Yield:   commit.UntilAll,
		Unknown: func(cause error) error { return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, cause) },
		Closed:  store.ErrClosed,
	})
	return w
}

// pick is the writer for a call: the first, unless many wait for it already and fewer for
// another. Calls of one caller come one after the other, whichever they get.
func (r *Room) pick() *writer {
	best := r.writers[0]
	waiting := best.gather.Waiting()
	if waiting < shareable {
		return best
	}
	for _, w := range r.writers[1:] {
		if n := w.gather.Waiting(); n < waiting {
			best, waiting = w, n
		}
	}
	return best
}

// markedMoved is marked where a writer has moved on, which says that the epoch is the same.
var markedMoved = strings.Replace(marked, "WHERE "+here, "FROM moved", 1)

var (
	// moved moves the writer on ($17, $18): where it is not at that number, its
	// commit has happened already, and nothing is done, nor where the epoch is another. With
	// the numbers comes what topics have come to (heard).
	//
	//   - event_writer_pkey, namespace_pkey.
	moved = `moved AS MATERIALIZED (
	UPDATE pawl.event_writer
	SET number = number + 1, expires = {now} + interval '1 day'
	WHERE namespace = $1 AND writer = $17 AND number = $18 AND ` + here + `
	RETURNING 1 AS one
),
`

	heard = "(SELECT n.topic_changes FROM pawl.namespace AS n WHERE n.id = $1)"

	// addWriter makes the row of a process.
	addWriter = `INSERT INTO pawl.event_writer (namespace, writer, number, expires)
VALUES ($1, $2, $3, {now} + interval '1 day')
ON CONFLICT DO NOTHING`

	// findWriter reads where a writer ($2) is.
	//
	//   - event_writer_pkey.
	findWriter = `SELECT number
FROM pawl.event_writer
WHERE namespace = $1 AND writer = $2`
)

// commit puts the events of many callers in, in one transaction. When its answer is lost it
// is sent again: it finds out whether it has happened.
func (w *writer) commit(ctx context.Context, calls []*appendCall) {
	topics, lists := calls[0].topics, make([][]stream.Publication, len(calls))
	for i, c := range calls {
		lists[i], topics = c.drafts, topics.with(c.topics)
	}
	seqs, epoch, err := w.append(ctx, topics, lists)
	if err != nil && len(calls) > 1 && !pg.FaultOf(err).Unknown { // one of many rows may be bad: each alone
		for _, c := range calls {
			w.commit(ctx, []*appendCall{c})
		}
		return
	}
	if err == nil {
		w.room.Appended()
	}
	for _, c := range calls {
		if err == nil {
			c.receipts, seqs = receipts(c.drafts, seqs, epoch)
		}
		c.Answer(err)
	}
}

// append appends in a transaction of the store's own.
func (w *writer) append(
	ctx context.Context, topics *numbered, calls [][]stream.Publication,
) (seqs []int64, epoch uint32, err error) {
	r := w.room
	args, err := columns(r.pg.Namespace, r.mark, topics, calls...)
	if err != nil {
		return nil, 0, err
	}
	of, args := shaped(args)
	n := 0
	for _, drafts := range calls {
		n += len(drafts)
	}
	since := r.newest.of(topics.epoch) // ours are numbered later
	err = r.pg.Retry(ctx, "append", pg.Always, func(ctx context.Context, again bool) error {
		if !w.known { // a process that did nothing for a day has lost its row
			add := &pg.Statement{Text: addWriter, Args: []any{r.pg.Namespace, w.id, w.number}}
			if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, add); err != nil {
				return err
			}
			w.known = true
		}
		seqs, epoch = make([]int64, 0, n), topics.epoch
		var changes int32
		var row pg.Columns
		put := &pg.Statement{Text: insertKind{shape: of, by: byWriter}.text(), Args: append(args, w.id, w.number), Raw: func(cols [][]byte) error {
			row.Begin(cols)
			seqs, changes = append(seqs, row.Int8()), int32(row.Int4())
			return row.Err
		}}
		limits := pg.SharedLimits
		if again {
			limits = pg.UpkeepLimits // for the lock of its own first try, which is on its way
		}
		if err := r.pg.Send(ctx, r.pg.Work, limits, put); err != nil {
			return err
		}
		if len(seqs) == n {
			r.topics.heard(changes)
			return nil
		}
		same := true
		at, err := w.look(ctx, r.life(&epoch, &same, nil))
		if err != nil {
			return err
		}
		if at == w.number+1 { // an earlier try, whose answer was lost
			if epoch != topics.epoch {
				since = 0
			}
			return w.happened(ctx, slices.Concat(calls...), since, &seqs)
		}
		if w.known = at >= 0; w.known {
			w.number = at // less than before where the server was restored, or promoted without the last commits
		}
		if same && epoch == topics.epoch {
			return pg.Fault{Err: errNoWriter, Passing: true}.AsError()
		}
		if err := r.anchor(ctx); err != nil {
			return err
		}
		if topics, err = r.numbers(ctx, slices.Concat(calls...)); err != nil {
			return err
		}
		if args, err = columns(r.pg.Namespace, r.mark, topics, calls...); err != nil {
			return err
		}
		of, args = shaped(args)
		since = r.newest.of(topics.epoch)
		return pg.Fault{Err: errEpoch, Passing: true}.AsError()
	})
	if err == nil {
		w.number++
		r.newest.note(epoch, seqs[len(seqs)-1])
	}
	return seqs, epoch, err
}

var errNoWriter = fmt.Errorf("the writer of this process is not where it was")

// look reads where the writer is in the database, -1 where it has no row, together with another statement. Only
// the row says whether a commit has happened: that a try finds nothing to do may have other reasons.
func (w *writer) look(ctx context.Context, also *pg.Statement) (at int64, err error) {
	r := w.room
	at = -1
	find := &pg.Statement{Text: findWriter, Args: []any{r.pg.Namespace, w.id}, Each: func(scan pg.Scan) error { return scan(&at) }}
	return at, r.pg.Send(ctx, r.pg.Work, nil, also, find)
}

// newest is the highest number of an epoch that this process has seen. What it appends afterwards has higher ones.
type newest struct {
	mu    sync.Mutex
	epoch uint32
	seq   int64
}

// note keeps a number. Of two epochs only one is remembered: of the other nothing is known then.
func (n *newest) note(epoch uint32, seq int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.epoch != epoch {
		n.epoch, n.seq = epoch, 0
	}
	n.seq = max(n.seq, seq)
}

func (n *newest) of(epoch uint32) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.epoch != epoch {
		return 0
	}
	return n.seq
}

// readAgain reads the numbers of events that were put in behind a number ($2), of those ids
// ($3).
//
//   - event_pkey, from where this process had seen the log before.
const readAgain = `SELECT id, seq
FROM pawl.event
WHERE namespace = $1 AND seq > $2 AND id = ANY ($3)
ORDER BY seq`

// happened reads the numbers of events whose commit was not answered: the writer's row has
// moved on, so it has happened.
func (w *writer) happened(ctx context.Context, drafts []stream.Publication, since int64, seqs *[]int64) error {
	ids := make([]string, len(drafts))
	for i := range drafts {
		ids[i] = drafts[i].ID
	}
	found := map[string][]int64{}
	err := w.room.pg.Send(ctx, w.room.pg.Work, nil, &pg.Statement{Text: readAgain, Args: []any{w.room.pg.Namespace, since, ids},
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
