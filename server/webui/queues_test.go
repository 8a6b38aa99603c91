package webui_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

func TestU7_QueuesSayWhichNeedsSomeone(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/queues")
	b.has("#queues-lead", "1 paused, 1 unserved, 1 cooling; together they hold 9 of 9 ready jobs.")
	b.has(`#side a[aria-current]`, "3")
	names := `[...document.querySelectorAll("table.queues > tbody > tr a.kind")].map((e) => e.innerText).join(" ")`
	if got := eval[string](b, names); got != "exports legacy-sync geo invoices mail orders reports" {
		t.Errorf("in the order %s", got)
	}
	b.has(rowOf("orders"), "0 %")
	b.has(rowOf("mail"), "0 of 10")
	b.accessible()
	b.shots("queues")

	b.fill("input[data-filter]", "MAI")
	b.press("\r")
	b.wait(`location.search.includes("q=MAI")`)
	b.settled()
	b.wait(names + ` === "mail"`)
	b.visit("/queues?q=paused")
	b.wait(names + ` === "exports"`)
	b.visit("/queues?q=nothing-of-the-kind")
	b.has("main", "No queue matches")
	b.visit("/queues?order=name")
	b.wait(names + ` === "exports geo invoices legacy-sync mail orders reports"`)

	for _, set := range []pawl.QueueSettings{{Attempts: 5}, {Total: 4}} {
		if err := s.e.Queue("mail").Set(pawl.As(t.Context(), "ops", "SMTP relay limit"), set); err != nil {
			t.Fatal(err)
		}
	}
	b.has(rowOf("mail"), "2 changed") // by the stream
	b.click(rowOf("mail") + " a.kind")
	b.settled()
	b.has("#queue-why", "Nothing is ready. 2 jobs are due later.")
	b.has("#queue-set", "ops · ")
	b.has("#queue-set", "“SMTP relay limit”")
	b.has("#queue-kinds", "mail.receipt")
	b.has("#queue-crew", "10 of 10")
	b.accessible()
	b.shots("queues-open")
	b.do(chromedp.Reload())
	b.settled()
	b.has("#queue-why", "Nothing is ready.")
	b.do(chromedp.NavigateBack())
	b.settled()
	b.wait(`!document.querySelector("#queue-why")`)
	b.do(chromedp.NavigateForward())
	b.settled()
	b.has("#queue-why", "Nothing is ready.")

	b.visit("/queues?open=mail&edit=attempts")
	b.accessible()
	b.shots("queues-edit")
	b.visit("/queues/orders")
	b.wait(`document.documentElement.dataset.charts === "ready"`)
	b.has("h1", "orders")
	b.has("#queue-why", "Nothing waits for a slot.")
	b.accessible()
	b.shots("queue")
	b.expect("404")
	b.do(chromedp.Navigate(s.url + "/queues/of-nobody"))
	b.has("main", "There is no such thing.")
}

// rowOf is the row of a queue.
func rowOf(name string) string {
	return fmt.Sprintf(`table.queues > tbody > tr:has(a.kind[title=%q])`, name)
}

func (c *control) queue(name string) pawl.QueueState {
	c.t.Helper()
	list, err := c.e.Queues(c.t.Context(), name)
	if err != nil || len(list) != 1 {
		c.t.Fatal(list, err)
	}
	return list[0]
}

func (c *control) settings(name string) pawl.EffectiveQueue {
	c.t.Helper()
	all, err := c.e.Settings(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return all.Queue(name)
}

// held handles a kind by runs that tell that they have begun, and last until they are let go. Who lets them go at the end of a test does
// so before the engine stops: a cleanup that is registered after run.
func held[A pawl.Args](c *control) (started <-chan struct{}, release func()) {
	begun, end := make(chan struct{}, 10), make(chan struct{})
	pawl.Handle(c.e, func(ctx context.Context, _ *pawl.Job[A]) error {
		begun <- struct{}{}
		select {
		case <-end:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	return begun, func() { close(end) }
}

// crowd starts a control whose queue mail is full while jobs wait.
func crowd(t *testing.T, edit ...func(*setup)) *control {
	t.Helper()
	c := serve(t, append([]func(*setup){func(s *setup) {
		s.config.Queues = pawl.Queues{"mail": {Workers: 2, Attempts: 7},
			"geo": {Workers: 1}}
	}}, edit...)...)
	started, release := held[receipt](c)
	pawl.Handle(c.e, func(ctx context.Context, j *pawl.Job[lookup]) error { return pawl.Throttled(10 * time.Minute) })
	for range 5 {
		if _, err := c.e.Enqueue(t.Context(), receipt{}, pawl.Queue("mail")); err != nil {
			t.Fatal(err)
		}
	}
	c.run()
	t.Cleanup(release)
	<-started
	<-started
	return c
}

func TestU7_AQueueIsPausedAndResumed(t *testing.T) {
	c := crowd(t)
	b := open(t, c, "/queues?open=mail")
	b.has("#queue-why", "Ready jobs wait for a free slot: all 2 slots are busy.")
	b.has("#queues-lead", "mail uses all its slots.")
	b.click(rowOf("mail") + " button")
	b.has("#toasts", "mail is paused. 2 running jobs finish. Nothing new starts.")
	b.has(rowOf("mail"), "Paused")
	b.wait(`document.activeElement.innerText === "Resume"`)
	b.has("#queue-why", "It is paused by tester since")
	if q := c.queue("mail"); q.Pause == nil || q.Pause.By != "tester" {
		t.Fatalf("paused: %+v", q.Pause)
	}
	b.clickText("#toasts button", "Undo")
	b.has(rowOf("mail"), "Serving")
	if q := c.queue("mail"); q.Pause != nil {
		t.Fatalf("paused: %+v", q.Pause)
	}
	// A row that is replaced keeps the focus that is in it.
	eval[bool](b, `document.querySelector(`+quoted(rowOf("geo")+" button")+`).focus(), true`)
	if err := c.e.Queue("geo").Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.has(rowOf("geo"), "Paused")
	b.wait(`document.activeElement === document.querySelector(` + quoted(rowOf("geo")+" button") + `)`)
	if err := c.e.Queue("geo").Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.has(rowOf("geo"), "Idle")
	// By the keyboard: the row at the cursor, and none without one.
	b.visit("/queues")
	b.wait(`document.querySelector("[hx-post]")["htmx-internal-data"]`)
	b.press("p")
	b.press("j")
	b.wait(`document.querySelector(` + quoted(rowOf("mail")) + `).classList.contains("cursor")`)
	if q := c.queue("mail"); q.Pause != nil {
		t.Error("p without a cursor paused the first queue")
	}
	b.press("p")
	b.has(rowOf("mail"), "Paused")
	if q := c.queue("mail"); q.Pause == nil {
		t.Error("p did not pause the queue at the cursor")
	}
	b.has("#toasts", "mail is paused.")
	b.press("j") // what was done has cleared the cursor
	b.wait(`document.querySelector(` + quoted(rowOf("mail")) + `).classList.contains("cursor")`)
	b.press("\r")
	b.settled()
	b.has("#queue-why", "It is paused by tester since")
	b.clickText("#queue-kinds button", "Pause kind")
	b.has("#toasts", "Kind mail.receipt is paused in every queue.")
	b.has("#queues-lead", "mail.receipt is paused in every queue by tester")
	b.clickText("#queues-lead button", "Resume kind")
	b.wait(`!document.querySelector("#queues-lead").innerText.includes("mail.receipt")`)
}

func TestU7_ARowWaitsForItsAnswer(t *testing.T) {
	c := crowd(t)
	b := open(t, c, "/queues")
	form := "document.querySelector(" + quoted(rowOf("geo")+" form") + ")"
	eval[bool](b, "window.held = "+form+", held.classList.add('htmx-request'), true") // as htmx marks it while it waits
	for _, name := range []string{"geo", "mail"} {
		if err := c.e.Queue(name).Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.has(rowOf("mail"), "Paused") // so geo's has come, too
	if !eval[bool](b, form+" === held") {
		t.Error("the row was replaced: an answer would find nothing to go to")
	}
	eval[bool](b, "held.classList.remove('htmx-request'), held.dispatchEvent(new CustomEvent('htmx:afterRequest', {bubbles: true}))")
	b.has(rowOf("geo"), "Paused")
}

func TestU7_ANoteForAPauseIsInTheAuditLog(t *testing.T) {
	c := crowd(t)
	b := open(t, c, "/queues")
	b.clickText(rowOf("geo")+" button", "Pause")
	b.has("#toasts", "geo is paused. Nothing new starts.")
	b.clickText("#toasts a", "Say why, for the audit log")
	b.has("main", "Why is geo paused?")
	b.expect("404") // the page of a question has no stream
	b.fill("main input[name=note]", "INC-311")
	b.clickText("main button", "Add the note")
	b.has("#toasts", "The note is in the audit log.")
	log, err := c.e.Audit(t.Context(), pawl.AuditFilter{Target: "geo"}, pawl.AuditPage{})
	if err != nil || len(log.Entries) != 2 || log.Entries[0].Note != "INC-311" || log.Entries[0].By != "tester" {
		t.Errorf("%+v, %v", log.Entries, err)
	}
}

func TestU7_ACoolDownIsReset(t *testing.T) {
	c := crowd(t)
	r, err := c.e.Enqueue(t.Context(), lookup{}, pawl.Queue("geo"))
	if err != nil {
		t.Fatal(err)
	}
	(&shop{control: c}).until(func(l []pawl.QueueState) bool {
		return slices.ContainsFunc(l, func(q pawl.QueueState) bool { return q.Name == "geo" && q.CoolDown != nil && q.Running.Jobs == 0 })
	})
	if _, err := c.e.Cancel(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/queues?open=geo")
	b.has("#queue-why", "It cools down for another 9 min: its handlers were throttled once. Then it starts again by itself.")
	b.clickText("#queue-why a", "Reset…")
	b.has("#dialog", "Let geo start at once?")
	b.has("#dialog", "It was throttled once; the next throttle counts from 1.")
	b.clickText("#dialog button", "Start at once")
	b.has("#toasts", "geo starts again.")
	b.has(rowOf("geo"), "Idle")
	if q := c.queue("geo"); q.CoolDown != nil {
		t.Errorf("cools down: %+v", q.CoolDown)
	}
}

func TestU7_ASettingIsChangedAndSetBack(t *testing.T) {
	c := crowd(t)
	b := open(t, c, "/queues?open=mail")
	b.click(`#queue-set a[href*="edit=attempts"]`)
	b.settled()
	b.expect("422")
	b.fill(".change input[name=value]", "70000")
	b.clickText(".change button", "Save")
	b.has("#wrong", "Attempts cannot be 70000. Allowed: 1 to 10,000; for jobs that are enqueued from now on.")
	if s := c.settings("mail"); len(s.Overridden) != 0 {
		t.Errorf("set all the same: %+v", s)
	}
	// What comes meanwhile changes the row, and leaves the form.
	b.fill(".change input[name=note]", "half typed")
	if err := c.e.Queue("mail").Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.has(rowOf("mail"), "Paused")
	b.has("#queue-why", "It is paused")
	if got := eval[string](b, `document.querySelector(".change input[name=note]").value + document.querySelector(".change input[name=value]").value`); got != "half typed70000" {
		t.Errorf("the form has %q", got)
	}
	b.fill(".change input[name=value]", "9")
	b.clickText(".change button", "Save")
	b.has("#toasts", "Attempts of mail is 9 now.")
	b.wait(`!document.querySelector(".change")`)
	if s := c.settings("mail"); s.Holds.Attempts != 9 || s.By != "tester" || s.Note != "half typed" {
		t.Errorf("holds %+v by %q, %q", s.Holds, s.By, s.Note)
	}
	b.settled()
	b.has("#queue-set", "tester · ")
	b.clickText("#queue-set button", "Set back")
	b.has("#toasts", "Attempts is 7 again, as code declares.")
	b.wait(`!document.querySelector("#queue-set").innerText.includes("tester")`)
	if s := c.settings("mail"); s.Holds.Attempts != 7 || len(s.Overridden) != 0 {
		t.Errorf("holds %+v", s)
	}
	b.clickText("#toasts .toast:last-child button", "Undo")
	b.has("#queue-set .set-over", "9")
	if s := c.settings("mail"); s.Holds.Attempts != 9 {
		t.Errorf("holds %+v", s)
	}
	for field, given := range map[string]string{"backoff": "10s times 3 to 1h", "total": "none", "keep_done": "2d12h", "aging": "90s"} {
		b.visit("/queues?open=mail&edit=" + field)
		b.fill(".change input[name=value]", given)
		b.clickText(".change button", "Save")
		b.wait(`!document.querySelector(".change") && document.querySelector("#toasts").innerText.includes("now.")`)
	}
	h := c.settings("mail").Holds
	if h.Total != -1 || h.KeepDone != 60*time.Hour || h.Aging != 90*time.Second || h.Backoff == nil || *h.Backoff != (job.BackoffSettings{Base: 10 * time.Second, Max: time.Hour, Factor: 3}) {
		t.Errorf("holds %+v, %+v", h, h.Backoff)
	}
}

func TestU7_ASettingOfAPatternSaysSo(t *testing.T) {
	c := crowd(t)
	if err := c.e.Queue("*").Set(pawl.As(t.Context(), "ops", "all of them"), pawl.QueueSettings{Attempts: 3}); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/queues?open=mail")
	b.has("#queue-set", "· for *")
	b.has("#queue-set", "all of them")
	if eval[bool](b, `document.querySelector("#queue-set").innerText.includes("Set back")`) {
		t.Error("what was set for a pattern can be set back for one queue")
	}
}

func TestU7_ManyQueuesArePaged(t *testing.T) {
	c := serve(t, func(s *setup) { s.config.Queues = nil })
	for i := range 230 {
		if err := c.e.Queue(fmt.Sprintf("tenant-%03d", i)).Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, c, "/queues")
	b.wait(`document.querySelectorAll("table.queues > tbody > tr").length === 100`)
	b.has(".pager", "1 to 100 of 230 queues")
	b.press("]")
	b.wait(`location.search.includes("after=100")`)
	b.settled()
	b.has(".pager", "101 to 200 of 230 queues")
	b.click(rowOf("tenant-150") + " a.kind")
	b.wait(`location.search.includes("open=tenant-150")`)
	b.settled()
	b.has(".pager", "101 to 200 of 230 queues")
	b.has("#queue-why", "It is paused")
	b.clickText(rowOf("tenant-150")+" button", "Resume")
	b.has("#toasts", "tenant-150 starts jobs again.")
	b.has(rowOf("tenant-199"), "Paused")
	if q := c.queue("tenant-150"); q.Pause != nil {
		t.Errorf("%+v", q.Pause)
	}
	b.visit("/queues?q=tenant-07")
	b.wait(`document.querySelectorAll("table.queues > tbody > tr").length === 10`)
}

func TestU7_EverythingIsFrozen(t *testing.T) {
	c := crowd(t)
	b := open(t, c, "/queues")
	b.clickText("header a", "Freeze everything…")
	b.has("#dialog", "No job starts on any queue until you unfreeze. 2 running jobs finish.")
	b.fill("#dialog input[name=typed]", "frozen")
	b.fill("#dialog input[name=note]", "INC-9")
	b.expect("422")
	eval[bool](b, `document.querySelector("#dialog form").noValidate = true`)
	b.clickText("#dialog button", "Freeze everything")
	b.has("#dialog .wrong", "Type freeze to confirm.")
	b.fill("#dialog input[name=typed]", "freeze")
	b.fill("#dialog input[name=note]", "INC-9")
	b.clickText("#dialog button", "Freeze everything")
	b.has("#banner", "Everything is frozen by tester since")
	b.has("#banner", "INC-9")
	b.has(rowOf("mail"), "Frozen")
	if q := c.queue("mail"); q.Pause == nil || q.Pause.Scope != job.PauseAll {
		t.Errorf("%+v", q.Pause)
	}
	b.clickText("#banner button", "Unfreeze")
	b.has(rowOf("mail"), "Serving")
	if q := c.queue("mail"); q.Pause != nil {
		t.Errorf("%+v", q.Pause)
	}
}

func TestU7_HostileNamesOfQueuesAreText(t *testing.T) {
	long := strings.Repeat("w", 128)
	names := []string{`<img/src"x"onerror`, `<b` + "\u202e" + `gpj.exe`, long, `"'--<script`, "a/../b", `q";alert(1)//`}
	c := serve(t, func(s *setup) {
		s.config.Queues = pawl.Queues{}
		for _, name := range names {
			s.config.Queues[name] = pawl.QueueConfig{Workers: 1}
		}
		s.config.Limits = []pawl.Limit{{Name: names[1], PerSecond: 5}, {Name: long, Queue: names[0], PerKey: true, Concurrent: 1}}
	})
	note := strings.Repeat("<i>x</i>\u202e", 70)
	running, release := held[receipt](c)
	c.run()
	t.Cleanup(release)
	for range 2 {
		if _, err := c.e.Enqueue(t.Context(), receipt{}, pawl.Queue(names[0]), pawl.Key("<u>"+long+long[:120])); err != nil {
			t.Fatal(err)
		}
	}
	<-running
	ctx := pawl.As(t.Context(), "<u>ops</u>", note)
	for _, name := range names {
		if err := c.e.Queue(name).Pause(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.e.Queue(name).Set(ctx, pawl.QueueSettings{Attempts: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.e.Kind("<s/" + long[:100]).Pause(ctx); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/queues")
	for i, name := range names {
		if i == 4 {
			continue // a path is cleaned by the browser: such a queue is opened by the query
		}
		b.visit("/queues/" + url.PathEscape(name))
		b.has("#queue-why", "It is paused by <u>ops</u>")
		b.narrow()
	}
	b.visit("/queues?" + url.Values{"open": {"a/../b"}, "q": {`"><i>`}}.Encode())
	b.has("main", `"><i>`)
	b.visit("/queues?" + url.Values{"open": {"a/../b"}}.Encode())
	b.has("#queue-why", "It is paused by")
	b.narrow()
	b.accessible()
	b.shots("queues-hostile")
	b.visit("/limits?" + url.Values{"open": {names[1]}}.Encode())
	b.has("table.bound", "<u>www")
	b.narrow()
	b.accessible()
	b.shots("limits-hostile")
}

// narrow wants that nothing is markup that users wrote, and that the page is no wider than its window, on a desk and on a phone.
func (b *tab) narrow() {
	b.t.Helper()
	if n := eval[int](b, `document.querySelectorAll("main img, main u, main i:not(.sw, .live i), main s, main script").length`); n > 0 {
		b.t.Errorf("%s: %d elements that users wrote", eval[string](b, "location.href"), n)
	}
	for _, width := range []int64{1440, 390, 320} {
		b.size(width, 844)
		if strings.Contains(eval[string](b, "location.pathname"), "/queues/") {
			b.wait("document.documentElement.scrollWidth <= innerWidth") // charts follow when they are told
		}
		if over := eval[string](b, `document.documentElement.scrollWidth <= innerWidth ? "" : document.documentElement.scrollWidth + " of " + innerWidth + ": " + [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join(" | ")`); over != "" {
			b.t.Errorf("%s at %d: %s", eval[string](b, "location.href"), width, over)
		}
	}
	b.size(1440, 900)
}

// fill puts text into an input, as if it were typed over what was there.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.wait("document.querySelector(" + quoted(selector) + ")")
	eval[bool](b, "(i => { i.focus(); i.value = "+quoted(text)+"; i.dispatchEvent(new Event('input', {bubbles: true})); return true })(document.querySelector("+quoted(selector)+"))")
}

// clickText clicks the first of what a selector finds that says so.
func (b *tab) clickText(selector, text string) {
	b.t.Helper()
	find := "[...document.querySelectorAll(" + quoted(selector) + ")].find((e) => e.innerText.trim() === " + quoted(text) + " && heard(e))"
	find = `((heard) => ` + find + `)((e) => { const h = e.closest("[hx-get], [hx-post]"); return !h || h["htmx-internal-data"] })` // htmx hears it
	b.wait(find)
	eval[bool](b, find+".click(), true")
}
