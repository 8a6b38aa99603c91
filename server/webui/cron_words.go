package webui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cronWords says when an expression is due: "at 06:00 on weekdays". It is empty for one that has no short words; the expression
// itself always stands beside it. Package job/cron decides what is due; this only reads what that has accepted.
func cronWords(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(every))
		if err != nil {
			return ""
		}
		return "every " + duration(d)
	}
	if full, ok := cronNames[text]; ok {
		text = full
	}
	parts := strings.Fields(text)
	if len(parts) == 5 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 6 {
		return ""
	}
	var f [6]cronField
	for i, part := range parts {
		var ok bool
		if f[i], ok = readCronField(part, cronBounds[i]); !ok {
			return ""
		}
	}
	when := timeWords(f[0], f[1], f[2])
	days, ok := dayWords(f[3], f[4], f[5])
	if when == "" || !ok {
		return ""
	}
	return strings.TrimSpace(when + days)
}

var cronNames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
	"@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// cronField is what one field of an expression names.
type cronField struct {
	values []int
	star   bool // any
	step   int  // of */n; 0: none
	span   bool // one range without a step: 9-17
}

func (f *cronField) last() int { return f.values[len(f.values)-1] }

func (f *cronField) one() bool { return len(f.values) == 1 }

// cronBounds are the fields from seconds to weekdays.
var cronBounds = [6]struct {
	least, most int
	names       string // of the values from least on, three letters each
}{
	{0, 59, ""}, {0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 7, "sunmontuewedthufrisat"},
}

func readCronField(text string, of struct {
	least, most int
	names       string
}) (f cronField, ok bool) {
	number := func(s string) (int, bool) {
		if i := strings.Index(of.names, s); len(s) == 3 && i >= 0 && i%3 == 0 {
			return of.least + i/3, true
		}
		n, err := strconv.Atoi(s)
		return n, err == nil && n >= of.least && n <= of.most
	}
	set := map[int]bool{}
	for item := range strings.SplitSeq(text, ",") {
		span, by, stepped := strings.Cut(item, "/")
		low, high, step := of.least, of.most, 1
		first, last, isRange := strings.Cut(span, "-")
		switch {
		case span == "*" || span == "?":
			f.star = f.star || !stepped
		case isRange:
			var a, b bool
			low, a = number(first)
			high, b = number(last)
			if !a || !b {
				return f, false
			}
			f.span = !stepped && item == text
		default:
			if low, ok = number(first); !ok {
				return f, false
			}
			if !stepped {
				high = low
			}
		}
		if stepped {
			var err error
			if step, err = strconv.Atoi(by); err != nil || step < 1 {
				return f, false
			}
			if span == "*" && item == text {
				f.step = step
			}
		}
		for n := low; n <= high; n += step {
			if of.most == 7 {
				set[n%7] = true // Sunday is 0 and 7
			} else {
				set[n] = true
			}
		}
	}
	if f.step == 1 {
		f.step, f.star = 0, true
	}
	for n := range set {
		f.values = append(f.values, n)
	}
	slices.Sort(f.values)
	return f, len(f.values) > 0
}

// timeWords are those of the time of a day.
func timeWords(second, minute, hour cronField) string {
	clock := func(h, m int) string {
		if second.one() && second.values[0] != 0 {
			return fmt.Sprintf("%02d:%02d:%02d", h, m, second.values[0])
		}
		return fmt.Sprintf("%02d:%02d", h, m)
	}
	if !second.one() {
		if !minute.star || !hour.star {
			return ""
		}
		switch {
		case second.star:
			return "every second"
		case second.step > 0 && 60%second.step == 0:
			return "every " + duration(time.Duration(second.step)*time.Second)
		}
		return ""
	}
	switch {
	case hour.star && minute.star:
		return "every minute"
	case hour.star && minute.step > 0 && 60%minute.step == 0:
		return fmt.Sprintf("every %d min", minute.step)
	case hour.star && minute.one() && minute.values[0] == 0 && second.values[0] == 0:
		return "every hour"
	case hour.star && minute.one():
		return "every hour at " + clock(0, minute.values[0])[2:]
	case hour.step > 0 && 24%hour.step == 0 && minute.one():
		return fmt.Sprintf("every %d h from %s", hour.step, clock(0, minute.values[0]))
	case hour.span && (minute.star || minute.step > 0 && 60%minute.step == 0):
		every := "every minute"
		if minute.step > 0 {
			every = fmt.Sprintf("every %d min", minute.step)
		}
		return fmt.Sprintf("%s from %s to %s", every, clock(hour.values[0], 0), clock(hour.last(), minute.last()))
	case hour.span && minute.one() && len(hour.values) > 2:
		return fmt.Sprintf("every hour from %s to %s", clock(hour.values[0], minute.values[0]), clock(hour.last(), minute.values[0]))
	case len(hour.values)*len(minute.values) <= 4:
		var times []string
		for _, h := range hour.values {
			for _, m := range minute.values {
				times = append(times, clock(h, m))
			}
		}
		return "at " + enumerate(times, "and")
	}
	return ""
}

// dayWords are those of the days; false where there are none. When both day fields leave something out, either will do.
func dayWords(day, month, weekday cronField) (words string, ok bool) {
	anyDay, anyWeekday := len(day.values) == 31, len(weekday.values) == 7
	var days, weekdays string
	if !anyDay {
		if len(day.values) > 4 {
			return "", false
		}
		var list []string
		for _, n := range day.values {
			list = append(list, ordinal(n))
		}
		days = " on the " + enumerate(list, "and")
	}
	if !anyWeekday {
		switch fmt.Sprint(weekday.values) {
		case "[1 2 3 4 5]":
			weekdays = " on weekdays"
		case "[0 6]":
			weekdays = " on weekends"
		default:
			var list []string
			for _, n := range weekday.values {
				list = append(list, time.Weekday(n).String()+"s")
			}
			weekdays = " on " + enumerate(list, "and")
		}
	}
	words = days + weekdays
	if days != "" && weekdays != "" {
		words = days + " or" + weekdays
	}
	if len(month.values) < 12 {
		if len(month.values) > 4 {
			return "", false
		}
		var list []string
		for _, n := range month.values {
			list = append(list, time.Month(n).String())
		}
		words += " in " + enumerate(list, "and")
	}
	return words, true
}

func ordinal(n int) string {
	end := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
}

// enumerate is a list in a sentence: a, b and c.
func enumerate(list []string, last string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " " + last + " " + list[len(list)-1]
}
