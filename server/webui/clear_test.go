package webui_test

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store"
)

var markup = regexp.MustCompile(`<[^>]*>`)

// read is a page as it reads: without markup, each space once.
func (r *reader) read(path string) string {
	r.t.Helper()
	return strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(r.get(path), ""))), " ")
}

// part is what a page has between two texts.
func part(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// A finding about deaths says of what time it is and how many are dead now; its button says how many its list has, and it has them. Once
// somebody has seen to all of them, nobody is needed.
func TestU7_AFindingAgreesWithItsList(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	text := r.read("/?range=1h")
	died := regexp.MustCompile(`(\d+) jobs of kind invoice\.render died \(8 dead now\): `).FindString(text)
	if died == "" || !strings.Contains(text, "See 8") {
		t.Fatalf("%.3000s", text)
	}
	link := html.UnescapeString(regexp.MustCompile(`href="(/jobs/dead\?error=[^"]+)">See 8`).FindStringSubmatch(r.get("/?range=1h"))[1])
	if list := r.read(link); !strings.Contains(list, "All 8 that match.") {
		t.Errorf("%.3000s", list)
	}
	op, err := s.e.Bulk(t.Context(), pawl.BulkDelete(pawl.Filter{States: []pawl.State{job.Dead}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.e.WaitOperation(t.Context(), op.ID); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return !strings.Contains(r.read("/?range=1h"), "jobs of kind invoice.render died") })
}

// However many errors many died of, the overview counts the dead of a few.
func TestU7_FewErrorsAreCountedForTheOverview(t *testing.T) {
	a, e := askedEngine(t)
	flush := store.MetricFlush{Source: job.NewID(), Number: 1}
	for n := range 7 {
		f := &metric.Failures{}
		for range 6 {
			f.Add(metric.Sample{FailedJob: metric.FailedJob{Job: job.NewID(), Time: time.Now()}, Dead: true, Message: "no"})
		}
		flush.Rows = append(flush.Rows, store.MetricRow{Class: metric.OfFailures, Start: time.Now().Truncate(time.Minute), Name: fmt.Sprint(n), Kind: "x",
			Data: f.Append(nil)})
	}
	if err := a.AddMetrics(t.Context(), flush); err != nil {
		t.Fatal(err)
	}
	if calls, _ := a.forPage(t, e, "/"); calls["count"] != 3 {
		t.Errorf("%v", calls)
	}
}

// A finding about a queue that cools down names the kind that was throttled there.
func TestU7_AFindingNamesTheKindThatIsThrottled(t *testing.T) {
	s := openShop(t, func(s *setup) { s.config.MetricsEvery = time.Second })
	r := s.reader()
	until(t, func() bool { return strings.Contains(r.read("/?range=1h"), "throttled once by geo.lookup.") })
}

// The numbers of the overview say what keeps jobs from starting, and no note of theirs is cut.
func TestU7_NotesOfNumbersAreWhole(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/?range=1h")
	b.has("#kpi", "9 of them cannot start")
	b.wait(`document.querySelector('#kpi .note[title="Nothing starts in their queues: 4 in paused, 4 in unserved, 1 in cooling ones."]')`)
	b.wait(`/ where (paused|unserved|cooling)/.test(document.querySelector("#kpi").innerText)`)
	b.wait(`document.querySelector('#kpi .note[title$=" in 5 min"]')`)
	b.wait(`/^Of served queues. In an? (paused|unserved|cooling) queue, where nothing starts/.test([...document.querySelectorAll("#kpi .note")][3].title)`)
	b.wait(`[...document.querySelectorAll("#kpi .note")].every((e) => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight + 1)`)
}

// Versions are compared by the newest thousand jobs, which may all have ended a minute ago: whoever reads "of 1,040 runs" is told so.
func TestU7_VersionsSayWhoseRunsAreCompared(t *testing.T) {
	c := serve(t)
	old, young := c.remote(worker("py-1", "1.8.1")), c.remote(worker("py-2", "1.8.2"))
	c.end(old, c.bring(old, 100), 10)
	c.end(young, c.bring(young, 100), 30)
	if text := c.reader().read("/workers"); !strings.Contains(text, "Compared by the runs of 200 jobs that ended in the last hour.") {
		t.Errorf("%.3000s", text)
	}
	for range 5 {
		c.end(young, c.bring(young, 200), 0)
	}
	fresh := (&control{t, c.e, served(t, c.e)}).reader() // one that has not compared yet
	if text := fresh.read("/workers"); !strings.Contains(text, "Compared by the runs of the newest 1,000 jobs that have ended.") {
		t.Errorf("%.3000s", text)
	}
}

// guide is a tour as long as the demo's.
type guide struct{}

func (guide) Trials(context.Context) (list []webui.Trial) {
	for n := range 8 {
		one := webui.Trial{Text: "Cancel **report.nightly** while it runs.", Done: n == 0,
			Hint: "Jobs, Running. It logs as it goes; its last line says after which page it stopped."}
		if n == 2 {
			one.Offer, one.Why = "Ship 1.8.3", "lets orders without a VAT id pass."
		}
		list = append(list, one)
	}
	return list
}

func (guide) Do(context.Context, string) (string, error) { return "", nil }

func (guide) Visited(string) {}

// What a newcomer may try takes a line each, and the first that nobody has done tells how. What needs someone is as tall as what it says.
func TestU7_WhatToTryIsALineEach(t *testing.T) {
	c := serve(t, func(s *setup) { s.options.Tour = guide{} })
	b := open(t, c, "/")
	b.has("#try", "1 of 8")
	b.wait(`document.querySelectorAll("#try details[open]").length === 1 && document.querySelectorAll("#try details")[1].open`)
	b.wait(`[...document.querySelectorAll("#try summary")].every((e) => e.offsetHeight < 34 && e.scrollWidth <= e.clientWidth)`)
	b.wait(`document.querySelector("#try").offsetHeight < 340`)
	b.wait(`document.querySelector("#need").offsetHeight < 90`) // nothing needs anybody
	b.click("#try li:nth-child(3) summary")
	b.has("#try li:nth-child(3)", "lets orders without a VAT id pass.")
	b.accessible()
	b.shots("try")
	b.fitsAPhone()
}

// A worker's slots are no runs: nothing of a paused queue looks busy.
func TestU7_SlotsOfAQueueAreNotShownAsBusy(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	text := r.get("/queues?open=exports&range=1h")
	crew := part(text, `id="queue-crew"`, "</table>")
	if !strings.Contains(crew, "Its slots") || strings.Contains(crew, `class="share`) || strings.Contains(crew, `class="bar`) {
		t.Errorf("%s", crew)
	}
	text = r.read("/queues?open=orders&range=1h")
	if !regexp.MustCompile(`Done a minute is of the last \d min; failed and p95 are of the last `).MatchString(text) || !strings.Contains(text, "Counted in the last ") {
		t.Errorf("%.3000s", text)
	}
}

// An error is named by what it says, in dialogs, in the filter and in the audit log, which tells the jobs of an operation as its dialog did.
func TestU7_AnErrorIsNamedByWhatItSays(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	says := `render invoice 48329: template "invoice/v3" wants field "vat_id" but the order has none`
	mark := job.Fingerprint(says)
	query := url.Values{"view": {"dead"}, "all": {"1"}, "error": {mark}, "kind": {"invoice.render"}}
	which := `all dead jobs with kind invoice.render, error “render invoice 48`
	if text := r.read("/ask/jobs/retry?" + query.Encode()); !strings.Contains(text, which) || strings.Contains(text, mark) {
		t.Errorf("%.3000s", text)
	}
	query.Set("csrf", tokenOf(t, r.get("/ask/jobs/delete?"+query.Encode())))
	if answer, text := r.do("POST", "/do/jobs/delete", query); answer.StatusCode != 303 {
		t.Fatalf("%s %s", answer.Status, text)
	}
	if text := r.read("/ask/jobs/delete?" + query.Encode()); !strings.Contains(text, "There is nothing to do.No job matches.") {
		t.Errorf("%.3000s", text)
	}
	text := r.get("/audit")
	row := html.UnescapeString(markup.ReplaceAllString(part(text, "<tbody", "</tbody>"), ""))
	if !strings.Contains(row, which) || !strings.Contains(row, "Deleted 8 jobs.") || strings.Contains(row, mark) {
		t.Errorf("%s", row)
	}
	if text := r.read("/jobs/dead?error=" + mark + "&kind=invoice.render"); !strings.Contains(text, "No job matches.") || strings.Contains(text, mark) {
		t.Errorf("%.3000s", text)
	}
}

// Events that were given up wait for somebody: a group that has some is not shown as one where all is well.
func TestU7_AGroupWithParkedEventsIsNotAllRight(t *testing.T) {
	c := serve(t)
	m := c.consume("billing")
	c.run()
	t.Cleanup(func() { close(m.free) })
	c.publish("orders.placed", -3, 0)
	r := c.reader()
	until(t, func() bool {
		g, err := c.e.Group("billing").Info(t.Context())
		return err == nil && g.Parked == 3 && g.Behind+g.Open+g.Waiting == 0
	})
	until(t, func() bool {
		return strings.Contains(r.read("/groups/billing"), "It has caught up, but 3 events are parked.")
	})
	if text := r.get("/groups/billing"); !strings.Contains(text, `class="panel why st-dead"`) {
		t.Errorf("%.3000s", text)
	}
	if row := part(r.get("/streams"), `class="cards consumers"`, "</table>"); !strings.Contains(row, `<span class="st st-dead">`) ||
		!strings.Contains(row, "Parked</span>") || strings.Contains(row, "st-serving") {
		t.Errorf("%s", row)
	}
}

// A row of Cron has when it is due once as an age and once as a time: which zone that is of is chosen above.
func TestU7_ARowOfCronHasItsTimeOnce(t *testing.T) {
	c := serveScheduled(t, func(s *setup) {
		day := time.Now().AddDate(0, 0, 100)
		s.config.Schedules = append(s.config.Schedules, pawl.Schedule{Name: "yearly", Cron: fmt.Sprintf("0 6 %d %d *", day.Day(), day.Month()), Job: shout{"x"}})
	})
	row := part(c.reader().get("/cron"), `<td class="c-next" role="cell"><span class="nexts"`, `<span class="tip"`)
	if n := strings.Count(row, "<time"); n != 2 || strings.Contains(row, "UTC</span>") {
		t.Errorf("%d times: %s", n, row)
	}
	far := part(part(c.reader().get("/cron"), `cron/yearly"`, "</tr>"), `class="nexts"`, `<span class="tip"`)
	if text := markup.ReplaceAllString(far, " "); !regexp.MustCompile(`\d+ [A-Z][a-z]+ (\d{4} )?\d\d:\d\d +in +\d+ d`).MatchString(text) {
		t.Errorf("%s", text)
	}
}

// On a phone a row has room for one time: of a dead job that is when it died.
func TestU7_OnAPhoneADeadJobSaysWhenItDied(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs/dead")
	b.size(390, 844)
	row := fmt.Sprintf("#j-%s ", s.dead)
	b.wait(`getComputedStyle(document.querySelector("` + row + `.x-du")).display === "none"`)
	b.wait(`/now|ago/.test(document.querySelector("` + row + `.x-ag").innerText) && document.querySelector("` + row + `.x-ag").offsetTop === document.querySelector("` + row + `.x-kd").offsetTop`)
	b.fitsAPhone()
}
