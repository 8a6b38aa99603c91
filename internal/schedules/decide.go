package schedules

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/cron"
	"github.com/pawlwork/pawl/store"
)

// decision is what a schedule needs now.
type decision struct {
	needed bool         // the state is to be changed
	firing store.Firing // but for its jobs
	due    []time.Time  // those jobs' times, in order
}

// decide says what becomes of a schedule, from its state (nil: none) and the store's
// time. The cases, in order:
//
//  1. No state: it begins now. What would have been due before is not.
//  2. Another expression or zone than the state's: it begins anew, after everything
//     that the old one has fired.
//  3. Paused: it has no next due time. Resumed: it goes on from now.
//  4. Due: the due times up to now that CatchUp names are fired, and the next is
//     after now. When now is before the last one, because the clock was set back,
//     nothing is due until it is there again.
//  5. The clock was set forward and back, and due times were skipped that are yet to
//     come: they are due again. Those that were fired are not.
func decide(e *Entry, state *store.ScheduleState, now time.Time) (d decision) {
	s := &e.Settings
	d.firing = store.Firing{Name: e.Name, Cron: s.Cron, Zone: s.Zone, Anchor: now}
	begins := func(from time.Time) decision {
		d.needed = true
		if !s.IsPaused() {
			d.firing.Next = e.expression.Anchored(d.firing.Anchor).Next(from)
		}
		return d
	}
	if state == nil {
		d.firing.New = true
		return begins(now)
	}
	d.firing.Was = state.Next
	from := later(now, state.Last)
	if state.Cron != s.Cron || state.Zone != s.Zone {
		return begins(from)
	}
	d.firing.Anchor = state.Anchor
	expression := e.expression.Anchored(state.Anchor)
	switch {
	case s.IsPaused():
		d.needed = !state.Next.IsZero()
	case state.Next.IsZero():
		d.firing.Next = expression.Next(from)
		d.needed = !d.firing.Next.IsZero()
	case !state.Next.After(now):
		d.needed, d.firing.Next = true, expression.Next(now)
		if d.due = missed(expression, s.CatchUp, state.Next, now); len(d.due) > 0 {
			d.firing.Last = d.due[len(d.due)-1]
		}
	default:
		d.firing.Next = expression.Next(from)
		d.needed = !d.firing.Next.IsZero() && d.firing.Next.Before(state.Next)
	}
	return d
}

// missed are the due times from one on up to now that are to be fired.
func missed(e *cron.Expression, c job.CatchUp, from, now time.Time) []time.Time {
	until := now.Add(1)
	newest := e.Last(until, from)
	if newest.IsZero() { // it was due by rules of the zone that have changed since
		newest = from
	}
	switch cmp.Or(c, job.CatchUpOne) {
	case job.CatchUpNone:
		if now.Sub(newest) > job.LateFire {
			return nil
		}
		return []time.Time{newest}
	case job.CatchUpAll:
		list := []time.Time{newest}
		for len(list) < job.MaxCatchUp {
			earlier := e.Last(list[len(list)-1], from)
			if earlier.IsZero() {
				break
			}
			list = append(list, earlier)
		}
		slices.Reverse(list)
		return list
	}
	return []time.Time{newest}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// NextOf is when an entry is due next, as far as its state says; zero when it is not.
func NextOf(e *Entry, state *store.ScheduleState, now time.Time) time.Time {
	if e.Fault != nil || e.Settings.IsPaused() {
		return time.Time{}
	}
	if d := decide(e, state, now); d.needed && len(d.due) == 0 {
		return d.firing.Next
	}
	return state.Next
}
