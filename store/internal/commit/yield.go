package commit

import "runtime"

// Yield decides whether other goroutines may run once more before the next batch
// is taken. Most of those who were just answered ask again at once, and would
// otherwise miss that batch by a moment, for ever: half of the callers would be
// committed while the other half waits. A lone caller is not waited for.
type Yield func(Interval) bool

// Interval is what the committer sees between two batches.
type Interval struct {
	Round    int // how often others were let run since the last batch
	Answered int // calls of the last batch
	First    int // calls that waited in round 0
	Waiting  int // calls that wait now
}

// UntilAll yields up to eight times, until as many wait as were there in all.
// (Postgres, 16 callers: 15 of them in a commit instead of 8.)
func UntilAll(i Interval) bool {
	all := i.Answered + i.First
	return i.Round < 8 && all > 1 && (i.Round == 0 || i.Waiting < all)
}

// UntilHalf yields up to three times, until half as many wait as were answered. It
// is for commits that are so short that more yields cost more than they gain.
// (SQLite, 16 callers: 11 of them in a commit instead of 8.)
func UntilHalf(i Interval) bool { return i.Round < 3 && 2*i.Waiting < i.Answered }

func (m *Committer[C]) yield(answered int) {
	if m.options.Yield == nil {
		return
	}
	i := Interval{Answered: answered, Waiting: m.Waiting()}
	for i.First = i.Waiting; m.options.Yield(i); i.Round++ {
		runtime.Gosched()
		i.Waiting = m.Waiting()
	}
}
