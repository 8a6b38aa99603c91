package keeper

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

const (
	// othersEvery is how many periods the rounds of a process that does not lead are
	// apart. They are done all the same: a leader may beat and be stuck.
	othersEvery = 3
	// lookFor is the part of the time between two rounds for which a look serves
	// another round, too.
	lookFor = 10
)

// tick does one round, unless a look says that there is nothing to do, and says
// when the next one is. That is counted from the look: whatever came due after it
// waits for one interval, whoever looked.
func (k *Keeper) tick(ctx context.Context, r Round) error {
	interval := cmp.Or(k.config.Every(r.Name), r.Period)
	if !k.config.Leads() {
		interval *= othersEvery
	}
	since := time.Now()
	if r.Due != nil && !k.last.more(r.Name) {
		due, at, err := k.look(ctx, interval/lookFor)
		if err != nil {
			return err
		}
		since = at
		if !r.Due(due) {
			return supervise.NextIn(k.untilNext(since, interval))
		}
	}
	report, err := r.Do(ctx, k.config.Limit)
	k.last.setMore(r.Name, err == nil && report.More)
	switch {
	case err != nil:
		return err
	case report.More:
		return supervise.NextIn(report.Pause)
	}
	return supervise.NextIn(k.untilNext(since, interval))
}

// untilNext is how long until the next round, one interval after the look. In the
// rhythm of the store, which looks for several namespaces at once, it may be
// sooner. What is counted from there is now, not the look: that may be of the beat
// before.
func (k *Keeper) untilNext(since time.Time, interval time.Duration) time.Duration {
	if k.config.Rhythm == nil {
		return interval - time.Since(since)
	}
	return time.Until(k.config.Rhythm.After(time.Now(), interval))
}

// lastLook is what the last look said.
type lastLook struct {
	mu  sync.Mutex
	due store.Due
	at  time.Time // when it was asked; zero before the first
	// going are the rounds that have said that there is more: they need no look, and one
	// that came while they paused says that nothing is due yet.
	going map[string]bool
}

func (l *lastLook) more(round string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.going[round]
}

func (l *lastLook) setMore(round string, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.going == nil {
		l.going = map[string]bool{}
	}
	l.going[round] = more
}

// look says what is due, and when that was asked: by the last look if it is young
// enough, so that rounds share one. Two that ask at the same moment both look.
func (k *Keeper) look(ctx context.Context, young time.Duration) (store.Due, time.Time, error) {
	if due, at, ok := k.last.within(young); ok {
		return due, at, nil
	}
	at := time.Now()
	due, err := k.store.Due(ctx)
	if err != nil {
		return store.Due{}, at, fmt.Errorf("look for what is due: %w", err)
	}
	k.last.set(due, at)
	return due, at, nil
}

func (l *lastLook) within(young time.Duration) (store.Due, time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due, l.at, !l.at.IsZero() && time.Since(l.at) <= young
}

func (l *lastLook) set(due store.Due, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.at) {
		l.due, l.at = due, at
	}
}

// ForgetLook makes the next round look anew: there is something to do that the last
// look has not seen.
func (k *Keeper) ForgetLook() {
	k.last.mu.Lock()
	defer k.last.mu.Unlock()
	k.last.at = time.Time{}
}
