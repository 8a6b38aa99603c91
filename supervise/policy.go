package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Policy decides what follows a failure: a restart, after a pause, or the end of the service.
// The four policies are Never, OnceMore, Bounded and Always; the interface is sealed.
//
// A failure is an error or a panic of a Loop or Once, or a panic of a tick. The plain error of a
// tick is no failure of the service: it is logged, counted, and the ticking goes on. A nil return
// of a Loop or Once is its clean end, under every policy.
type Policy interface {
	fmt.Stringer
	withDefaults() Policy
	check() error
	// open gives one service its own account: a Policy value may be shared by many services.
	open() account
}

// account is the memory of one service's failures.
type account interface {
	// failed records a failure at now, of an attempt that had lasted for ran, and says whether
	// the service may run again and after which pause.
	failed(now time.Time, ran time.Duration) (pause time.Duration, again bool)
}

// Never allows no restart: the first failure is final and an error from Wait.
type Never struct{}

// OnceMore allows one restart, at once, in the service's whole life.
type OnceMore struct{}

// Bounded allows at most Max restarts within any period of length Window, each at once.
// The window slides: it reaches back from the failure at hand, so a burst across the border of
// two periods is counted whole, and an old restart stops counting the moment it is Window old.
type Bounded struct {
	Max    int           // [5] 1 to 10,000
	Window time.Duration // [1 min]
}

// Always allows every restart, after a pause that doubles from First up to Limit. The pause taken
// is drawn from the upper half of that value, so that processes that fell over together do
// not come back together. An attempt that lasted at least Limit starts the doubling afresh.
type Always struct {
	First time.Duration // [100 ms] pause before the first restart
	Limit time.Duration // [30 s] the longest pause
}

const maxBoundedRestarts = 10_000

// String names the policy as logs and errors show it.
func (Never) String() string { return "never" }

// String names the policy as logs and errors show it.
func (OnceMore) String() string { return "once more" }

// String names the policy and its bounds as logs and errors show it.
func (b Bounded) String() string { return fmt.Sprintf("at most %d in %v", b.Max, b.Window) }

// String names the policy and its pauses as logs and errors show it.
func (a Always) String() string { return fmt.Sprintf("always, pause %v to %v", a.First, a.Limit) }

func (p Never) withDefaults() Policy    { return p }
func (p OnceMore) withDefaults() Policy { return p }
func (b Bounded) withDefaults() Policy {
	return Bounded{Max: cmp.Or(b.Max, 5), Window: cmp.Or(b.Window, time.Minute)}
}
func (a Always) withDefaults() Policy {
	return Always{First: cmp.Or(a.First, 100*time.Millisecond), Limit: cmp.Or(a.Limit, 30*time.Second)}
}

func (Never) check() error    { return nil }
func (OnceMore) check() error { return nil }

func (b Bounded) check() error {
	var faults []error
	if b.Max < 1 || b.Max > maxBoundedRestarts {
		faults = append(faults, fmt.Errorf("Bounded.Max is %d, must be 1 to %d", b.Max, maxBoundedRestarts))
	}
	if b.Window <= 0 {
		faults = append(faults, fmt.Errorf("Bounded.Window is %v, must be above 0", b.Window))
	}
	return errors.Join(faults...)
}

func (a Always) check() error {
	var faults []error
	if a.First <= 0 {
		faults = append(faults, fmt.Errorf("Always.First is %v, must be above 0", a.First))
	}
	if a.Limit < a.First {
		faults = append(faults, fmt.Errorf("Always.Limit is %v, must be at least Always.First (%v)", a.Limit, a.First))
	}
	return errors.Join(faults...)
}

func (Never) open() account     { return &countdown{left: 0} }
func (OnceMore) open() account  { return &countdown{left: 1} }
func (b Bounded) open() account { return &slidingWindow{policy: b} }
func (a Always) open() account  { return &backoff{policy: a} }

type countdown struct{ left int }

func (c *countdown) failed(time.Time, time.Duration) (time.Duration, bool) {
	if c.left == 0 {
		return 0, false
	}
	c.left--
	return 0, true
}

type slidingWindow struct {
	policy   Bounded
	restarts []time.Time // within the window, oldest first; never more than policy.Max
}

func (w *slidingWindow) failed(now time.Time, _ time.Duration) (time.Duration, bool) {
	old := 0
	for old < len(w.restarts) && now.Sub(w.restarts[old]) >= w.policy.Window {
		old++
	}
	w.restarts = append(w.restarts[:0], w.restarts[old:]...)
	if len(w.restarts) >= w.policy.Max {
		return 0, false
	}
	w.restarts = append(w.restarts, now)
	return 0, true
}

type backoff struct {
	policy Always
	pause  time.Duration // before jitter; 0 before the first failure
}

func (b *backoff) failed(_ time.Time, ran time.Duration) (time.Duration, bool) {
	switch {
	case b.pause == 0 || ran >= b.policy.Limit:
		b.pause = b.policy.First
	case b.pause > b.policy.Limit/2:
		b.pause = b.policy.Limit
	default:
		b.pause *= 2
	}
	return b.pause - rand.N(b.pause/2+1), true
}
