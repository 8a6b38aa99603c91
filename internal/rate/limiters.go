package rate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Errors of Acquire.
var (
	// ErrLate: the tokens come later than the caller can wait. Nothing was taken.
	ErrLate = errors.New("tokens come too late")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("limits are closed")
)

// maxIdle is how many limiters are remembered; beyond it those that nobody uses go.
const maxIdle = 10_000

// maxBooked is how far ahead tokens are spoken for.
const maxBooked = time.Hour

// Config is what limiters need.
type Config struct {
	Store store.Limits
	// Find is what holds for a limit now, and the revision of the settings.
	Find func(name string) (s job.LimitSettings, revision int64, ok bool)
}

// Limiters are the limiters of a process. All methods may be called from any goroutine.
type Limiters struct {
	config Config
	ctx    context.Context // of questions; ends when Close has waited for them
	cancel context.CancelFunc

	mu     sync.Mutex // comes before that of a limiter
	all    map[store.BucketName]*limiter
	closed bool

	gate  sync.Mutex // guards ended against loops that begin
	ended bool
	loops sync.WaitGroup
}

func New(c Config) *Limiters {
	l := &Limiters{config: c, all: map[store.BucketName]*limiter{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Acquire takes n tokens, and waits for them for as long as ctx lasts and patience
// does; negative means any time. When they come later it takes nothing, and says in how
// long they come, with ErrLate.
func (l *Limiters) Acquire(ctx context.Context, of store.BucketName, n int, patience time.Duration) (time.Duration, error) {
	return l.acquire(ctx, of, n, patience, false)
}

// AcquireOrBook is Acquire for one who comes back when it is sent away: the tokens of
// several of them come one after the other.
func (l *Limiters) AcquireOrBook(ctx context.Context, of store.BucketName, n int, patience time.Duration) (time.Duration, error) {
	return l.acquire(ctx, of, n, patience, true)
}

func (l *Limiters) acquire(ctx context.Context, of store.BucketName, n int, patience time.Duration, books bool) (time.Duration, error) {
	if err := l.check(of, n); err != nil {
		return 0, err
	}
	m, err := l.limiter(of)
	if err != nil {
		return 0, err
	}
	return m.acquire(ctx, n, patience, books)
}

// TakeUpTo takes up to n tokens that are there now, without waiting for any to come. When
// there is none it says in how long to ask again.
func (l *Limiters) TakeUpTo(ctx context.Context, of store.BucketName, n int) (taken int, again time.Duration, err error) {
	if err := l.check(of, 1); err != nil {
		return 0, 0, err
	}
	m, err := l.limiter(of)
	if err != nil {
		return 0, 0, err
	}
	again, err = m.acquire(ctx, 1, 0, false)
	switch {
	case errors.Is(err, ErrLate):
		return 0, max(again, time.Millisecond), nil
	case err != nil:
		return 0, 0, err
	}
	return 1 + m.more(n-1), 0, nil
}

// GiveBack returns tokens that TakeUpTo took and that were not used.
func (l *Limiters) GiveBack(of store.BucketName, n int) {
	l.mu.Lock()
	m := l.all[of]
	l.mu.Unlock()
	if m != nil {
		m.giveBack(n)
	}
}

// Drain empties a bucket for a time, or ends a drain (job.Undrain): here at once, in
// other processes when their blocks end, within job.BlockFor.
func (l *Limiters) Drain(ctx context.Context, of store.BucketName, d time.Duration, op *store.Operator) error {
	s, revision, err := l.find(of)
	if err != nil {
		return err
	}
	rate := s.Rate()
	if rate == (job.Rate{}) {
		return job.Invalid("limit", of.Limit, "has no rate to drain")
	}
	m, err := l.limiter(of)
	if err != nil {
		return err
	}
	if err := l.config.Store.Drain(ctx, of, job.TakeRequest{Rate: rate, Revision: revision, Since: -1, Drain: d}, op); err != nil {
		return err
	}
	m.drained(d)
	return nil
}

// Changed has those who wait ask again, because the settings have changed.
func (l *Limiters) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.all {
		m.changed()
	}
}

// Close gives back what is left of blocks and refuses everything from then on. Those
// who wait are told ErrClosed.
func (l *Limiters) Close() {
	l.mu.Lock()
	l.closed = true
	for _, m := range l.all {
		m.close()
	}
	l.mu.Unlock()
	l.gate.Lock()
	l.ended = true
	l.gate.Unlock()
	l.loops.Wait()
	l.cancel()
}

// find is what holds for a bucket.
func (l *Limiters) find(of store.BucketName) (job.LimitSettings, int64, error) {
	s, revision, ok := l.config.Find(of.Limit)
	switch {
	case !ok:
		return s, 0, job.Invalid("limit", of.Limit, "is not declared by any process, nor by Config.Limits of this one")
	case s.PerKey && of.Key == "":
		return s, 0, job.Invalid("limit", of.Limit, "is per key: it needs one, as a job with a key has in its handler")
	case !s.PerKey && of.Key != "":
		return s, 0, job.Invalid("key", of.Key, fmt.Sprintf("must be empty: limit %s is not per key", of.Limit))
	case s.PerSecond == 0:
		return s, 0, job.Invalid("limit", of.Limit, "has no rate to acquire from: PerSecond is not set")
	}
	return s, revision, nil
}

// check refuses what can never be taken.
func (l *Limiters) check(of store.BucketName, n int) error {
	s, _, err := l.find(of)
	if err != nil {
		return err
	}
	if n < 1 {
		return job.Invalid("tokens", n, "must be 1 or more")
	}
	if r := s.Rate(); r != (job.Rate{}) && n > r.Burst {
		return overBurst(of, n, int64(r.Burst))
	}
	return nil
}

func overBurst(of store.BucketName, n int, burst int64) error {
	return job.Invalid("tokens", n, fmt.Sprintf("must be at most %d, the burst of limit %s", burst, of))
}

// limiter is that of a bucket.
func (l *Limiters) limiter(of store.BucketName) (*limiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	m := l.all[of]
	if m == nil {
		if len(l.all) >= maxIdle {
			for name, old := range l.all {
				if old.idle() {
					delete(l.all, name)
				}
			}
		}
		m = &limiter{of: of, all: l, woken: make(chan struct{}, 1)}
		l.all[of] = m
	}
	return m, nil
}

// begin counts a loop; false after Close.
func (l *Limiters) begin() bool {
	l.gate.Lock()
	defer l.gate.Unlock()
	if l.ended {
		return false
	}
	l.loops.Add(1)
	return true
}
