package supervise

import (
	"context"
	"math/rand/v2"
	"time"
)

// tick is the ticking of an Every or EveryShard. All fields but wake belong to its goroutine.
// It outlives restarts: due times and skipped shards survive a panic, so that a panicking tick
// neither runs more often than its interval nor forgets which shard is to blame.
type tick struct {
	member      *child
	interval    time.Duration
	floor       time.Duration
	startJitter time.Duration
	leadership  Leadership
	shards      []*shard // a plain tick has one, without a name

	wake    chan struct{}   // holds one: wakes before the next run start are one wake
	due     time.Time       // start of the next cycle; zero before the first
	asked   time.Time       // when leadership was last asked
	changed <-chan struct{} // set only while the last answer was "not yours"
}

func newTick(m *child, s Service, floor time.Duration) *tick {
	t := &tick{
		member:      m,
		interval:    s.interval,
		floor:       floor,
		startJitter: s.startJitter,
		leadership:  s.leadership,
		wake:        make(chan struct{}, 1),
	}
	if s.sharded {
		for position, name := range s.shards {
			t.shards = append(t.shards, newShard(m, s, position, name))
		}
	} else {
		t.shards = []*shard{newShard(m, s, -1, "")}
	}
	m.attempt = t.attempt
	return t
}

// attempt ticks until its context ends, or until a panic, which is the policy's to judge.
func (t *tick) attempt(ctx context.Context) (began time.Time, err error) {
	if t.due.IsZero() {
		t.due = time.Now()
		if t.startJitter > 0 {
			t.due = t.due.Add(rand.N(t.startJitter))
		}
	}
	for t.wait(ctx) {
		if began.IsZero() {
			began = time.Now()
		}
		if err := t.cycle(ctx); err != nil {
			return began, err
		}
	}
	return began, nil
}

// wait returns true when the next cycle is to start: it is due, somebody asked for it, or it may have
// become ours. False means that ctx ended. A tick that is due already costs no timer: a run that
// drains a backlog with NextIn(0) comes back here thousands of times a second.
func (t *tick) wait(ctx context.Context) bool {
	t.member.enter(StateWaiting, t.due)
	changed := t.changed
	for until := t.due; ; {
		left := time.Until(until)
		if left <= 0 || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-t.wake:
			until = time.Time{}
		case <-changed:
			// Not before the floor: a Leadership whose channel is always closed must not spin.
			changed = nil
			if soonest := t.asked.Add(t.floor); soonest.Before(until) {
				until = soonest
			}
		}
		timer.Stop()
	}
}

// cycle runs every shard once if the cycle is ours. Its error is the first panic; plain errors
// have been counted and logged.
func (t *tick) cycle(ctx context.Context) error {
	select {
	case <-t.wake: // this cycle answers every wake sent before it
	default:
	}
	start := time.Now()
	t.due = start.Add(t.interval)
	if mine, err := t.mine(ctx, start); !mine {
		return err
	}

	t.member.runBegan(start)
	success := true
	var panicked error
	var next time.Time
	for _, shard := range t.shards {
		if ctx.Err() != nil {
			success = false
			break
		}
		wish := t.due
		if !shard.skipped() {
			after, chosen, err := shard.run(ctx)
			if chosen {
				wish = time.Now().Add(after)
			}
			if err != nil {
				success = false
			}
			if panicked == nil && isPanic(err) {
				panicked = err
			}
		}
		if next.IsZero() || wish.Before(next) {
			next = wish
		}
	}
	if !next.IsZero() {
		t.due = next
	}
	t.member.runEnded(time.Now(), success)
	return panicked
}

// mine asks the leadership, if there is one. Not mine is quiet; not known is an error of the service.
func (t *tick) mine(ctx context.Context, now time.Time) (mine bool, panicked error) {
	if t.leadership == nil {
		return true, nil
	}
	t.asked = now
	err := call(func() (err error) {
		t.changed = t.leadership.Changed(t.member.name) // before Mine, so that no change is missed
		mine, err = t.leadership.Mine(ctx, t.member.name)
		return err
	})
	if err != nil {
		mine = false
		if !interrupted(ctx, err) {
			t.member.reportFailure(ctx, t.member.logger, err)
		}
	}
	if mine {
		t.changed = nil // while it is ours there is nothing to be told
		return true, nil
	}
	t.member.runSkipped()
	if isPanic(err) {
		return false, err
	}
	return false, nil
}
