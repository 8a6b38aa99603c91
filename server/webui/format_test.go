package webui

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

func TestU7_NumbersAreSaidAsPeopleReadThem(t *testing.T) {
	for got, want := range map[string]string{
		count(0): "0", count(1312): "1,312", count(-1234567): "-1,234,567", count(uint64(100)): "100",
		counted(pawl.Counted{Jobs: 10_000, More: true}): "10,000+", counted(pawl.Counted{Jobs: 20_111,
			More: true}): "20,000+", short(pawl.Counted{Jobs: 10_000,
			More: true}): "10k+", short(pawl.Counted{Jobs: 312}): "312",
		percent(0, 100): "0 %", percent(1, 100_000): "< 0.1 %", percent(4.26, 100): "4.3 %", percent(61, 100): "61 %", percent(3,
			0): "0 %", percent(9.97, 100): "10 %",
		bytesText(54): "54 B", bytesText(1234): "1.2 kB", bytesText(1_000_000): "1 MB",
		plural(exactly(1), "job", "jobs"): "1 job", plural(exactly(2), "job", "jobs"): "2 jobs", plural(pawl.Counted{Jobs: 1, More: true}, "job",
			"jobs"): "1+ jobs",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, c := range []struct {
		n            uint64
		in           time.Duration
		number, unit string
	}{{0, time.Minute, "0", "/min"}, {6560, 5 * time.Minute, "1,312", "/min"}, {3, time.Minute, "3", "/min"}, {32, 5 * time.Minute, "6.4",
		"/min"}, {3, time.Hour, "3", "an hour"}, {1, 10 * time.Hour, "1", "an hour"}} {
		if number, unit := rate(c.n, c.in); number != c.number || unit != c.unit {
			t.Errorf("%d in %s: %s %s, want %s %s", c.n, c.in, number, unit, c.number, c.unit)
		}
	}
}

func TestU7_DurationsHaveTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 50 * time.Microsecond: "0.1 ms", 420 * time.Microsecond: "0.4 ms", 14 * time.Millisecond: "14 ms",
		241 * time.Millisecond:    "241 ms",
		999600 * time.Microsecond: "1.0 s", 2400 * time.Millisecond: "2.4 s", 9960 * time.Millisecond: "10 s", 31 * time.Second: "31 s",
		59700 * time.Millisecond: "1 min",
		222 * time.Second:        "3 min 42 s", 3 * time.Minute: "3 min", 144 * time.Minute: "2 h 24 min", 76 * time.Hour: "3 d 4 h", 200*24*time.Hour +
			time.Hour: "200 d", -time.Second: "0 ms",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestU7_TimesAreRelativeUntilTheyAreFar(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", -300 * time.Millisecond: "now", -12 * time.Second: "12 s ago", -26 * time.Minute: "26 min ago",
		-144 * time.Minute: "2 h 24 min ago", -30 * time.Hour: "1 d ago",
		-40 * 24 * time.Hour: "6 Oct 14:28", 22 * time.Second: "in 22 s", 1500 * time.Millisecond: "in 1.5 s", 151 * time.Minute: "in 2 h 31 min",
		13 * time.Hour: "tomorrow 03:28",
		30 * time.Hour: "tomorrow 20:28", 60 * 24 * time.Hour: "14 Jan 2027 14:28",
	} {
		if got := relative(now.Add(d), now); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	got := string(ago(now, now.Add(-26*time.Minute)))
	if want := `<time data-t="ago" datetime="2026-11-15T14:02:08.000Z" title="2026-11-15 14:02:08.000 UTC">26 min ago</time>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for d, want := range map[time.Duration]string{22 * time.Second: ">in 22 s<", 0: ">now<", -90 * time.Second: ">now<"} {
		if got := string(due(now, now.Add(d))); !strings.Contains(got, want) {
			t.Errorf("due %v: %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{58 * time.Second: ">58 s<", 2500 * time.Millisecond: ">2.5 s<", 900 * time.Millisecond: ">&lt; 1 s<",
		0: ">&lt; 1 s<", -3 * time.Second: ">&lt; 1 s<"} {
		if got := string(left(now, now.Add(d))); !strings.Contains(got, want) {
			t.Errorf("%v left: %s, want %s", d, got, want)
		}
	}
	if got := string(ago(now, time.Time{})); !strings.Contains(got, "–") {
		t.Errorf("no time: %s", got)
	}
}

func TestU7_WhatUsersWroteIsShownAsText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                       "plain",
		"<script>alert('x')</script>": "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;",
		"a\x00b\x1b[31m\n\t":          `a<span class="ctl">␀</span>b<span class="ctl">␛</span>[31m<span class="ctl">⏎</span><span class="ctl">⇥</span>`,
		"\u202Etxt.exe":               `<span class="ctl">⟨RLO⟩</span>txt.exe`,
		"a\u200Bb\uFEFF":              `a<span class="ctl">⟨ZWSP⟩</span>b<span class="ctl">⟨BOM⟩</span>`,
		"\xff\xfe":                    "\uFFFD\uFFFD",
		"\u0085\u007f":                `<span class="ctl">⟨U+0085⟩</span><span class="ctl">␡</span>`,
		strings.Repeat("ä", 25):       strings.Repeat("ä", 20) + `<span class="ctl">… 5 more</span>`,
	} {
		if got := string(show(in, 20+len(in)*boolInt(len(in) < 40))); got != "<bdi>"+want+"</bdi>" {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if got := string(showBlock("a\nb\tc", 20)); got != "<bdi>a\nb\tc</bdi>" {
		t.Errorf("a block keeps its lines: %q", got)
	}
	if got := plain("\u202Ea\nb\"<", 10); got != "⟨RLO⟩a␊b\"<" {
		t.Errorf("for attributes: %q", got)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestU7_PayloadsKeepTheirNumbersAndOrder(t *testing.T) {
	html, cut, found := pretty([]byte(`{"z":12345678901234567890.10,"a":"<b>","list":[1,2],"n":null,"t":true,"e":{}}`), 1000, "<B")
	text := string(html)
	for _, want := range []string{`<span class="k">&#34;z&#34;</span>: <span class="d">12345678901234567890.10</span>`,
		`<mark><span class="s">&#34;&lt;b&gt;&#34;</span></mark>`, `<span class="d">null</span>`, "{}"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if strings.Index(text, "z") > strings.Index(text, "list") || cut || found != 1 {
		t.Errorf("order, cut %v, found %d: %s", cut, found, text)
	}
	long := "[" + strings.TrimSuffix(strings.Repeat("7,", 50), ",") + "]"
	if html, _, _ = pretty([]byte(long), 100_000, ""); strings.Count(string(html), "<details") != 1 ||
		strings.Count(string(html), ">7<") != 50 {
		t.Errorf("a long array is folded: %s", html)
	}
	if html, cut, _ = pretty([]byte(long), 200, ""); !cut || strings.Count(string(html), "<details") != strings.Count(string(html),
		"</details>") || len(html) > 400 {
		t.Errorf("cut %v: %s", cut, html)
	}
	if html, _, _ = pretty([]byte("no json \x01"), 100, ""); !strings.Contains(string(html), "no json <span") {
		t.Errorf("%s", html)
	}
}

func TestU7_TheFilterIsReadFromWhatIsTyped(t *testing.T) {
	q := readJobs("/jobs", nil).typed(`kind:mail.* queue:mail key:"acme corp" state:dead "connection refused"`)
	if q.Kind != "mail.*" || q.Queue != "mail" || q.Key != "acme corp" || q.View != "dead" || q.Text != "connection refused" ||
		q.Created != "1h" {
		t.Errorf("%+v", q)
	}
	if got := (&view{}).words(q.without("kind").without("q")); got != "all dead jobs with queue mail, key acme corp, created last hour" {
		t.Error(got)
	}
}

// A row of the scheduled jobs says when it is due, and what became of it once it has left them: the page has no column for its state.
func TestU7_WhatWasDueSaysWhatItIsNow(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)
	a, _, _ := counter(t)
	v := &view{app: a, Now: now}
	for want, j := range map[string]pawl.JobRecord{
		">in 22 s<": {State: job.Waiting, Due: now.Add(22 * time.Second)},
		">now<":     {State: job.Waiting, Due: now.Add(-3 * time.Second)},
		"Done":      {State: job.Done, Due: now.Add(-3 * time.Second), Started: now.Add(-time.Second), Finished: now},
		"Running":   {State: job.Running, Due: now.Add(-3 * time.Second), Started: now.Add(-time.Second)},
	} {
		if got, _ := v.rowTimes(&j, stateOf(&j, now), columns{Time: "Due"}); !strings.Contains(string(got), want) {
			t.Errorf("%v due %v: %s, want %s", j.State, j.Due, got, want)
		}
	}
}
