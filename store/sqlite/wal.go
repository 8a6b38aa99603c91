package sqlite

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/store"
)

// Commits go into the log beside the file (-wal). At 2,000 pages SQLite copies
// them into the file and begins the log anew, unless somebody still reads from
// it: one transaction that reads and does not end lets it grow without limit,
// at about 1 kB for each job. Nothing is lost by that; reads get slower, the
// disk fills. A store cannot end what others read, so it says who does.
const (
	logLimit     = 64 << 20  // bytes in use from which the log of the process tells
	unhealthyLog = 512 << 20 // from which Health does

	logLookEvery = time.Second
	logSayEvery  = time.Minute
)

// wal watches the log of one file, and finds that it cannot be emptied.
type wal struct {
	path         string // empty for a store in memory, which has none
	limit, worse int64
	readings     readings // what this process reads

	store  string // for messages
	clock  *clock
	logger *slog.Logger

	opened time.Time
	looked atomic.Int64 // nanoseconds after that

	mu     sync.Mutex
	frames int // at the last look
	said   time.Duration
}

func newWAL(path, store string, c *clock, logger *slog.Logger) *wal {
	return &wal{path: path, limit: logLimit, worse: unhealthyLog, store: store, clock: c, logger: logger, opened: c.instant()}
}

// logState is what a look found.
type logState struct {
	bytes int64
	held  bool
}

// watch looks at the log now and then, after a commit on the connection,
// which its caller owns. While the log is small that is a call to stat a second.
func (w *wal) watch(c *conn) {
	if w.path == "" {
		return
	}
	now, last := w.clock.since(w.opened), w.looked.Load()
	if now-time.Duration(last) < logLookEvery || !w.looked.CompareAndSwap(last, int64(now)) {
		return
	}
	state, err := w.look(c)
	if err != nil || !state.held {
		return // whatever is wrong, the next commit meets it
	}
	w.mu.Lock()
	say := w.said == 0 || now-w.said >= logSayEvery
	if say {
		w.said = now
	}
	w.mu.Unlock()
	if say {
		reader := w.oldestReader()
		w.logger.Warn("pawl: the write-ahead log cannot be emptied and grows while somebody reads from it",
			"store", w.store, "bytes", state.bytes, "reader", reader.what, "at", reader.at, "since", reader.since)
	}
}

// look reports whether the log is over its limit and a checkpoint does not
// help: it cannot copy all of it, or the log was not begun anew since the last look.
func (w *wal) look(c *conn) (logState, error) {
	info, err := os.Stat(w.path)
	if err != nil || info.Size() <= w.limit {
		return logState{}, nil // the file is never smaller than what is in use
	}
	frames, copied, err := c.raw.WALCheckpoint("", sqlite3.CHECKPOINT_PASSIVE)
	if err != nil {
		return logState{}, err // another checkpoint is under way
	}
	page, err := c.query("PRAGMA page_size").one()
	if err != nil {
		return logState{}, err
	}
	w.mu.Lock()
	before := w.frames
	w.frames = frames
	w.mu.Unlock()
	bytes := int64(frames) * page
	return logState{bytes: bytes, held: bytes > w.limit && (copied < frames || before < frames && int64(before)*page > w.limit)}, nil
}

// logReader names who keeps the log from being emptied, as far as is known.
type logReader struct{ what, at, since string }

func (w *wal) oldestReader() logReader {
	r := w.readings.oldest()
	if r == nil || w.clock.since(r.since) < logLookEvery {
		return logReader{what: "another process: nothing of this one has been reading for longer than a second"}
	}
	return logReader{r.what, r.at.String(), w.clock.since(r.since).Round(time.Second).String()}
}

// health is an error while the log is large and cannot be emptied; it says who
// reads from it.
func (w *wal) health(c *conn) error {
	state, err := w.look(c)
	if err != nil || !state.held || state.bytes <= w.worse {
		return nil
	}
	r := w.oldestReader()
	if r.at != "" {
		r.what += " at " + r.at + ", for " + r.since
	}
	return fmt.Errorf("%s: %w: %d MiB, read by %s", w.store, store.ErrLogHeld, state.bytes>>20, r.what)
}
