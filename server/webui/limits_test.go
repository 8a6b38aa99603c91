package webui_test

import (
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// limited is a control with limits of all sorts, of which one key is at its bound.
func limited(t *testing.T, edit ...func(*setup)) *control {
	t.Helper()
	c := serve(t, append([]func(*setup){func(s *setup) {
		s.config.Queues = pawl.Queues{"imports": {Workers: 10}, "mail": {Workers: 5}}
		s.config.Limits = []pawl.Limit{
			{Name: "github", Burst: 100, PerSecond: 1.4},
			{Name: "mail", Queue: "mail", PerSecond: 5, Burst: 10},
			{Name: "tenants", Queue: "imports", PerKey: true, Concurrent: 2, Weights: map[string]int{"acme": 3}},
			{Name: "render", Kind: "render.*", Concurrent: 8},
		}
	}}, edit...)...)
	started, release := held[charge](c)
	for range 5 {
		if _, err := c.e.Enqueue(t.Context(), charge{}, pawl.Queue("imports"), pawl.Key("acme")); err != nil {
			t.Fatal(err)
		}
	}
	c.run()
	t.Cleanup(release)
	<-started
	<-started
	return c
}

func (c *control) limit(name string) pawl.EffectiveLimit {
	c.t.Helper()
	all, err := c.e.Limits(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range all {
		if l.Name == name {
			return l
		}
	}
	c.t.Fatalf("no limit %s among %+v", name, all)
	return pawl.EffectiveLimit{}
}

func (c *control) bucket(name string) (b store.BucketInfo) {
	c.t.Helper()
	list, err := c.e.Store().(store.Limits).Buckets(c.t.Context(), []string{name}, "", 1)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(list) > 0 {
		b = list[0]
	}
	return b
}

func TestU7_LimitsShowTokensAndKeysAtTheirBound(t *testing.T) {
	c := limited(t)
	if _, err := c.e.Acquire(t.Context(), "github", 1); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/limits")
	b.has("main", "4 limits.")
	b.has("table.limits", "1.4 a second")
	b.has("table.limits", "of 100")
	b.has("table.bound", "acme")
	b.has("table.bound", "2 of 2")
	b.has("table.bound", "imports")
	b.has("table.bound td:nth-child(4)", "3")
	b.accessible()
	b.shots("limits")
	b.visit("/limits?open=github&edit=per_second")
	b.accessible()
	b.shots("limits-edit")
}

func TestU7_ALimitIsChangedDrainedAndSetBack(t *testing.T) {
	c := limited(t)
	b := open(t, c, "/limits")
	row := `tr[id^="lq"]`
	b.click(row + " a[data-open]") // github is the first by name
	b.settled()
	b.click(`#limit-set a[href*="edit=per_second"]`)
	b.settled()
	b.expect("422")
	b.fill(`.change input[name=value]`, "-7")
	b.click(".change button")
	b.has("#wrong", "Rate cannot be -7. Allowed: tokens a second, 0.000001 to 1,000,000")
	b.fill(`.change input[name=value]`, "0.5")
	b.fill(`.change input[name=note]`, "they asked us to")
	b.click(".change button")
	b.has("#toasts", "Rate of github is 30 a minute now.")
	if l := c.limit("github"); l.Holds.PerSecond != .5 || l.By != "tester" || l.Note != "they asked us to" {
		t.Errorf("holds %+v by %q with %q", l.Holds, l.By, l.Note)
	}
	b.settled()
	b.click(`#limit-set form button`) // set back
	b.has("#toasts", "Rate is 1.4 a second again, as code declares.")
	b.wait(`!document.querySelector("#limit-set .set-over")`)
	if l := c.limit("github"); l.Holds.PerSecond != 1.4 || len(l.Overridden) != 0 {
		t.Errorf("holds %+v", l.Holds)
	}
	b.clickText("#toasts .toast:last-child button", "Undo")
	b.has("#limit-set .set-over", "30 a minute")
	if l := c.limit("github"); l.Holds.PerSecond != .5 {
		t.Errorf("holds %+v", l.Holds)
	}

	b.clickText(row+" a", "Drain…")
	b.has("#dialog", "Drain github?")
	b.fill(`#dialog input[name=for]`, "3d")
	b.clickText("#dialog button", "Drain it")
	b.has("#dialog .wrong", "It cannot be drained for 3d. Allowed: 1s to 24h.")
	b.fill(`#dialog input[name=for]`, "1h")
	b.clickText("#dialog button", "Drain it")
	b.has("#toasts", "github is drained for 1 h.")
	b.has(row, "0 of 100")
	b.has("#limits-lead", "1 drained")
	if is := c.bucket("github"); is.Until <= is.Tick {
		t.Errorf("bucket %+v is not drained", is)
	}
	b.clickText(row+" button", "End the drain")
	b.has("#toasts", "Tokens of github come again.")
	b.wait(`!document.querySelector("#limits-lead").innerText.includes("drained")`)
	if is := c.bucket("github"); is.Until > is.Tick {
		t.Errorf("bucket %+v is drained", is)
	}
}

func TestU7_AViewerSeesNoButtonOfQueuesAndLimits(t *testing.T) {
	c := limited(t, as(auth.Viewer))
	if err := c.e.Kind("order.charge").Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/queues", "/queues?open=imports", "/queues?open=imports&edit=attempts", "/queues/imports", "/limits",
		"/limits?open=github&edit=burst"} {
		b := open(t, c, path)
		b.wait(`document.querySelector("main table, main .panel")`)
		if n := eval[int](b, `document.querySelectorAll('main form:not([role=search]), main [data-act], main a[role=button], main a.btn.quiet:not(.wide), .change').length`); n != 0 {
			t.Errorf("%s has %d things to do: %s", path, n, eval[string](b,
				`[...document.querySelectorAll('main form:not([role=search]), main [data-act], main a[role=button], main a.btn.quiet:not(.wide), .change')].map(e => e.outerHTML.slice(0, 200)).join("\n")`))
		}
	}
	o := limited(t, as(auth.Operator))
	b := open(t, o, "/queues")
	b.has("main", "Pause")
	if eval[bool](b, `!!document.querySelector('main a[href*="freeze"]')`) {
		t.Error("an operator is offered to freeze, which is for admins")
	}
}
