package webui

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
)

// count is a number in full: 1,312.
func count[N int | int64 | uint64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// counted is a number that may have come to its bound: 10,000+. A sum of such is no more exact than its parts: thousands are enough.
func counted(c pawl.Counted) string {
	if c.More {
		if c.Jobs > 10_000 {
			c.Jobs -= c.Jobs % 1000
		}
		return count(c.Jobs) + "+"
	}
	return count(c.Jobs)
}

// short is counted for where there is little room: 10k+.
func short(c pawl.Counted) string {
	if c.Jobs < 10_000 && !c.More || c.Jobs < 1_000 {
		return counted(c)
	}
	text := strconv.Itoa(c.Jobs/1000) + "k"
	if c.More {
		text += "+"
	}
	return text
}

// plus adds up counts: one that came to its bound makes the sum one that has.
func plus(a, b pawl.Counted) pawl.Counted {
	return pawl.Counted{Jobs: a.Jobs + b.Jobs, More: a.More || b.More}
}

// plural is the number with its word: 1 job, 3 jobs, 10,000+ jobs.
func plural(c pawl.Counted, one, many string) string {
	if c.Jobs == 1 && !c.More {
		return "1 " + one
	}
	return counted(c) + " " + many
}

// exactly is a count that is known.
func exactly[N int | int64 | uint64](n N) pawl.Counted { return pawl.Counted{Jobs: int(n)} }

// rate is how often something happens, and its unit: 1,312 /min, 3 an hour.
func rate(n uint64, in time.Duration) (number, unit string) {
	if in <= 0 || n == 0 {
		return "0", "/min"
	}
	perMinute := float64(n) / in.Minutes()
	switch {
	case perMinute >= 10:
		return count(int(math.Round(perMinute))), "/min"
	case perMinute >= 1:
		return strings.TrimSuffix(strconv.FormatFloat(perMinute, 'f', 1, 64), ".0"), "/min"
	}
	return count(max(int(math.Round(perMinute*60)), 1)), "an hour"
}

// percent is a share: one decimal under 10, none above, "< 0.1 %".
func percent(part, whole float64) string {
	if whole <= 0 || part <= 0 {
		return "0 %"
	}
	p := part / whole * 100
	switch {
	case p < 0.1:
		return "< 0.1 %"
	case p < 9.95:
		return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// duration has two units at most, three digits: 14 ms, 2.4 s, 31 s, 3 min 42 s, 2 h 24 min, 3 d 4 h. times.js has the same.
func duration(d time.Duration) string {
	number, unit := measure(d)
	return number + " " + unit
}

// measure is duration with its last unit apart, for where that is smaller.
func measure(d time.Duration) (number, unit string) {
	if d < 0 {
		d = 0
	}
	switch {
	case d < 995*time.Microsecond && d > 0:
		return strconv.FormatFloat(math.Max(0.1, float64(d)/1e6), 'f', 1, 64), "ms"
	case d.Round(time.Millisecond) < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10), "ms"
	case d < 9950*time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64), "s"
	case d.Round(time.Second) < time.Minute:
		return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10), "s"
	case d.Round(time.Second) < time.Hour:
		d = d.Round(time.Second)
		return two(d, time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < 24*time.Hour:
		return two(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
	return two(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

func two(d, large time.Duration, largeName string, small time.Duration, smallName string) (number, unit string) {
	n, rest := d/large, d%large/small
	if rest == 0 || n >= 100 {
		return count(int64(n)), largeName
	}
	return fmt.Sprintf("%d %s %d", n, largeName, rest), smallName
}

// age is how long ago something was, or will be: coarser than a duration, since it moves.
func age(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Floor(d.Seconds()*10)/10, 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 24*time.Hour:
		h, m := int(d.Hours()), int(d.Minutes())%60
		if m == 0 || h >= 10 {
			return fmt.Sprintf("%d h", h)
		}
		return fmt.Sprintf("%d h %d min", h, m)
	}
	return strconv.Itoa(int(d.Hours())/24) + " d"
}

// relative is a time as lists show it: 26 min ago, in 22 s, tomorrow 06:00, 15 Dec 14:02.
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d > 24*time.Hour && dayOf(t).Sub(dayOf(now)) == 24*time.Hour, d > 12*time.Hour && d <= 24*time.Hour && dayOf(t) != dayOf(now):
		return "tomorrow " + t.UTC().Format("15:04")
	case d > 24*time.Hour, d < -30*24*time.Hour:
		return dated(t, now)
	case d >= 100*time.Millisecond:
		return "in " + age(d)
	case d > -time.Second:
		return "now"
	case d > -time.Minute:
		return strconv.Itoa(int(-d.Seconds())) + " s ago"
	}
	return age(d) + " ago"
}

func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// dated is a time with its day, and with its year where that is another.
func dated(t, now time.Time) string {
	if t.UTC().Year() != now.UTC().Year() {
		return t.UTC().Format("2 Jan 2006 15:04")
	}
	return t.UTC().Format("2 Jan 15:04")
}

// clockOf is a time of this day to the second, else with its day.
func clockOf(t, now time.Time) string {
	if dayOf(t) == dayOf(now) {
		return t.UTC().Format("15:04:05")
	}
	return dated(t, now)
}

// stamps render times. Their text is what holds without JavaScript, in UTC; times.js goes on from there, in the zone that was chosen.
func stamp(how, text string, t time.Time) template.HTML {
	if t.IsZero() {
		return `<span class="zero">–</span>`
	}
	u := t.UTC()
	return template.HTML(fmt.Sprintf(`<time data-t="%s" datetime="%s" title="%s UTC">%s</time>`,
		how, u.Format("2006-01-02T15:04:05.000Z"), u.Format("2006-01-02 15:04:05.000"), template.HTMLEscapeString(text)))
}

// ago is a time relative to now: 26 min ago.
func ago(now, t time.Time) template.HTML { return stamp("ago", relative(t, now), t) }

// due is when something is to happen: in 22 s. Once its time has come it is due now, however long ago that was.
func due(now, t time.Time) template.HTML {
	if !t.IsZero() && !t.After(now) {
		return stamp("due", "now", t)
	}
	return stamp("due", relative(t, now), t)
}

// left is how long something goes on: 58 s. Its last second is "< 1 s", also once that is over: who looks is told next what came of it.
func left(now, t time.Time) template.HTML {
	if t.Sub(now) < time.Second {
		return stamp("left", "< 1 s", t)
	}
	return stamp("left", age(t.Sub(now)), t)
}

// since is how long something has been going on: 41 min.
func since(now, t time.Time) template.HTML { return stamp("for", age(now.Sub(t)), t) }

// at is a time to the second: 14:02:11.
func at(now, t time.Time) template.HTML { return stamp("at", clockOf(t, now), t) }

// atMilli is a time to the millisecond: 14:02:11.204.
func atMilli(_, t time.Time) template.HTML { return stamp("ms", t.UTC().Format("15:04:05.000"), t) }

// bytesText is a size: 1.2 kB.
func bytesText(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + " B"
	case n < 1_000_000:
		return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64), ".0") + " kB"
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64), ".0") + " MB"
}

// tail is the last four of an id, behind an ellipsis.
func tail(id pawl.ID) string { text := id.String(); return "…" + text[len(text)-4:] }
