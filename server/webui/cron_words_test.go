package webui

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

func TestU7_ExpressionsHaveWords(t *testing.T) {
	for text, want := range map[string]string{
		"0 6 * * 1-5": "at 06:00 on weekdays", "0 6 * * mon-fri": "at 06:00 on weekdays", "30 2 * * *": "at 02:30",
		"*/15 9-17 * * mon-fri": "every 15 min from 09:00 to 17:45 on weekdays", "*/10 * * * * *": "every 10 s", "@every 90s": "every 1 min 30 s",
		"0 0 13 * fri": "at 00:00 on the 13th or on Fridays", "@hourly": "every hour", "@monthly": "at 00:00 on the 1st",
		"30 * * * *": "every hour at :30", "0 */6 * * *": "every 6 h from 00:00", "0 8,12,18 * * 0,6": "at 08:00, 12:00 and 18:00 on weekends",
		"* * * * *": "every minute", "0 9-17 * * *": "every hour from 09:00 to 17:00", "@yearly": "at 00:00 on the 1st in January",
		"15 30 4 1,22 * *": "at 04:30:15 on the 1st and 22nd", "0 3 * * 7": "at 03:00 on Sundays",
		// Words that would be longer than the expression, or that would not be true: none.
		"1,2,3,5,8 * * * *": "", "0 0 1-20 * *": "", "*/7 * * * *": "", "what": "", "": "", "0 0 * * * * *": "", "@every soon": "", "99 * * * *": "",
	} {
		if got := cronWords(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestU7_PastDueTimesAreThoseThatWereFired(t *testing.T) {
	last := time.Date(2026, 11, 16, 6, 0, 0, 0, time.UTC) // a Monday
	for _, c := range []struct {
		cron     string
		n, least int
		oldest   time.Time
	}{
		{"0 6 * * 1-5", 6, 6, last.AddDate(0, 0, -7)},
		{"* * * * *", 20, 20, last.Add(-19 * time.Minute)},
		{"@every 90s", 3, 3, last.Add(-3 * time.Minute)},
		{"0 6 16 11 *", 4, 4, last.AddDate(-3, 0, 0)},
		{"0 7 * * *", 1, 1, last}, // another expression held when it was fired
	} {
		list := cronPast(&pawl.ScheduleSettings{Cron: c.cron}, last, c.n)
		if len(list) != c.least || !list[0].Equal(c.oldest) || !list[len(list)-1].Equal(last) {
			t.Errorf("%s: %v", c.cron, list)
		}
	}
}

func TestU7_AClockThatChangesIsTold(t *testing.T) {
	vienna := &pawl.ScheduleSettings{Cron: "30 2 * * *", Zone: "Europe/Vienna"}
	for _, c := range []struct {
		now  time.Time
		cron string
		want string
	}{
		{time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), "30 2 * * *",
			"On 29 Mar at 02:00 the clock of Europe/Vienna goes forward 1 h. A named time that it skips is due right after."},
		{time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), "30 2 * * *",
			"On 25 Oct at 03:00 the clock of Europe/Vienna goes back 1 h. A named time that it shows twice is due the first time."},
		{time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), "30 * * * *",
			"On 25 Oct at 03:00 the clock of Europe/Vienna goes back 1 h. It is due whenever the clock shows its time."},
		{time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC), "30 2 * * *", ""},
		{time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), "@every 90s", ""},
	} {
		vienna.Cron = c.cron
		if got := clockShift(vienna, c.now); got != c.want {
			t.Errorf("%v %s: %q", c.now, c.cron, got)
		}
	}
	if got := clockShift(&pawl.ScheduleSettings{Cron: "30 2 * * *"}, time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)); got != "" {
		t.Errorf("UTC never changes: %q", got)
	}
}
