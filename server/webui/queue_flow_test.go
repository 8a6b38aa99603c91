package webui

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

func TestU7_TheBacklogIsEstimatedFromTenLooks(t *testing.T) {
	v := &view{app: &app{}}
	start := time.Date(2026, 11, 15, 14, 0, 0, 0, time.UTC)
	look := func(i, ready int, more bool) {
		v.app.trends.note(start.Add(time.Duration(i)*2*time.Second),
			[]pawl.QueueState{{Name: "mail", Ready: pawl.Counted{Jobs: ready, More: more}}})
	}
	says := func(ready int) string {
		return string(v.backlog(&queueRow{QueueState: pawl.QueueState{Name: "mail", Ready: pawl.Counted{Jobs: ready}}}))
	}
	for i := range 9 {
		look(i, 1000-20*i, false) // 600 a minute
		if text := says(500); text != "" {
			t.Fatalf("after %d looks: %s", i+1, text)
		}
	}
	look(9, 820, false)
	if text := says(620); !strings.Contains(text, "the backlog is gone in <b>about 1 min</b>") {
		t.Error(text)
	}
	v.app.trends = trends{}
	for i := range 12 {
		look(i, 100+4*i, i == 0)
	}
	if text := says(144); !strings.Contains(text, "It grows by <b>about 120 a minute</b>") {
		t.Error(text)
	}
	look(200, 100, false) // nobody has looked for minutes
	if text := says(100); text != "" {
		t.Error(text)
	}
	for i := range 20 {
		look(200+i, 100, true)
	}
	if text := says(100); text != "" {
		t.Errorf("of counts that came to their bound: %s", text)
	}
}

// What a system of two minutes does in a minute is not told as if it had done nothing in the three before.
func TestU7_ARateIsOfTheTimeThatWasCounted(t *testing.T) {
	from := time.Date(2026, 11, 15, 14, 0, 0, 0, time.UTC)
	m := &pawl.Metrics{Series: []pawl.MetricSeries{{Queue: "mail", Kind: "receipt"}}}
	for _, minute := range []int{8, 9} {
		p := pawl.MetricPoint{Start: from.Add(time.Duration(minute) * time.Minute), Span: time.Minute}
		p.AddMany(pawl.MetricDone, 100)
		m.Series[0].Points = append(m.Series[0].Points, p)
	}
	f := flowsOf(m, from, from.Add(15*time.Minute), time.Minute)["mail"]
	if f.PerMinute != 100 || f.RecentIn != 2*time.Minute || f.In != 7*time.Minute {
		t.Errorf("%v a minute of %v, all in %v", f.PerMinute, f.RecentIn, f.In)
	}
}

func TestU7_SettingsAreReadAsTheyAreShown(t *testing.T) {
	for i := range queueFields {
		f := &queueFields[i]
		for _, given := range map[string][]string{
			"total": {"none", "12", "1,000"}, "attempts": {"1", "10,000"}, "backoff": {"at once", "1s doubling to 6h",
				"10 s times 1.5 to 1 h 30 min"},
			"aging": {"none", "90s", "2 d"}, "keep_done": {"none", "7d", "2d12h", "1h30m"}, "keep_dead": {"36500d"}, "keep_cancelled": {"1 s"},
		}[f.name] {
			s, err := f.read(given)
			if err != nil {
				t.Errorf("%s %q: %v", f.name, given, err)
				continue
			}
			for _, again := range []string{f.exact(&s), f.show(&s)} {
				back, err := f.read(again)
				if err != nil || f.exact(&back) != f.exact(&s) {
					t.Errorf("%s %q, shown as %q, is read as %q, %v", f.name, given, again, f.exact(&back), err)
				}
			}
		}
		for _, given := range []string{"", "0", "-1", "-5s", "<b>", "1e99", "36501d", "999999999999999999999", "1s to", "6h doubling to 1s",
			"1s times 0 to 6h"} {
			if s, err := f.read(given); err == nil {
				t.Errorf("%s takes %q as %+v", f.name, given, s)
			}
		}
	}
}
