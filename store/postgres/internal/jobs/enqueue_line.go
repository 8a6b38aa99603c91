package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// LockKey is what an enqueue may have to wait for: a unique key, or the id of a
// job that may be there already. One of the two is set.
type LockKey struct {
	Hash string
	ID   job.ID
}

// lockKeys lists what a caller's drafts may have to wait for. again says that
// they may have been committed before: then each of their ids may be there.
func lockKeys(drafts []job.Draft, again bool) []LockKey {
	var keys []LockKey
	seen := map[LockKey]bool{}
	add := func(k LockKey) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for i := range drafts {
		d := &drafts[i]
		if d.Unique.Hash != nil {
			add(LockKey{Hash: string(d.Unique.Hash)})
		}
		if d.Resend || again {
			add(LockKey{ID: d.ID})
		}
	}
	return keys
}

// keyHeld answers a call whose key an open transaction holds. Nothing was done
// for the call, unless it may have been committed before.
type keyHeld struct{ Key LockKey }

func (*keyHeld) Error() string { return errBusyLimit.Error() }
func (*keyHeld) Unwrap() error { return store.ErrBusy }

// HeldBy is what a call was told of a held key, nil if it was not.
func HeldBy(err error) *keyHeld {
	var held *keyHeld
	if errors.As(err, &held) {
		return held
	}
	return nil
}

var (
	errBusyLimit = fmt.Errorf("%w: a unique key is held by an open transaction", store.ErrBusy)
	ErrManyWait  = fmt.Errorf("%w: a unique key is held by an open transaction, and %d calls wait for such keys already", store.ErrBusy, MostWaiting)
)

// MostWaiting bounds how many calls of a process wait for held keys (P10).
const MostWaiting = 10_000

// blocked are the calls that go on beside the shared commits.
type blocked struct{ going sync.WaitGroup }

// alone runs f in a goroutine that Close waits for.
func (b *blocked) alone(f func()) { b.going.Go(f) }

// lines are where calls wait for keys that open transactions hold: a line for
// each key. One goroutine for each line asks the server now and then whether its
// key is free, without waiting there, and then lets the whole line go on. So who
// waits for one key never stands behind another (P8), and the wait costs the
// server at most two connections, however many wait for however many keys. A line
// that nobody stands in any more is gone.
type lines struct {
	Mu      sync.Mutex
	All     map[LockKey]*line
	Waiting int // calls, in all lines

	once sync.Once
	// Turns at the server: some for sorting shared commits out, and one each for
	// keys that are held since a moment and since long: where many are stuck, one
	// that is held for a moment is still found free soon.
	sorting, young, Old chan struct{}
}

// line is the calls that wait for one key.
type line struct {
	Callers int
	free    chan struct{}      // closed when the key was found free
	end     context.CancelFunc // nobody waits any more
}

func (r *Room) Turns() {
	l := &r.Lines
	l.once.Do(func() {
		l.sorting, l.young, l.Old = make(chan struct{}, r.Sorting), make(chan struct{}, 1), make(chan struct{}, 1)
	})
}

// take waits for a turn.
func take(ctx context.Context, turn chan struct{}) (release func(), ok bool) {
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, true
	case <-ctx.Done():
		return nil, false
	}
}

// some reports whether anybody waits.
func (l *lines) some() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return len(l.All) > 0
}

// among is the first key of the drafts that has a line. again is as in lockKeys.
func (l *lines) among(drafts []job.Draft, again bool) (LockKey, bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if len(l.All) == 0 {
		return LockKey{}, false
	}
	for _, k := range lockKeys(drafts, again) {
		if l.All[k] != nil {
			return k, true
		}
	}
	return LockKey{}, false
}

// wait stands in the line of a key until the key was found free. An error says
// that the time of ctx is over, or that too many wait.
func (r *Room) wait(ctx context.Context, key LockKey) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	line, err := r.join(key)
	if err != nil {
		return err
	}
	defer r.Lines.quit(key, line)
	select {
	case <-line.free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join enters the line of a key, or opens it.
func (r *Room) join(key LockKey) (*line, error) {
	l := &r.Lines
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Waiting >= MostWaiting {
		return nil, ErrManyWait
	}
	l.Waiting++
	if at := l.All[key]; at != nil {
		at.Callers++
		return at, nil
	}
	ctx, end := context.WithCancel(r.pg.Ending)
	at := &line{Callers: 1, free: make(chan struct{}), end: end}
	if l.All == nil {
		l.All = map[LockKey]*line{}
	}
	l.All[key] = at
	r.blocked.alone(func() { r.attend(ctx, key, at) })
	return at, nil
}

// quit leaves a line. The last one takes it away.
func (l *lines) quit(key LockKey, at *line) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Waiting--
	if at.Callers--; at.Callers == 0 {
		at.end()
		l.remove(key, at)
	}
}

// remove forgets a line, if it is still that of its key.
func (l *lines) remove(key LockKey, at *line) {
	if l.All[key] == at {
		delete(l.All, key)
	}
}

// youth is how many looks at a key are made in the turn of young lines; the
// pauses between them grow up to there, to about a quarter of a second.
const youth = 5

// attend asks for a line's key until it is free, then lets the line go on.
func (r *Room) attend(ctx context.Context, key LockKey, at *line) {
	r.Turns()
	turn := r.Lines.young
	for n := 1; pg.Pause(ctx, min(n, youth)); n++ {
		if n > youth {
			turn = r.Lines.Old
		}
		release, ok := take(ctx, turn)
		if !ok {
			break
		}
		held := r.held(ctx, []LockKey{key})
		release()
		if !held {
			break
		}
	}
	r.Lines.Mu.Lock()
	defer r.Lines.Mu.Unlock()
	r.Lines.remove(key, at)
	close(at.free)
}

// probeLimits is no wait at all, as far as the server can: an insert has no NOWAIT.
var probeLimits = &pg.Limits{Lock: 2 * time.Millisecond}

// errProbed undoes a probe.
var errProbed = errors.New("undo")

// probeIDs asks for ids. Nobody ever sees these rows.
//
//   - job_pkey tells who holds one.
const probeIDs = `INSERT INTO pawl.job (namespace, id, state, priority, due, created, max_attempts, queue, kind)
SELECT $1, e.id, 1, 5, {now}, {now}, 1, '', ''
FROM unnest($2::uuid[]) AS e (id)
ORDER BY e.id
ON CONFLICT (namespace, id) DO NOTHING`

// held reports whether somebody's transaction holds one of the keys at this
// moment. It takes them as an enqueue would, and undoes that. A probe that fails
// for another reason says no: whoever wants the keys meets that reason itself.
func (r *Room) held(ctx context.Context, keys []LockKey) bool {
	ctx, cancel := context.WithTimeout(ctx, r.pg.TryTimeout)
	defer cancel()
	var hashes []uniqueKey
	var ids [][16]byte
	for _, k := range keys {
		if k.Hash != "" {
			hashes = append(hashes, uniqueKey{hash: []byte(k.Hash)})
		} else {
			ids = append(ids, k.ID)
		}
	}
	slices.SortFunc(hashes, func(a, b uniqueKey) int { return bytes.Compare(a.hash, b.hash) })
	err := r.pg.Transact(ctx, r.pg.Work, probeLimits, func(t *pg.Transaction) error {
		if len(hashes) > 0 {
			if _, err := r.takeUnique(ctx, t, hashes, false); err != nil {
				return err
			}
		}
		if len(ids) > 0 {
			if err := t.Run(ctx, &pg.Statement{Text: probeIDs, Args: []any{r.pg.Namespace, ids}}); err != nil {
				return err
			}
		}
		return errProbed
	})
	return pg.FaultOf(err).Blocked
}

// firstHeld finds the key that a call has to wait for, by halves. If none is held
// any more, it names one that the caller finds free.
func (r *Room) firstHeld(ctx context.Context, keys []LockKey) LockKey {
	for len(keys) > 1 {
		half := len(keys) / 2
		if r.held(ctx, keys[:half]) {
			keys = keys[:half]
		} else {
			keys = keys[half:]
		}
	}
	return keys[0]
}

// allHeld finds every key that is held, by halves.
func (r *Room) allHeld(ctx context.Context, keys []LockKey) []LockKey {
	switch {
	case len(keys) == 0 || !r.held(ctx, keys):
		return nil
	case len(keys) == 1:
		return keys
	}
	half := len(keys) / 2
	return slices.Concat(r.allHeld(ctx, keys[:half]), r.allHeld(ctx, keys[half:]))
}
