package postgres

import (
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// hintName is what a hint is about.
type hintName struct {
	queue    string
	priority int
}

// hintSet collects, for each queue and priority, the lowest due time of what
// became ready. It is small: one entry however many jobs.
type hintSet map[hintName]time.Time

func (h *hintSet) add(queue string, priority int, due time.Time) {
	if *h == nil {
		*h = hintSet{}
	}
	name := hintName{queue, priority}
	if at, ok := (*h)[name]; !ok || due.Before(at) {
		(*h)[name] = due
	}
}

// join adds what another set holds.
func (h *hintSet) join(other hintSet) {
	for name, due := range other {
		h.add(name.queue, name.priority, due)
	}
}

// tell lowers this process's frontiers to what was committed, and lets the
// others know.
func (s *hintRoom) tell(told hintSet) {
	if len(told) == 0 {
		return
	}
	for name, due := range told {
		s.frontier.lower(name.queue, name.priority, due)
	}
	s.notifier.tell(told)
}

// lookAt makes claims, here and elsewhere, look at a queue.
func (s *hintRoom) lookAt(queue string) {
	s.frontier.wake(queue)
	s.notifier.look(queue)
}

// frontier is what learns of hints in this process: that of claims.
type frontier struct {
	lower func(queue string, priority int, due time.Time) // to what was committed
	wake  func(queue string)                              // something about it has changed
	drop  func()                                          // hints may have been missed
}

// hints reads the hint rows that users' transactions leave. A transaction may
// commit long after its rows were written, so a look reads by what it could not
// see before: rows of transactions that were open in the last look's snapshot,
// or had not begun. Each row is read once by each process, however long some
// transaction stays open and however many rows there are.
//
// The first look reads none: what was committed by then is in front of no
// frontier of this process. So it has to come before the first claim. A look at
// more than maxHints rows ends there, and the frontiers are dropped instead.
type hints struct {
	mu        sync.Mutex
	seen      snapshot // by the last look; zero at first
	at        time.Time
	listeners int // listeners that are connected
}

// snapshot is one of pg_current_snapshot.
type snapshot struct {
	text string
	xmax uint64
}

// maxHints is how many rows a look reads at most. It is part of a claim, and one
// process may have left any number of them while another was held up.
const maxHints = 10_000

// hintsEvery is how often a busy worker reads hints of users' transactions.
const hintsEvery = 100 * time.Millisecond

func (h *hints) due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(h.at) >= hintsEvery
}

// heard reports whether a listener hears of other processes' commits.
func (h *hints) heard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners > 0
}

func (h *hints) listen(by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners += by
}

// first reports whether no look has been answered yet.
func (h *hints) first() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen.text == ""
}

const (
	// firstHints only notes what is visible now.
	firstHints = `SELECT now.snapshot::text, pg_snapshot_xmax(now.snapshot)::text, NULL::text, NULL::smallint, NULL::timestamptz, 0::bigint
FROM (SELECT pg_current_snapshot() AS snapshot) AS now`
	// readHints seeks on hint_transaction twice: what had not begun, and what was
	// open. The snapshot is the statement's own, so what it does not show is asked
	// for next time.
	readHints = `SELECT now.snapshot::text, pg_snapshot_xmax(now.snapshot)::text, h.queue, h.priority, h.due, coalesce(h.rows, 0)
FROM (SELECT pg_current_snapshot() AS snapshot) AS now LEFT JOIN (
	SELECT queue, priority, min(due) AS due, (sum(count(*)) OVER ())::bigint AS rows
	FROM (
		(SELECT queue, priority, due FROM pawl.hint
		WHERE namespace = $1 AND transaction >= pg_snapshot_xmax($2::text::pg_snapshot)
		ORDER BY transaction LIMIT $3)
		UNION ALL
		(SELECT queue, priority, due FROM pawl.hint
		WHERE namespace = $1 AND transaction = ANY (ARRAY(SELECT pg_snapshot_xip($2::text::pg_snapshot)))
		LIMIT $3)
	) AS new
	GROUP BY queue, priority
) AS h ON true`
)

// hintLook is one reading of the hints.
type hintLook struct {
	pg.Statement
	told hintSet
	rows int64 // that were read
	seen snapshot
}

// some reports whether there may be hints to remove. The first look did not see
// those that were left before.
func (l *hintLook) some() bool { return l.Text == firstHints || len(l.told) > 0 }

// tooMany reports whether rows may be left that were not read.
func (l *hintLook) tooMany() bool { return l.rows >= maxHints }

func (h *hints) look(namespace int32) *hintLook {
	h.mu.Lock()
	since := h.seen.text
	h.mu.Unlock()
	l := &hintLook{}
	l.Text, l.Args = readHints, []any{namespace, since, maxHints}
	if since == "" {
		l.Text, l.Args = firstHints, nil
	}
	l.Each = func(scan pg.Scan) error {
		var xmax string
		var queue pgtype.Text
		var priority pgtype.Int2
		var due pgtype.Timestamptz
		if err := scan(&l.seen.text, &xmax, &queue, &priority, &due, &l.rows); err != nil {
			return err
		}
		if queue.Valid {
			l.told.add(queue.String, int(priority.Int16), due.Time)
		}
		var err error
		l.seen.xmax, err = strconv.ParseUint(xmax, 10, 64)
		return err
	}
	return l
}

// keep takes a look over once it has been answered. It reports whether hints may
// have been missed: a restored or promoted database counts transactions anew.
func (h *hints) keep(l *hintLook, now time.Time) (missed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	missed = l.seen.xmax < h.seen.xmax
	h.seen, h.at = l.seen, now
	return missed
}
