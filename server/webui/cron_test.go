package webui_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// shout is a job that schedules bring.
type shout struct {
	Word string `json:"word"`
}

func (shout) Kind() string { return "report.nightly" }

// scheduled has schedules of every sort: one that is due each second, one that cannot be read, some that rest.
func scheduled(s *setup) {
	s.config.Schedules = []pawl.Schedule{
		{Name: "tick", Cron: "* * * * * *", Job: shout{"tick"}},
		{Name: "mornings", Cron: "0 6 * * 1-5", Zone: "Europe/Vienna", Job: shout{"good"}},
		{Name: "monthly.bill", Cron: "@monthly", Job: shout{"pay"}, Options: []pawl.EnqueueOption{pawl.Queue("mail")}},
		{Name: "broken", Cron: "61 * * * *", Job: shout{"never"}},
	}
	s.config.Owner, s.config.Version = "shop", "1.8.2"
}

// serveScheduled serves them by an engine that runs, once they are declared.
func serveScheduled(t *testing.T, edit ...func(*setup)) *control {
	t.Helper()
	c := serve(t, append([]func(*setup){scheduled}, edit...)...)
	pawl.Handle(c.e, func(ctx context.Context, j *pawl.Job[shout]) error {
		due, err := time.Parse(time.RFC3339, pawl.InfoFrom(ctx).Headers()["pawl-due"])
		switch info := pawl.InfoFrom(ctx); {
		case err != nil: // it was triggered
		case due.Second()%4 == 1:
			return pawl.Dead(errors.New("the ledger is closed"))
		case due.Second()%4 == 2 && info.Attempt == 1:
			return errors.New("not yet")
		}
		return nil
	})
	c.run()
	until(t, func() bool { return len(c.schedules()) >= 4 })
	return c
}

func (c *control) schedules() map[string]pawl.ScheduleStatus {
	c.t.Helper()
	list, err := c.e.Schedules(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]pawl.ScheduleStatus{}
	for _, s := range list {
		all[s.Name] = s
	}
	return all
}

// until waits for what another goroutine brings about.
func until(t *testing.T, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("in vain")
		}
	}
}

// audited wants an action in the audit log, by who is signed in.
func (c *control) audited(action, target string) {
	c.t.Helper()
	list, err := c.e.Audit(c.t.Context(), pawl.AuditFilter{Action: action, Target: target}, pawl.AuditPage{Limit: 1})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].By != "tester" {
		c.t.Errorf("%s of %s: %+v %v", action, target, list.Entries, err)
	}
}

// rowWith is a selector for the row of a table in which a link has a text.
func (b *tab) rowWith(text string) string {
	b.t.Helper()
	find := `[...document.querySelectorAll("main table tbody tr")].find((r) => r.querySelector("a")?.innerText.includes(` + quoted(text) + `))?.id`
	b.wait(find)
	return "#" + eval[string](b, find)
}

func TestU7_CronShowsWhenAndLetsOperate(t *testing.T) {
	c := serveScheduled(t)
	b := open(t, c, "/cron")
	b.has(".lead", "4 schedules")
	b.has(".lead", "1 disabled")
	b.has(b.rowWith("broken"), "Disabled")
	b.has(b.rowWith("broken"), "must be 0..59")
	b.has(b.rowWith("mornings"), "at 06:00 on weekdays")
	b.has(b.rowWith("mornings"), "Europe/Vienna")
	// Fires arrive by themselves, and each is a link to its job.
	for _, state := range []string{"done", "dead", "retried"} {
		b.wait(`document.querySelector("` + b.rowWith("tick") + ` a.tk-` + state + `")`)
	}
	if to := eval[string](b, `document.querySelector(".cron a.tk-dead").getAttribute("href")`); !strings.HasPrefix(to, "/jobs/") {
		t.Errorf("a tick links to %s", to)
	}
	b.accessible()
	b.shots("cron")
	b.fitsAPhone()
	// The next three, local and in UTC, for who points at the time or comes to it by Tab.
	eval[bool](b, `document.querySelector("`+b.rowWith("mornings")+` .nexts").focus(); true`)
	b.has(b.rowWith("mornings")+" .tip", "CET")
	b.has(b.rowWith("mornings")+" .tip", "UTC")
	b.shot("cron-tip")

	mornings := b.rowWith("mornings")

	b.click(mornings + " form[action$='schedule/trigger'] button")
	b.has("#toasts", "Triggered mornings.")
	id, err := pawl.ParseID(strings.TrimPrefix(eval[string](b, `document.querySelector("#toasts a.link").getAttribute("href")`), "/jobs/"))
	if err != nil {
		t.Fatal(err)
	}
	if j, err := c.e.Get(t.Context(), id); err != nil || j.Kind != "report.nightly" || j.Headers()["pawl-due"] != "" {
		t.Errorf("%+v %v", j, err)
	}
	c.audited("trigger schedule", "mornings")

	b.visit("/cron")
	mornings = b.rowWith("mornings")
	b.click(mornings + " form[action$='schedule/pause'] button")
	b.has("#toasts", "mornings is paused.")
	b.has(mornings, "Paused")
	if !c.schedules()["mornings"].Paused {
		t.Error("it is not paused")
	}
	c.audited("pause schedule", "mornings")
	b.click("#toasts form button") // Undo
	b.wait(`!document.querySelector("` + mornings + `").innerText.includes("Paused")`)
	if c.schedules()["mornings"].Paused {
		t.Error("Undo left it paused")
	}

	// An expression that cannot be read is told beside what was typed.
	b.expect("422")
	b.click(mornings + " a[href*='ask/schedule/edit']")
	b.wait(`document.querySelector("#dialog[open] input[name=cron]")`)
	b.write("#dialog input[name=cron]", "0 99 * * *")
	b.click("#dialog footer button")
	b.has("#dialog .wrong", "must be 0..23")
	b.write("#dialog input[name=cron]", "30 7 * * *")
	b.write("#dialog input[name=note]", "the shop opens later")
	b.click("#dialog footer button")
	b.has("#toasts", "at 07:30")
	b.has(mornings, "changed")
	if s := c.schedules()["mornings"]; s.Holds.Cron != "30 7 * * *" || s.Note != "the shop opens later" || s.Declared.Cron != "0 6 * * 1-5" {
		t.Errorf("%+v", s)
	}
}

// bound waits until htmx has taken over what a stream has brought.
func (b *tab) bound(selector string) {
	b.t.Helper()
	b.wait("document.querySelector(" + quoted(selector) + ")['htmx-internal-data']")
}

// leave does what loads another page, and waits for that.
func (b *tab) leave(statement string) {
	b.t.Helper()
	eval[bool](b, "window.left = true; setTimeout(() => { "+statement+" }, 0); true")
	b.wait("!window.left && document.readyState === 'complete'")
}

// write types into an input.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.wait("document.querySelector(" + quoted(selector) + ")")
	eval[bool](b, "(() => { const i = document.querySelector("+quoted(selector)+"); i.value = "+quoted(text)+"; i.dispatchEvent(new Event('input', {bubbles: true})); return true })()")
}

func TestU7_ASchedulesPageSaysWhatItDoes(t *testing.T) {
	c := serveScheduled(t)
	b := open(t, c, "/cron/mornings")
	b.has(".why", "At 06:00 on weekdays, Europe/Vienna.")
	b.has("main", "Next runs")
	b.has("main", "Declared by shop 1.8.2.")
	b.has("main", "{\"word\":\"good\"}")
	b.accessible()
	b.shots("schedule")
	b.fitsAPhone()
	b.visit("/cron/tick")
	b.has(".fires", "the ledger is closed")
	b.accessible()
	b.shots("schedule-fires")
	b.fitsAPhone()
	b.visit("/cron/mornings")
	b.click(".why form[action$='schedule/pause'] button")
	b.has(".why", "It is paused")
	b.bound(".why form")
	b.press("p")
	b.has(".why", "At 06:00")
	b.wait(`document.querySelector("#h-audit").closest("section").innerText.includes("resume schedule")`)
	b.click("main a.link[href*='/audit']")
	b.wait(`location.pathname === "/audit" && location.search.includes("mornings")`)

	// What operators create can be deleted; what code declares cannot.
	b.visit("/cron")
	b.click("header.top a[href*='ask/schedule/create']")
	for name, value := range map[string]string{"name": "by.hand", "cron": "@every 1h", "kind": "report.nightly", "args": `{"word":"<b>hi</b>"}`} {
		b.write("#dialog input[name="+name+"]", value)
	}
	b.click("#dialog footer button")
	b.wait(`location.pathname === "/cron/by.hand"`)
	b.settled()
	b.has("main", "Created by an operator.")
	b.has("main", "<b>hi</b>")
	if s := c.schedules()["by.hand"]; s.Holds.Cron != "@every 1h" || s.Owner != "" {
		t.Errorf("%+v", s)
	}
	b.click("main a[href*='ask/schedule/delete']")
	b.has("#dialog", "Delete by.hand for good?")
	b.click("#dialog footer button.bad")
	b.wait(`location.pathname === "/cron"`)
	b.settled()
	b.has("#toasts", "Deleted by.hand.")
	if _, there := c.schedules()["by.hand"]; there {
		t.Error("it is still there")
	}
}

func TestU7_SchedulesArePausedTogether(t *testing.T) {
	c := serveScheduled(t)
	b := open(t, c, "/cron?q=m")
	b.press("j")
	b.press("x")
	b.click(b.rowWith("monthly.bill") + " input.cb")
	b.has("#bulk", "2 selected")
	b.click("#bulk [data-verb=pause]")
	b.has("#dialog", "Pause 2 schedules?")
	b.write("#dialog input[name=note]", "stock-taking")
	b.click("#dialog footer button")
	b.has("#toasts", "2 schedules are paused.")
	for _, name := range []string{"mornings", "monthly.bill"} {
		if s := c.schedules()[name]; !s.Paused || s.Note != "stock-taking" {
			t.Errorf("%s: %+v", name, s)
		}
		b.has(b.rowWith(name), "Paused")
	}
	b.click("#toasts form button") // Undo
	b.has("#toasts", "2 schedules go on")
	for _, name := range []string{"mornings", "monthly.bill"} {
		if c.schedules()[name].Paused {
			t.Errorf("%s is still paused", name)
		}
	}
	// Back, forward and reload keep the view.
	b.click(b.rowWith("mornings") + " a.kind")
	b.wait(`location.pathname === "/cron/mornings"`)
	b.leave("history.back()")
	b.wait(`location.pathname === "/cron" && document.querySelector("[name=q]").value === "m"`)
	b.settled()
	b.leave("location.reload()")
	b.wait(`document.querySelector("[name=q]")?.value === "m" && document.querySelectorAll("tbody tr").length === 2`)
	b.settled()
	// On a phone there are ticks when they are wanted.
	b.size(390, 844)
	b.click("[data-selecting]")
	b.click(b.rowWith("mornings") + " input.cb")
	b.has("#bulk", "1 selected")
	b.shot("cron-selecting")
}

func TestU7_ViewersOfCronSeeNoButtons(t *testing.T) {
	c := serveScheduled(t, as(auth.Viewer))
	b := open(t, c, "/cron")
	b.has(b.rowWith("mornings"), "at 06:00")
	noButtons(b)
	b.visit("/cron/mornings")
	noButtons(b)
}

func TestU7_AnAnswerOutlivesTheFormThatAsked(t *testing.T) {
	c := serveScheduled(t)
	b := open(t, c, "/cron")
	mornings := b.rowWith("mornings")
	// A stream may replace a row while its answer is under way.
	eval[bool](b, `addEventListener("htmx:beforeSend", () => { const r = document.querySelector("`+mornings+`"); r.replaceWith(r.cloneNode(true)) }, {once: true}); true`)
	b.click(mornings + " form[action$='schedule/pause'] button")
	b.has("#toasts", "mornings is paused.")
}

func TestU7_ArgumentsOfSchedulesAreHidden(t *testing.T) {
	c := serveScheduled(t, func(s *setup) {
		s.who = auth.Func(func(*http.Request) (auth.Identity, error) {
			return auth.Identity{Name: "tester", Role: auth.Viewer, Hidden: true}, nil
		})
	})
	if err := c.e.Schedule("mornings").Set(operating(t.Context(), ""), pawl.ScheduleSettings{Args: []byte(`{"word":"secret"}`)}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/cron/mornings", "/audit", "/cron", "/settings"} {
		b := open(t, c, path)
		if contains(eval[string](b, "document.documentElement.outerHTML"), "secret") {
			t.Errorf("%s shows arguments", path)
		}
	}
}

// noButtons wants that nothing on the page does anything.
func noButtons(b *tab) {
	b.t.Helper()
	if got := eval[[]string](b, `[...document.querySelectorAll("main form[method=post], main [hx-post], main a[href*='/ask/'], main input.cb, #bulk")].map((e) => e.outerHTML.slice(0, 200))`); len(got) > 0 {
		b.t.Errorf("a viewer sees %s", strings.Join(got, "\n"))
	}
}

// fitsAPhone wants that nothing is wider than a phone.
func (b *tab) fitsAPhone() {
	b.t.Helper()
	b.size(390, 844)
	b.wait(`innerWidth === 390`)
	if wide := eval[[]string](b, `document.documentElement.scrollWidth <= 390 ? [] : [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 391 && !e.closest(".tw, .code, .views, .tip")).slice(0, 5).map((e) => e.outerHTML.slice(0, 200))`); len(wide) > 0 {
		b.t.Errorf("wider than a phone: %s", strings.Join(wide, "\n"))
	}
	if eval[int](b, "document.documentElement.scrollWidth") > 390 {
		b.t.Error("the page scrolls sideways on a phone")
	}
	b.size(1440, 900)
}

func contains(text, part string) bool { return strings.Contains(text, part) }
