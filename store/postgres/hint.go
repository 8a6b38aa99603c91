package postgres

import (
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
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
func (s *Store) tell(told hintSet) {
	if len(told) == 0 {
		return
	}
	for name, due := range told {
		s.frontiers.lower(name.queue, name.priority, due)
	}
	s.notifier.tell(told)
}

// hints reads the hint rows that users' transactions leave. A transaction may
// commit long after its rows were written, so a look reads by what it could not
// see before: rows of transactions that were open in the last look's snapshot,
// or had not begun. Each row is read once by each process, however long some
// transaction stays open and however many rows there are.
type hints struct {
	mu   sync.Mutex
	seen snapshot // by the last look; zero at first
	at   time.Time
	some bool   // rows were seen that are not removed yet
	mark marked // by which rows are removed
	ears int    // listeners that are connected
}

// snapshot is one of pg_current_snapshot.
type snapshot struct {
	text       string
	xmin, xmax uint64
}

// marked says that every transaction before xmin had ended at a time.
type marked struct {
	at   time.Time
	xmin uint64
}

// hintsKept is how long a hint stays after its commit, for the looks of others.
const hintsKept = 30 * time.Second

func (h *hints) due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(h.at) >= hintsEvery
}

// heard reports whether a listener hears of other processes' commits.
func (h *hints) heard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ears > 0
}

func (h *hints) listen(by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ears += by
}

// readHints seeks on hint_transaction twice: what had not begun, and what was
// open. The snapshot is the statement's own, so what it does not show is asked
// for next time.
const readHints = `SELECT now.snapshot::text, pg_snapshot_xmin(now.snapshot)::text, pg_snapshot_xmax(now.snapshot)::text, h.queue, h.priority, h.due
FROM (SELECT pg_current_snapshot() AS snapshot) AS now LEFT JOIN (
	SELECT queue, priority, min(due) AS due FROM (
		SELECT queue, priority, due FROM pawl.hint WHERE namespace = $1 AND transaction >= pg_snapshot_xmax($2::text::pg_snapshot)
		UNION ALL
		SELECT queue, priority, due FROM pawl.hint WHERE namespace = $1 AND transaction = ANY (ARRAY(SELECT pg_snapshot_xip($2::text::pg_snapshot)))
	) AS new GROUP BY queue, priority
) AS h ON true`

// nothingSeen is the snapshot before the first look.
const nothingSeen = "3:3:"

// look is one reading of the hints.
type hintLook struct {
	step
	told hintSet
	seen snapshot
}

func (h *hints) look(namespace int32) *hintLook {
	h.mu.Lock()
	since := h.seen.text
	h.mu.Unlock()
	if since == "" {
		since = nothingSeen
	}
	l := &hintLook{}
	l.text, l.args = readHints, []any{namespace, since}
	l.each = func(scan scan) error {
		var xmin, xmax string
		var queue pgtype.Text
		var priority pgtype.Int2
		var due pgtype.Timestamptz
		if err := scan(&l.seen.text, &xmin, &xmax, &queue, &priority, &due); err != nil {
			return err
		}
		if queue.Valid {
			l.told.add(queue.String, int(priority.Int16), due.Time)
		}
		var err error
		if l.seen.xmin, err = strconv.ParseUint(xmin, 10, 64); err != nil {
			return err
		}
		l.seen.xmax, err = strconv.ParseUint(xmax, 10, 64)
		return err
	}
	return l
}

// keep takes a look over once it has been answered.
func (h *hints) keep(l *hintLook, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.seen.xmax < h.seen.xmax { // a restored or promoted database counts anew
		l.seen, h.mark = snapshot{}, marked{}
	}
	h.seen, h.at = l.seen, now
	h.some = h.some || len(l.told) > 0
	if h.mark.xmin == 0 {
		h.mark = marked{now, l.seen.xmin}
	}
}

// stale says up to which transaction hints may be removed now.
func (h *hints) stale(now time.Time) (xmin string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.some || h.mark.xmin == 0 || now.Sub(h.mark.at) < hintsKept {
		return "", false
	}
	xmin = strconv.FormatUint(h.mark.xmin, 10)
	h.mark = marked{now, h.seen.xmin}
	return xmin, true
}

// removeHints removes what every look has had time to see, and what claims to be
// of a transaction that has not begun: a dump brought it along from a server that
// had counted further, and every look would find it again.
const removeHints = `DELETE FROM pawl.hint WHERE ctid = ANY (ARRAY(
	(SELECT ctid FROM pawl.hint WHERE namespace = $1 AND transaction < $2::text::xid8 ORDER BY transaction LIMIT 10000)
	UNION ALL
	(SELECT ctid FROM pawl.hint WHERE namespace = $1 AND transaction >= pg_snapshot_xmax(pg_current_snapshot()) ORDER BY transaction LIMIT 10000)))`
