package webui_test

import (
	"fmt"
	"testing"

	"github.com/pawlwork/pawl"
)

func TestU7_ManyJobsNeedATypedNumberAndANote(t *testing.T) {
	c := serve(t)
	items := make([]pawl.Item, 600)
	for i := range items {
		items[i] = pawl.NewItem(charge{work{Order: i}})
	}
	if _, err := c.e.EnqueueMany(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.e.CancelAll(t.Context(), pawl.Filter{}); err != nil {
		t.Fatal(err)
	}
	left := func(want int) {
		t.Helper()
		if n, err := c.e.Count(t.Context(), pawl.Filter{States: []pawl.State{pawl.StateCancelled}}, 0); err != nil || n.Jobs != want {
			t.Fatalf("%d are left, want %d: %v", n.Jobs, want, err)
		}
	}
	b := open(t, c, "/jobs?state=cancelled")
	b.press("*") // all that match
	b.has("#dialog", "600 jobs match.")
	b.click("#dialog .choices .bad")
	b.has("#dialog", "Delete 600 jobs for good?")
	b.has("#dialog", "Type 600 to confirm")
	fill := func(name, value string) {
		t.Helper()
		eval[bool](b, fmt.Sprintf(`document.querySelector('#dialog [name=%q]').value = %q;
			document.querySelector("#dialog form").noValidate = true`, name, value))
	}
	b.expect("422")
	fill("typed", "6000")
	fill("note", "clean up")
	b.click("#dialog button.bad")
	b.has("#dialog .wrong", "Type 600")
	left(600)
	fill("typed", "600")
	b.click("#dialog button.bad") // without a note
	b.has("#dialog .wrong", "need a note")
	left(600)
	fill("typed", "600")
	fill("note", "clean up")
	b.click("#dialog button.bad")
	b.has(".toasts", "Deleted 600 jobs.")
	left(0)
	list, err := c.e.Operations(t.Context())
	if err != nil || len(list) != 1 || list[0].By != "tester" || list[0].Note != "clean up" {
		t.Errorf("%+v %v", list, err)
	}
}

func TestU7_TickedJobsAreMovedAndReprioritised(t *testing.T) {
	c := serve(t)
	var ids []pawl.ID
	for i := range 3 {
		r, err := c.e.Enqueue(t.Context(), charge{work{Order: i}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	b := open(t, c, "/jobs")
	tick := func() {
		b.press("jxjx")
		b.has("#bulk-count", "2 selected")
	}
	tick()
	b.click(`#bulk [data-verb="requeue"]`)
	b.has("#dialog", "Move 2 jobs?")
	b.press("mail") // the field has the focus
	b.press("\r")
	b.has("#toasts", "Moved 2 jobs.")
	b.wait(`document.getElementById("bulk").hidden`)
	b.wait(`[...document.querySelectorAll("td.x-q")].map((e) => e.innerText).join() === "mail,mail,default"`)
	tick()
	b.click(`#bulk [data-verb="priority"]`)
	b.has("#dialog", "Set the priority of 2 jobs?")
	eval[bool](b, `document.querySelector('#dialog [name="priority"]').value = "2"; true`)
	b.click("#dialog button.pri")
	b.has("#toasts", "Set the priority of 2 jobs.")
	for i, want := range map[int]int{0: 5, 1: 2, 2: 2} {
		if j, err := c.e.Get(t.Context(), ids[i]); err != nil || j.Priority != want {
			t.Errorf("priority %d, want %d: %v", j.Priority, want, err)
		}
	}
	b.visit("/jobs/" + ids[0].String())
	b.expect("422")
	b.click("#head a[hx-get*='requeue']")
	b.has("#dialog", "another queue?")
	b.press("no such name!\r")
	b.has("#dialog .wrong", "queue")
	b.press("\x1b")
	b.wait(`!document.getElementById("dialog").open`)
}
