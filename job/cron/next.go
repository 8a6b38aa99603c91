package cron

import "time"

// Horizon is how far Next looks.
const Horizon = 5 * 366 * 24 * time.Hour

// before is how far ahead of an instant the changes of the clock matter for what it
// shows then: no zone has ever moved by more than a day.
const before = 2 * 24 * 60 * 60

// Anchored is the expression with another anchor, which only @every has.
func (e *Expression) Anchored(at time.Time) *Expression {
	with := *e
	with.anchor = at
	return &with
}

// Next is the first instant after another at which it is due; zero when there is none
// within Horizon.
func (e *Expression) Next(after time.Time) time.Time {
	if e.every > 0 {
		passed := after.Sub(e.anchor)
		if passed < 0 {
			return e.anchor.Add(e.every)
		}
		return e.anchor.Add((passed/e.every + 1) * e.every)
	}
	least := after.Unix() + 1
	limit := least + int64(Horizon/time.Second)
	// The time is walked in stretches of one offset from UTC. high is up to where the
	// clock has shown every time, or skipped it: what comes again below it is the
	// second time, what it jumps over is a gap.
	begin := least - before
	high, known := int64(0), false
	for begin < limit {
		offset, end := e.stretch(begin, limit)
		shows := begin + offset
		from := max(shows, least+offset)
		if !e.running && known {
			if high < shows && begin >= least {
				if _, skipped := e.firstShown(high, shows); skipped {
					return e.at(begin)
				}
			}
			from = max(from, high)
		}
		if shown, found := e.firstShown(from, end+offset); found {
			return e.at(shown - offset)
		}
		high, known = max(high, end+offset), true
		begin = end
	}
	return time.Time{}
}

// Last is the last instant before another at which it was due, and not before from;
// zero when there is none. Next never goes back when its argument goes on, so it is
// found by halving.
func (e *Expression) Last(until, from time.Time) time.Time {
	due := func(after time.Time) bool { n := e.Next(after); return !n.IsZero() && n.Before(until) }
	low := from.Add(-1)
	if !due(low) {
		return time.Time{}
	}
	// Due after low, and not after high.
	for high := until; high.Sub(low) > time.Second; {
		if middle := low.Add(high.Sub(low) / 2); due(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return e.Next(low)
}

func (e *Expression) at(unix int64) time.Time { return time.Unix(unix, 0).In(e.zone) }

// stretch is the offset from UTC at an instant, in seconds, and where it ends.
func (e *Expression) stretch(at, limit int64) (offset, end int64) {
	t := time.Unix(at, 0).In(e.zone)
	_, seconds := t.Zone()
	_, until := t.ZoneBounds()
	if until.IsZero() || until.Unix() > limit {
		return int64(seconds), limit
	}
	return int64(seconds), until.Unix()
}

// firstShown is the first named time that a clock shows from one on and before
// another. Times of a clock are counted as if it showed UTC.
func (e *Expression) firstShown(from, until int64) (int64, bool) {
	if from >= until {
		return 0, false
	}
	t := time.Unix(from, 0).UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	clock := int(from - day.Unix())
	for day.Unix() < until {
		switch {
		case e.month&(1<<day.Month()) == 0:
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !e.onDay(day):
			day = day.AddDate(0, 0, 1)
		default:
			if seconds, found := e.firstClock(clock); found {
				shown := day.Unix() + int64(seconds)
				return shown, shown < until
			}
			day = day.AddDate(0, 0, 1)
		}
		clock = 0
	}
	return 0, false
}

// onDay reports whether a day matches: both fields, or either where both leave
// something out.
func (e *Expression) onDay(day time.Time) bool {
	ofMonth, ofWeek := e.day&(1<<day.Day()) != 0, e.weekday&(1<<day.Weekday()) != 0
	if e.day == allDays || e.weekday == allWeekdays {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// firstClock is the first named time of a day from one on, in seconds.
func (e *Expression) firstClock(from int) (int, bool) {
	h, m, s := from/3600, from/60%60, from%60
	for ; h < 24; h, m, s = h+1, 0, 0 {
		if e.hour&(1<<h) == 0 {
			continue
		}
		for ; m < 60; m, s = m+1, 0 {
			if e.minute&(1<<m) == 0 {
				continue
			}
			for ; s < 60; s++ {
				if e.second&(1<<s) != 0 {
					return h*3600 + m*60 + s, true
				}
			}
		}
	}
	return 0, false
}
