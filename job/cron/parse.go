package cron

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Bounds of an expression.
const (
	MaxText  = 256 // bytes
	MinEvery = time.Second
	MaxEvery = 366 * 24 * time.Hour
)

// Expression is when something is due. It is safe for concurrent use.
type Expression struct {
	text string
	zone *time.Location

	every  time.Duration // of @every; 0 for all others
	anchor time.Time

	// A bit for each value that matches.
	second, minute, hour, day, month, weekday uint64
	running                                   bool // the hour is any: due whenever the clock shows a named time
}

// String is the expression as it was written.
func (e *Expression) String() string { return e.text }

// field is one part of an expression.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
	question bool     // ? is *
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	fields   = []field{
		{name: "second", max: 59},
		{name: "minute", max: 59},
		{name: "hour", max: 23},
		{name: "day of month", min: 1, max: 31, question: true},
		{name: "month", min: 1, max: 12, names: months},
		{name: "day of week", max: 7, names: weekdays, question: true},
	}
	named = map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
)

// Zone finds a time zone by its name in the IANA database; "" is UTC. "Local" is
// refused: it means another zone in each process.
func Zone(name string) (*time.Location, error) {
	switch name {
	case "", "UTC":
		return time.UTC, nil
	case "Local":
		return nil, job.Invalid("zone", name, "must name a zone, for instance Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, job.Invalid("zone", name, fmt.Sprintf("must be UTC or in the time zone database (%v): "+
			"install tzdata or import time/tzdata where there is none", err))
	}
	return zone, nil
}

// Parse reads an expression, whose times are those of a zone. Errors name the field.
func Parse(text string, zone *time.Location) (*Expression, error) {
	e := &Expression{text: text, zone: zone, anchor: time.Unix(0, 0)}
	if len(text) > MaxText {
		return nil, job.Invalid("cron", text, fmt.Sprintf("has %d bytes, must have at most %d", len(text), MaxText))
	}
	lower := strings.ToLower(strings.TrimSpace(text))
	if strings.HasPrefix(lower, "tz=") || strings.HasPrefix(lower, "cron_tz=") {
		return nil, job.Invalid("cron", text, "must not name a zone: that has a field of its own")
	}
	if every, ok := strings.CutPrefix(lower, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(every))
		if err != nil || d < MinEvery || d > MaxEvery || d%time.Second != 0 {
			return nil, job.Invalid("cron", text, fmt.Sprintf("@every needs whole seconds from %v to %v, for instance @every 90s", MinEvery, MaxEvery))
		}
		e.every = d
		return e, nil
	}
	if strings.HasPrefix(lower, "@") {
		full, ok := named[lower]
		if !ok {
			return nil, job.Invalid("cron", text, "must be @yearly, @monthly, @weekly, @daily, @hourly or @every with a duration")
		}
		lower = full
	}
	parts := strings.Fields(lower)
	switch len(parts) {
	case 5:
		parts = append([]string{"0"}, parts...)
	case 6:
	default:
		return nil, job.Invalid("cron", text, fmt.Sprintf("has %d fields, must have 5 (minute hour day month weekday) or 6 (second first)", len(parts)))
	}
	var errs []error
	sets := make([]uint64, len(fields))
	for i := range fields {
		var err error
		if sets[i], err = fields[i].parse(parts[i]); err != nil {
			errs = append(errs, job.Invalid("cron", text, err.Error()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	e.second, e.minute, e.hour, e.day, e.month, e.weekday = sets[0], sets[1], sets[2], sets[3], sets[4], sets[5]
	if e.weekday&(1<<7) != 0 {
		e.weekday = e.weekday&^(1<<7) | 1
	}
	e.running = strings.Contains(parts[2], "*") || e.hour == allHours
	if !e.possible() {
		return nil, job.Invalid("cron", text, "no month that it names has such a day: it would never be due")
	}
	return e, nil
}

// All values of a field.
const (
	allHours    = 1<<24 - 1
	allDays     = (1<<31 - 1) << 1
	allWeekdays = 1<<7 - 1
)

// possible reports whether any month has a day that matches.
func (e *Expression) possible() bool {
	if e.weekday != allWeekdays {
		return true // of either field, or of this one alone
	}
	longest := [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for m, days := range longest {
		if e.month&(1<<(m+1)) != 0 && bits.TrailingZeros64(e.day) <= days {
			return true
		}
	}
	return false
}

// parse reads a list.
func (f *field) parse(text string) (set uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		part, err := f.item(item)
		if err != nil {
			return 0, err
		}
		set |= part
	}
	return set, nil
}

// item reads a value, a range or a step.
func (f *field) item(text string) (uint64, error) {
	span, stepText, stepped := strings.Cut(text, "/")
	low, high := f.min, f.max
	first, last, isRange := strings.Cut(span, "-")
	var err error
	switch {
	case span == "*" || f.question && span == "?":
		if f.max == 7 {
			high = 6 // Sunday once
		}
	case isRange:
		if low, err = f.value(first); err != nil {
			return 0, err
		}
		if high, err = f.value(last); err != nil {
			return 0, err
		}
		if low > high {
			return 0, f.bad(text, "the range ends before it begins")
		}
	default:
		if low, err = f.value(first); err != nil {
			return 0, err
		}
		if !stepped {
			high = low
		} else if f.max == 7 {
			high = 6
		}
	}
	step := 1
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.max {
			return 0, f.bad(text, fmt.Sprintf("the step must be 1..%d", f.max))
		}
	}
	var set uint64
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	return set, nil
}

func (f *field) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.min + i, nil
		}
	}
	v, err := strconv.ParseUint(text, 10, 8)
	if err != nil || int(v) < f.min || int(v) > f.max {
		return 0, f.bad(text, fmt.Sprintf("must be %d..%d", f.min, f.max))
	}
	return int(v), nil
}

func (f *field) bad(text, bound string) error {
	return fmt.Errorf("%s %q: %s", f.name, text, bound)
}
