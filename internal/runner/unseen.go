package runner

import "time"

// unseen is what may wait in a queue beyond what its claims have seen. Guarded by
// Runner.mu. All of it is answered by a claim that began later and came back with less
// than it asked for: then nothing is left that could start.
//
//	own    0 ── accepted ──> n ── exhausted claim ──> those accepted since it began
//	other  none ── hint, due time, full claim ──> from ── claim ──> asked ── exhausted ──> none
type unseen struct {
	own    int       // jobs that this process accepted to wait
	before int       // of them, those that were there when the claim under way began
	from   time.Time // when others may be ready, of whom it is not known how many; zero: nothing is known
	asked  time.Time // likewise, of those that the claim under way looks for
}

// hint notes that others may be ready by then.
func (u *unseen) hint(at time.Time) {
	if u.from.IsZero() || at.Before(u.from) {
		u.from = at
	}
}

// some reports whether others may be ready.
func (u *unseen) some(now time.Time) bool {
	return !u.asked.IsZero() || !u.from.IsZero() && !now.Before(u.from)
}

// ask notes that a claim begins.
func (u *unseen) ask(now time.Time) {
	u.before = u.own
	if u.some(now) {
		u.asked = now
		if !now.Before(u.from) {
			u.from = time.Time{}
		}
	}
}

// answered notes what became of it. One that is not exhausted asks for a look anyway,
// which says that others may be ready.
func (u *unseen) answered(exhausted bool) {
	if exhausted {
		u.own -= u.before
	}
	u.before, u.asked = 0, time.Time{}
}
