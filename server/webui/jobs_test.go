package webui_test

import (
	"fmt"
	"testing"

	"github.com/pawlwork/pawl"
)

func TestU7_JobsAreListedByTheirStates(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs")
	for _, text := range []string{"Running", "Ready", "Retrying", "Dead", "Done", "Scheduled"} {
		b.has("table", text)
	}
	b.has("table", "queue exports is paused")
	b.has("table", "no live worker serves queue legacy-sync")
	b.accessible()
	b.shots("jobs")
	b.visit("/jobs/dead")
	b.has("table[data-rows]", `render invoice 48210: template "invoice/v3"`)
	b.accessible()
	b.shots("jobs-dead")
	b.visit("/jobs/retries")
	b.has("table", "i/o timeout")
	b.visit("/jobs/scheduled")
	b.has("table", "in 2 h")
	b.visit("/jobs?kind=mail.receipt")
	b.has(".strip", "mail.receipt")
	b.wait(`document.documentElement.dataset.charts === "ready"`)
	b.accessible()
	b.shots("jobs-kind")
}

func TestU7_ManyJobsAreRetriedByAFilter(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs/dead?kind=invoice.render")
	b.press("x") // nothing is at the cursor yet
	b.press("j")
	b.press("x")
	b.has("#bulk", "1 selected")
	b.click("#bulk [data-all]")
	b.has("#dialog", "8 jobs match")
	b.click("#dialog .choices a")
	b.has("#dialog", "Retry 8 jobs?")
	b.has("#dialog", "all dead jobs with kind invoice.render")
	b.has("#dialog", "8 can be retried")
	b.shot("dialog")
	b.click("#dialog button.pri")
	b.has("#toasts", "Retried 8 jobs.")
	l, err := s.e.Audit(t.Context(), pawl.AuditFilter{By: "tester"}, pawl.AuditPage{})
	if err != nil || len(l.Entries) == 0 {
		t.Errorf("audit: %+v, %v", l, err)
	}
}

func TestU7_JobsArePagedByACursor(t *testing.T) {
	c := serve(t)
	for i := range 120 {
		if _, err := c.e.Enqueue(t.Context(), charge{work{Order: i}}); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, c, "/jobs")
	b.wait(`document.querySelectorAll("tr[data-id]").length === 50`)
	b.has(".pager", "Newest 50 of 120.")
	b.press("]")
	b.wait(`document.querySelectorAll("tr[data-id]").length === 50 && document.querySelector('[data-step="newer"]')`)
	b.settled()
	b.press("]")
	b.wait(`document.querySelectorAll("tr[data-id]").length === 20`)
	b.settled()
	b.press("[")
	b.wait(`document.querySelectorAll("tr[data-id]").length === 50`)
	b.settled()
	b.press("[")
	b.wait(`!document.querySelector('[data-step="newer"]')`)
	b.has(".pager", "Newest 50 of 120.")
	var newest pawl.ID
	for i := range 3 {
		r, err := c.e.Enqueue(t.Context(), charge{work{Order: 500 + i}})
		if err != nil {
			t.Fatal(err)
		}
		newest = r.ID
	}
	b.has("#newer", "3 newer")
	if n := eval[int](b, `document.querySelectorAll("tr[data-id]").length`); n != 50 {
		t.Errorf("%d rows: none may appear by itself", n)
	}
	b.settled()
	b.press(".")
	b.wait(fmt.Sprintf(`document.querySelector("tr[data-id]").dataset.id === %q`, newest))
}
