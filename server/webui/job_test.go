package webui_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl"
)

func TestU7_AJobTellsItsStory(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs/"+s.dead.String())
	b.has("#head", "Dead since")
	b.has("#head", "attempt 3 of 3 failed, and no attempts are left.")
	b.has("#head", "7 more jobs died of this error")
	b.has("#attempts", "connection refused")
	b.has("#attempt-error", `wants field "vat_id" but the order has none`)
	b.has("#log", "tax profile has no VAT id")
	b.has("#args", `"order": 48329`)
	b.has("#facts", "30 s an attempt")
	b.has("#near", "dead of the same error")
	b.accessible()
	b.shots("job")
	b.visit("/jobs/" + s.dead.String() + "?attempt=2")
	b.has("#attempt-error", "frames of pawl and the runtime folded")
	b.has("#attempt-error", "webui_test.(*shop).handle")
	b.shot("job-stack")
	b.visit("/jobs/" + s.running.String())
	b.has("#head", "Running on")
	b.has("#progress", "3,102 of 5,080")
	b.accessible()
	b.shots("job-running")
	b.do(chromedp.Navigate(s.url + "/ask/job/delete?id=" + s.dead.String())) // as without JavaScript
	b.has("main", "for good?")
	b.accessible()
	for id, text := range map[pawl.ID]string{
		s.paused: "Queue exports is paused by ops: “bad template, INC-311”, since", s.unserved: "No live worker serves queue legacy-sync.",
		s.retrying: "Attempt 1 of 25 failed", s.scheduled: "It is due in 2 h", s.charged: "Done at",
	} {
		b.visit("/jobs/" + id.String())
		b.has("#head", text)
	}
}

func TestU7_AJobIsRetriedCancelledAndDeleted(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs/"+s.retrying.String())
	b.press("r") // runs it now; it fails again
	b.has("#toasts", "is due now.")
	b.has("#head", "Attempt 2 of 25 failed")
	b.press("c")
	b.has("#dialog", "Cancel mail.receipt")
	eval[bool](b, `document.querySelector('#dialog input[name="note"]').value = "wrong address"; true`)
	b.click("#dialog button.pri")
	b.has("#toasts", "Cancelled mail.receipt")
	b.has("#head", "Cancelled at")
	j, err := s.e.Get(t.Context(), s.retrying)
	if err != nil || j.State != pawl.StateCancelled {
		t.Errorf("%v, %v", j.State, err)
	}
	audit, err := s.e.Audit(t.Context(), pawl.AuditFilter{Target: s.retrying.String(), Action: "cancel"}, pawl.AuditPage{})
	if err != nil || len(audit.Entries) != 1 || audit.Entries[0].By != "tester" || audit.Entries[0].Note != "wrong address" {
		t.Errorf("audit: %+v, %v", audit.Entries, err)
	}
	b.press("#")
	b.has("#dialog", "for good?")
	b.click("#dialog button.bad")
	b.wait(`location.pathname === "/jobs"`)
	b.has("#toasts", "Deleted mail.receipt")
	if _, err := s.e.Get(t.Context(), s.retrying); err == nil {
		t.Error("it is still there")
	}
}

func TestU7_FindLeadsToWhatIsMeant(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/find?q="+s.dead.String())
	b.has("h1", "invoice.render")
	b.visit("/find?q=acme")
	b.has(".chip", "acme")
	b.visit("/find?q=order")
	b.has("table", "order.charge")
	b.accessible()
	b.press("/")
	b.press("nothing like it\r")
	b.has("main", "Nothing is called")
}
