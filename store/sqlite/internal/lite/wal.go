package lite

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
	LogLimit     = 64 << 20  // bytes in use from which the log of the process tells
	unhealthyLog = 512 << 20 // from which Health does

	logLookEvery = time.Second
	logSayEvery  = time.Minute
)

// WAL watches the log of one file, and finds that it cannot be emptied.
type WAL struct {
	Path         string // empty for a store in memory, which has none
	Limit, Worse int64
	Readings     Readings // what this process reads

	store  string // for messages
	clock  *Clock
	logger *slog.Logger

	opened time.Time
	looked atomic.Int64 // nanoseconds after that

	mu     sync.Mutex
	frames int // at the last look
	said   time.Duration
}

// NewWAL watches the log at path, of the store of that name.
func NewWAL(path, store string, c *Clock, logger *slog.Logger) *WAL {
	return &WAL{Path: path, Limit: LogLimit, Worse: unhealthyLog, store: store, clock: c, logger: logger, opened: c.Instant()}
}

// logState is what a look found.
type logState struct {
	bytes int64
	held  bool
}

// Watch looks at the log now and then, after a commit on the connection,
// which its caller owns. While the log is small that is a call to stat a second.
func (w *WAL) Watch(c *Conn) {
	if w.Path == "" {
		return
	}
	now, last := w.clock.Since(w.opened), w.looked.Load()
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
func (w *WAL) look(c *Conn) (logState, error) {
	info, err := os.Stat(w.Path)
	if err != nil || info.Size() <= w.Limit {
		return logState{}, nil // the file is never smaller than what is in use
	}
	frames, copied, err := c.Raw.WALCheckpoint("", sqlite3.CHECKPOINT_PASSIVE)
	if err != nil {
		return logState{}, err // another checkpoint is under way
	}
	page, err := c.Query("PRAGMA page_size").One()
	if err != nil {
		return logState{}, err
	}
	w.mu.Lock()
	before := w.frames
	w.frames = frames
	w.mu.Unlock()
	bytes := int64(frames) * page
	return logState{bytes: bytes, held: bytes > w.Limit && (copied < frames || before < frames && int64(before)*page > w.Limit)}, nil
}

// logReader names who keeps the log from being emptied, as far as is known.
type logReader struct{ what, at, since string }

func (w *WAL) oldestReader() logReader {
	r := w.Readings.oldest()
	if r == nil || w.clock.Since(r.Since) < logLookEvery {
		return logReader{what: "another process: nothing of this one has been reading for longer than a second"}
	}
	return logReader{r.What, r.At.String(), w.clock.Since(r.Since).Round(time.Second).String()}
}

// Health is an error while the log is large and cannot be emptied; it says who
// reads from it.
func (w *WAL) Health(c *Conn) error {
	state, err := w.look(c)
	if err != nil || !state.held || state.bytes <= w.Worse {
		return nil
	}
	r := w.oldestReader()
	if r.at != "" {
		r.what += " at " + r.at + ", for " + r.since
	}
	return fmt.Errorf("%s: %w: %d MiB, read by %s", w.store, store.ErrLogHeld, state.bytes>>20, r.what)
}
