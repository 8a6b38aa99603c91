package webui_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

func TestU7_AuditFiltersAndPages(t *testing.T) {
	c := serve(t, as(auth.Viewer))
	ctx := operating(t.Context(), "the relay is down")
	for i := range 60 {
		name := fmt.Sprintf("q%d", i)
		if err := c.e.Queue(name).Pause(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.e.Queue("mail").Pause(pawl.As(t.Context(), "bob", "")); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/audit")
	b.has("tbody tr:first-child", "bob")
	b.has("tbody tr:nth-child(2)", "the relay is down")
	if n := eval[int](b, `document.querySelectorAll("tbody tr").length`); n != 50 {
		t.Errorf("%d rows", n)
	}
	noButtons(b)
	b.accessible()
	b.shots("audit")
	// What happens meanwhile is offered, and does not move what is there.
	if err := c.e.Queue("mail").Resume(pawl.As(t.Context(), "bob", "")); err != nil {
		t.Fatal(err)
	}
	b.has(".newer", "1 newer")
	b.press(".")
	b.wait(`document.querySelector("tbody tr:first-child").innerText.includes("resume")`)
	b.settled()

	b.press("]")
	b.wait(`location.search.includes("after=") && document.querySelectorAll("tbody tr").length === 12`)
	b.settled()
	b.leave("location.reload()")
	b.wait(`location.search.includes("after=") && document.querySelectorAll("tbody tr").length === 12`)
	b.leave("history.back()")
	b.wait(`!location.search.includes("after=") && document.querySelectorAll("tbody tr").length === 50`)
	b.settled()

	b.write("[name=by]", "bob")
	b.click(".filters button")
	b.wait(`location.search.includes("by=bob") && document.querySelectorAll("tbody tr").length === 2`)
	b.settled()
	b.click("tbody tr:first-child .c-did a")
	b.wait(`location.search.includes("action=resume") && document.querySelectorAll("tbody tr").length === 1`)
	b.visit("/audit?target=q7&when=1h")
	b.has("tbody", "q7")
	if n := eval[int](b, `document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("%d rows", n)
	}
	if to := eval[string](b, `document.querySelector(".c-to a").getAttribute("href")`); to != "/queues/q7" {
		t.Errorf("it links to %s", to)
	}
	b.visit("/audit?by=nobody")
	b.has("main", "Nothing matches.")
	b.expect("422")
	b.visit422("/audit?after=nonsense")
}

// visit422 wants a page to be refused, as a page.
func (b *tab) visit422(path string) {
	b.t.Helper()
	b.leave("location.href = " + quoted(b.c.url+path))
	b.has("main", "cannot be read")
}

func TestU7_AnOperationIsOneRowWithItsProgress(t *testing.T) {
	c := serve(t)
	pawl.Handle(c.e, func(context.Context, *pawl.Job[shout]) error { return nil })
	c.run()
	for range 5 {
		if _, err := c.e.Enqueue(t.Context(), pawl.RawArgs("nobody.knows", []byte(`{}`)), pawl.Queue("closed")); err != nil {
			t.Fatal(err)
		}
	}
	o, err := c.e.Bulk(operating(t.Context(), "clear out"), pawl.BulkCancel(pawl.Filter{Queue: "closed"}))
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/audit")
	b.has("tbody", "cancel many")
	if _, err := c.e.WaitOperation(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	b.has("tbody", "Cancelled 5 jobs.")
	b.visit("/audit")
	if n := eval[int](b, `document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("%d rows of one operation", n)
	}
	b.has("tbody", "clear out")
}

func TestU7_HostileNotesAreText(t *testing.T) {
	c := serveScheduled(t)
	if err := c.e.Schedule("mornings").Pause(pawl.As(t.Context(), `<i>"ann"</i> of a_very_long_department_without_any_break_in_its_name_at_all`, loud)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/audit", "/cron", "/cron/mornings", "/settings", "/services"} {
		b := open(t, c, path)
		if path == "/audit" || path == "/cron/mornings" || path == "/settings" {
			b.has("main", "<b>x</b>")
			b.has("main", "⟨RLO⟩txt.exe")
		}
		b.unharmed()
	}
}
