package hints

import (
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Name is what a hint is about.
type Name struct {
	Queue    string
	Priority int
}

// hint is what others are told.
func (n Name) hint(due time.Time) store.Hint {
	return store.Hint{Subject: store.SubjectQueue, Name: n.Queue, Priority: n.Priority, Due: due}
}

// Set collects, for each queue and priority, the lowest due time of what
// became ready. It is small: one entry however many jobs.
type Set map[Name]time.Time

func (h *Set) Add(queue string, priority int, due time.Time) {
	if *h == nil {
		*h = Set{}
	}
	name := Name{queue, priority}
	if at, ok := (*h)[name]; !ok || due.Before(at) {
		(*h)[name] = due
	}
}

// Join adds what another set holds.
func (h *Set) Join(other Set) {
	for name, due := range other {
		h.Add(name.Queue, name.Priority, due)
	}
}

// Tell lowers this process's frontiers to what was committed, and lets the
// others know.
func (r *Room) Tell(told Set) {
	if len(told) == 0 {
		return
	}
	for name, due := range told {
		r.frontier.Lower(name.Queue, name.Priority, due)
	}
	r.Notifier.tell(told)
}

// TellDrafts tells of drafts that were committed and when they fall due. This process
// hears of the very gates that they wait behind, and need not look for them.
func (r *Room) TellDrafts(drafts []job.Draft, dueOf func(*job.Draft) time.Time) {
	var told Set
	for i := range drafts {
		d := &drafts[i]
		due := dueOf(d)
		if told.Add(d.Queue, d.Priority, due); d.Gate != 0 {
			r.frontier.Note(d, due)
		}
	}
	for name, due := range told {
		r.frontier.Front(name.Queue, name.Priority, due)
	}
	r.Notifier.tell(told)
}

// LookAt makes claims, here and elsewhere, look at a queue.
func (r *Room) LookAt(queue string) {
	r.frontier.Wake(queue)
	r.Notifier.Look(queue)
}

// LookAtAll makes claims, here and elsewhere, look at every queue.
func (r *Room) LookAtAll() {
	r.frontier.Drop()
	r.Notifier.Look("")
}

// Frontier is what learns of hints in this process: that of claims.
type Frontier struct {
	Lower func(queue string, priority int, due time.Time) // to what was committed
	Front func(queue string, priority int, due time.Time) // the same, in front of gates
	Note  func(d *job.Draft, due time.Time)               // what was committed behind a gate
	Wake  func(queue string)                              // something about it has changed
	Drop  func()                                          // hints may have been missed
}

// rows reads the hint rows that users' transactions leave. A transaction may
// commit long after its rows were written, so a look reads by what it could not
// see before: rows of transactions that were open in the last look's snapshot,
// or had not begun. Each row is read once by each process, however long some
// transaction stays open and however many rows there are.
//
// The first look reads none: what was committed by then is in front of no
// frontier of this process. So it has to come before the first claim. A look at
// more than maxHints rows ends there, and the frontiers are dropped instead.
type rows struct {
	mu        sync.Mutex
	seen      xidSnapshot // by the last look; zero at first
	at        time.Time
	listeners int // listeners that are connected
}

// xidSnapshot is one of pg_current_snapshot.
type xidSnapshot struct {
	Text string
	xmax uint64
}

// MaxRows is how many rows a look reads at most. It is part of a claim, and one
// process may have left any number of them while another was held up.
const MaxRows = 10_000

// HintsEvery is how often a busy worker reads hints of users' transactions.
const HintsEvery = 100 * time.Millisecond

func (h *rows) Due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(h.at) >= HintsEvery
}

// Heard reports whether a listener hears of other processes' commits.
func (h *rows) Heard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners > 0
}

func (h *rows) listen(by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners += by
}

// First reports whether no look has been answered yet.
func (h *rows) First() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen.Text == ""
}

// firstHints only notes what is visible now.
const firstHints = `SELECT now.snapshot::text, pg_snapshot_xmax(now.snapshot)::text,
	NULL::text, NULL::smallint, NULL::timestamptz, 0::bigint
FROM (SELECT pg_current_snapshot() AS snapshot) AS now`

// readHints reads what was not visible at the last look. The snapshot is the
// statement's own, so what it does not show is asked for next time.
//
//   - hint_transaction serves two seeks: what had not begun, and what was open.
const readHints = `SELECT now.snapshot::text, pg_snapshot_xmax(now.snapshot)::text,
	h.queue, h.priority, h.due, coalesce(h.rows, 0)
FROM (SELECT pg_current_snapshot() AS snapshot) AS now
LEFT JOIN (
	SELECT queue, priority, min(due) AS due, (sum(count(*)) OVER ())::bigint AS rows
	FROM (
		(
			SELECT queue, priority, due
			FROM pawl.hint
			WHERE namespace = $1 AND transaction >= pg_snapshot_xmax($2::text::pg_snapshot)
			ORDER BY transaction
			LIMIT $3
		)
		UNION ALL
		(
			SELECT queue, priority, due
			FROM pawl.hint
			WHERE namespace = $1 AND transaction = ANY (ARRAY(SELECT pg_snapshot_xip($2::text::pg_snapshot)))
			LIMIT $3
		)
	) AS new
	GROUP BY queue, priority
) AS h ON true`

// RowLook is one reading of the hints.
type RowLook struct {
	pg.Statement
	Told Set
	Rows int64 // that were read
	Seen xidSnapshot
}

// Some reports whether there may be hints to remove. The first look did not see
// those that were left before.
func (l *RowLook) Some() bool { return l.Text == firstHints || len(l.Told) > 0 }

// TooMany reports whether rows may be left that were not read.
func (l *RowLook) TooMany() bool { return l.Rows >= MaxRows }

func (h *rows) Look(namespace int32) *RowLook {
	h.mu.Lock()
	since := h.seen.Text
	h.mu.Unlock()
	l := &RowLook{}
	l.Text, l.Args = readHints, []any{namespace, since, MaxRows}
	if since == "" {
		l.Text, l.Args = firstHints, nil
	}
	l.Each = func(scan pg.Scan) error {
		var xmax string
		var queue pgtype.Text
		var priority pgtype.Int2
		var due pgtype.Timestamptz
		if err := scan(&l.Seen.Text, &xmax, &queue, &priority, &due, &l.Rows); err != nil {
			return err
		}
		if queue.Valid {
			l.Told.Add(queue.String, int(priority.Int16), due.Time)
		}
		var err error
		l.Seen.xmax, err = strconv.ParseUint(xmax, 10, 64)
		return err
	}
	return l
}

// Keep takes a look over once it has been answered. It reports whether hints may
// have been missed: a restored or promoted database counts transactions anew.
func (h *rows) Keep(l *RowLook, now time.Time) (missed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	missed = l.Seen.xmax < h.seen.xmax
	h.seen, h.at = l.Seen, now
	return missed
}
