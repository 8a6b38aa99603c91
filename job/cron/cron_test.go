package cron_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests' own: a machine may have none

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/cron"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := cron.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func parse(t *testing.T, text, in string) *cron.Expression {
	t.Helper()
	e, err := cron.Parse(text, zone(t, in))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is due in a time, by zone: the days of the changes, by hand.
func TestJ16_ChangesOfTheClock(t *testing.T) {
	const ny, berlin, howe, kolkata = "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"
	for _, c := range []struct{ zone, cron, from, until, due string }{
		// New York: 8 March 2026 2:00 → 3:00, 1 November 2:00 → 1:00.
		{ny, "30 2 * * *", "2026-03-07T05:00Z", "2026-03-10T05:00Z", "07T02:30-05:00 08T03:00-04:00 09T02:30-04:00"},
		{ny, "30 2 * * *", "2026-10-31T05:00Z", "2026-11-03T05:00Z", "31T02:30-04:00 01T02:30-05:00 02T02:30-05:00"},
		{ny, "30 1 * * *", "2026-10-31T05:00Z", "2026-11-03T05:00Z", "31T01:30-04:00 01T01:30-04:00 02T01:30-05:00"},
		{ny, "0 0 * * *", "2026-11-01T00:00Z", "2026-11-03T05:30Z", "01T00:00-04:00 02T00:00-05:00 03T00:00-05:00"},
		{ny, "0 2,3 * * *", "2026-03-08T05:00Z", "2026-03-09T04:00Z", "08T03:00-04:00"},
		{ny, "*/20 2 * * *", "2026-03-08T05:00Z", "2026-03-09T04:00Z", "08T03:00-04:00"},
		{ny, "30 * * * *", "2026-03-08T05:00Z", "2026-03-08T09:00Z", "08T00:30-05:00 08T01:30-05:00 08T03:30-04:00 08T04:30-04:00"},
		{ny, "30 * * * *", "2026-11-01T04:00Z", "2026-11-01T08:00Z", "01T00:30-04:00 01T01:30-04:00 01T01:30-05:00 01T02:30-05:00"},
		{ny, "0 */2 * * *", "2026-03-08T05:00Z", "2026-03-08T10:30Z", "08T00:00-05:00 08T04:00-04:00 08T06:00-04:00"},
		// Berlin: 29 March 2026 2:00 → 3:00, 25 October 3:00 → 2:00.
		{berlin, "0 3 * * *", "2026-03-28T00:00Z", "2026-03-31T00:00Z", "28T03:00+01:00 29T03:00+02:00 30T03:00+02:00"},
		{berlin, "15 2 * * *", "2026-03-28T00:00Z", "2026-03-31T00:00Z", "28T02:15+01:00 29T03:00+02:00 30T02:15+02:00"},
		{berlin, "15 2 * * *", "2026-10-24T00:00Z", "2026-10-27T00:00Z", "24T02:15+02:00 25T02:15+02:00 26T02:15+01:00"},
		// Lord Howe moves by half an hour: 4 October 2026 2:00 → 2:30, 5 April 2:00 → 1:30.
		{howe, "15 2 * * *", "2026-10-03T00:00Z", "2026-10-06T00:00Z", "04T02:30+11:00 05T02:15+11:00 06T02:15+11:00"},
		{howe, "45 1 * * *", "2026-04-03T13:00Z", "2026-04-06T12:00Z", "04T01:45+11:00 05T01:45+11:00 06T01:45+10:30"},
		{howe, "45 * * * *", "2026-04-04T14:00Z", "2026-04-04T17:00Z", "05T01:45+11:00 05T01:45+10:30 05T02:45+10:30"},
		{howe, "0 * * * *", "2026-04-04T13:30Z", "2026-04-04T17:00Z", "05T01:00+11:00 05T02:00+10:30 05T03:00+10:30"},
		{kolkata, "30 2 * * *", "2026-03-07T00:00Z", "2026-03-09T00:00Z", "08T02:30+05:30 09T02:30+05:30"},
		{"UTC", "30 2 * * *", "2026-03-07T00:00Z", "2026-03-09T00:00Z", "07T02:30Z 08T02:30Z"},
		// Samoa skipped 30 December 2011.
		{"Pacific/Apia", "0 3 * * *", "2011-12-29T12:00Z", "2012-01-01T00:00Z", "29T03:00-10:00 31T00:00+14:00 31T03:00+14:00 01T03:00+14:00"},
	} {
		from, until := instant(t, c.from), instant(t, c.until)
		var due []string
		for at := from.Add(-1); ; {
			if at = parse(t, c.cron, c.zone).Next(at); at.IsZero() || !at.Before(until) {
				break
			}
			due = append(due, at.Format("02T15:04Z07:00"))
		}
		if got := strings.Join(due, " "); got != c.due {
			t.Errorf("%s %q:\n  is  %s\n not %s", c.zone, c.cron, got, c.due)
		}
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// model is an expression as lists of values, which is told every minute of a time in
// order, and says at which of them something is due.
type model struct {
	minute, hour, day, month, weekday []int // nil: any
	step                              bool  // hour is written as a star with a step
	shown                             map[string]bool
	last                              time.Time // what the clock showed before
}

func has(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return list == nil
}

func (m *model) names(shows time.Time) bool {
	day := has(m.day, shows.Day()) && has(m.weekday, int(shows.Weekday()))
	if m.day != nil && m.weekday != nil {
		day = has(m.day, shows.Day()) || has(m.weekday, int(shows.Weekday()))
	}
	return day && has(m.minute, shows.Minute()) && has(m.hour, shows.Hour()) && has(m.month, int(shows.Month()))
}

// minutePassed is told what the clock shows, as if that was UTC.
func (m *model) minutePassed(shows time.Time) (due bool) {
	if m.hour == nil || m.step {
		return m.names(shows)
	}
	if !m.last.IsZero() {
		for skipped := m.last.Add(time.Minute); skipped.Before(shows); skipped = skipped.Add(time.Minute) {
			due = due || m.names(skipped) && !m.shown[skipped.String()]
			m.shown[skipped.String()] = true
		}
	}
	m.last = shows
	due = due || m.names(shows) && !m.shown[shows.String()]
	m.shown[shows.String()] = true
	return due
}

// Next agrees with a model that walks every minute, around the changes of each zone
// and elsewhere.
func TestJ16_NextAgreesWithAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 16))
	changes := map[string][]string{
		"America/New_York":    {"2026-03-08T07:00Z", "2026-11-01T06:00Z"},
		"Europe/Berlin":       {"2026-03-29T01:00Z", "2026-10-25T01:00Z"},
		"Australia/Lord_Howe": {"2026-04-04T15:00Z", "2026-10-03T15:30Z"},
		"Asia/Kolkata":        {"2026-03-29T01:00Z"},
		"UTC":                 {"2026-03-29T01:00Z"},
		"Pacific/Apia":        {"2011-12-30T10:00Z"},
		"Africa/Casablanca":   {"2026-02-15T02:00Z", "2026-03-22T02:00Z"}, // back for Ramadan
	}
	for range 8 {
		for name, around := range changes {
			m, text := randomExpression(random)
			e, place := parse(t, text, name), zone(t, name)
			middle := instant(t, around[random.IntN(len(around))])
			from, until := middle.Add(-50*time.Hour), middle.Add(50*time.Hour)
			var want, got []string
			for at := from.Add(-60 * time.Hour); at.Before(until); at = at.Add(time.Minute) {
				local := at.In(place)
				shows := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
				if m.minutePassed(shows) && !at.Before(from) {
					want = append(want, at.UTC().Format(time.RFC3339))
				}
			}
			for at := from.Add(-1); ; {
				if at = e.Next(at); at.IsZero() || !at.Before(until) {
					break
				}
				got = append(got, at.UTC().Format(time.RFC3339))
			}
			if a, b := strings.Join(got, " "), strings.Join(want, " "); a != b {
				t.Fatalf("%s %q around %v:\n  is  %s\n not %s", name, text, middle, a, b)
			}
			if len(got) > 0 { // backwards, too
				for i := len(got) - 1; i >= 0; i-- {
					before := until
					if i+1 < len(got) {
						before, _ = time.Parse(time.RFC3339, got[i+1])
					}
					if last := e.Last(before, from); last.UTC().Format(time.RFC3339) != got[i] {
						t.Fatalf("%s %q: the last before %v is %v, not %v", name, text, before, last, got[i])
					}
				}
			}
			if last := e.Last(from.Add(1), from.Add(1)); !last.IsZero() {
				t.Fatalf("%s %q: %v is in no time at all", name, text, last)
			}
		}
	}
}

func randomExpression(random *rand.Rand) (*model, string) {
	m := &model{shown: map[string]bool{}}
	text := make([]string, 5)
	list := func(n int, min, max int) (values []int, text string) {
		for i := range n {
			v := min + random.IntN(max-min+1)
			values = append(values, v)
			if text += fmt.Sprint(v); i < n-1 {
				text += ","
			}
		}
		return values, text
	}
	m.minute, text[0] = list(1+random.IntN(3), 0, 59)
	switch random.IntN(4) {
	case 0:
		text[1] = "*"
	case 1:
		step := 2 + random.IntN(4)
		text[1], m.step = fmt.Sprintf("*/%d", step), true
		for h := 0; h < 24; h += step {
			m.hour = append(m.hour, h)
		}
	case 2:
		m.hour, text[1] = list(1+random.IntN(2), 0, 23)
	default:
		m.hour, text[1] = list(2, 0, 4) // where clocks change
	}
	text[2], text[3], text[4] = "*", "*", "*"
	if random.IntN(4) == 0 {
		m.day, text[2] = list(3, 1, 31)
	}
	if random.IntN(4) == 0 {
		m.weekday, text[4] = list(2, 0, 6)
	}
	return m, strings.Join(text, " ")
}

func TestJ16_Expressions(t *testing.T) {
	from := instant(t, "2026-11-16T04:30Z") // a Monday
	for text, want := range map[string]string{
		"*/15 * * * *":       "2026-11-16T04:45:00Z",
		"10 5/3 * * *":       "2026-11-16T05:10:00Z",
		"0 9-17/4 * * *":     "2026-11-16T09:00:00Z",
		"*/7 * * * * *":      "2026-11-16T04:30:07Z",
		"0 0 ? * SUN":        "2026-11-22T00:00:00Z",
		"0 0 * * 7":          "2026-11-22T00:00:00Z",
		"0 0 * * fri-7":      "2026-11-20T00:00:00Z",
		"0 0 13 * 5":         "2026-11-20T00:00:00Z", // the 13th or a Friday
		"0 0 29 feb *":       "2028-02-29T00:00:00Z",
		"@yearly":            "2027-01-01T00:00:00Z",
		"@monthly":           "2026-12-01T00:00:00Z",
		"@weekly":            "2026-11-22T00:00:00Z",
		" @Daily ":           "2026-11-17T00:00:00Z",
		"@hourly":            "2026-11-16T05:00:00Z",
		"59 59 23 31 dec ? ": "2026-12-31T23:59:59Z",
	} {
		if got := parse(t, text, "").Next(from).Format(time.RFC3339); got != want {
			t.Errorf("%q is due at %s, not %s", text, got, want)
		}
	}
}

func TestJ16_EveryCountsFromItsAnchor(t *testing.T) {
	anchor := instant(t, "2026-11-16T04:30Z").Add(123 * time.Millisecond)
	e := parse(t, "@every 90s", "").Anchored(anchor)
	for _, c := range []struct{ after, due time.Duration }{
		{-time.Hour, 90 * time.Second}, {0, 90 * time.Second}, {89 * time.Second, 90 * time.Second},
		{90 * time.Second, 180 * time.Second}, {72*time.Hour + 1, 72*time.Hour + 90*time.Second},
	} {
		if got := e.Next(anchor.Add(c.after)).Sub(anchor); got != c.due {
			t.Errorf("%v after the anchor the next is %v, not %v", c.after, got, c.due)
		}
	}
	if last := e.Last(anchor.Add(100*time.Second), anchor); !last.Equal(anchor.Add(90 * time.Second)) {
		t.Errorf("the last is %v", last)
	}
}

// Not: an expression that is never due, or says something that nobody meant.
func TestJ16_BadExpressionsAreRefused(t *testing.T) {
	for text, part := range map[string]string{
		"":                        "0 fields",
		"* * * *":                 "4 fields",
		"60 * * * *":              `minute "60": must be 0..59`,
		"* 24 * * *":              `hour "24"`,
		"* * 0 * *":               `day of month "0"`,
		"* * * 13 *":              `month "13"`,
		"* * * * 8":               `day of week "8"`,
		"5-1 * * * *":             "ends before it begins",
		"*/0 * * * *":             "step",
		"*/x * * * *":             "step",
		"? * * * *":               `minute "?"`,
		"1,,2 * * * *":            `minute ""`,
		"-1 * * * *":              `minute ""`,
		"+1 * * * *":              `minute "+1"`,
		"0 0 30 feb *":            "never be due",
		"0 0 31 apr,jun *":        "never be due",
		"@every 1.5s":             "whole seconds",
		"@every":                  "@every",
		"@every 0s":               "whole seconds",
		"@fortnightly":            "@yearly",
		"TZ=UTC * * * * *":        "zone",
		"61 25 * * *":             `hour "25"`, // both are named
		strings.Repeat("1,", 200): "at most 256",
	} {
		_, err := cron.Parse(text, time.UTC)
		if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, name := range []string{"Local", "Europe/Atlantis", "../etc/passwd"} {
		if _, err := cron.Zone(name); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "zone") {
			t.Errorf("zone %q: %v", name, err)
		}
	}
}

func TestJ16_NothingWithinTheHorizonIsZero(t *testing.T) {
	e := parse(t, "0 0 29 2 *", "UTC")
	if at := e.Next(instant(t, "2096-03-01T00:00Z")); !at.IsZero() { // 2100 is no leap year
		t.Errorf("due at %v", at)
	}
}
