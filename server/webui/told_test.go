package webui_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
)

// The groups of dead jobs count what died in their range; what is dead now is said beside it, and is less once somebody has seen to it.
func TestU7_GroupsSayWhatDiedAndWhatIsDeadNow(t *testing.T) {
	s := openShop(t)
	r := s.reader()
	died := regexp.MustCompile(`([0-9,]+) died of [0-9]+ errors? in the last 30 d`)
	before := r.get("/jobs/dead")
	was := died.FindString(before)
	if !strings.Contains(before, "8 dead jobs now") || was == "" || !strings.Contains(before, ">Died</th>") {
		t.Fatalf("%.3000s", before)
	}
	if _, err := s.e.Delete(t.Context(), s.dead); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return strings.Contains(r.get("/jobs/dead"), "7 dead jobs now") })
	if is := died.FindString(r.get("/jobs/dead")); is != was {
		t.Errorf("%q after a delete, want %q as before", is, was)
	}
}

// A run that was given back uses no attempt. The store counts it, and the page says so.
func TestU7_ARunThatWasGivenBackIsSaid(t *testing.T) {
	c := serve(t)
	ctx := operating(t.Context(), "")
	receipt, err := c.e.Enqueue(ctx, pawl.RawArgs("x", []byte("{}")), pawl.Queue("py"))
	if err != nil {
		t.Fatal(err)
	}
	path := "/jobs/" + receipt.ID.String()
	r := c.reader()
	if text := r.get(path); strings.Contains(text, "without a row") {
		t.Errorf("a job that nobody has taken: %.3000s", text)
	}
	remote := c.e.Remote()
	w, err := remote.Register(ctx, pawl.RemoteWorker{Label: "p", Queues: []string{"py"}, Kinds: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	took, err := remote.Claim(ctx, pawl.RemoteClaim{Worker: w, Limit: 1})
	if err != nil || len(took.Jobs) != 1 {
		t.Fatal(took, err)
	}
	j := took.Jobs[0]
	if _, err := remote.Finish(ctx, w, []pawl.RemoteEnd{{RunRef: pawl.RunRef{ID: j.ID, Run: j.Run}, Outcome: pawl.RemoteReleased}}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return strings.Contains(r.get(path), "1 run without a row here: given back") })
}

// Where the list is narrowed to a kind, its groups are those of that kind, with how many are dead now; what is dead no more is not retried.
func TestU7_GroupsOfAKindAreOfThatKind(t *testing.T) {
	s := openShop(t)
	other, err := s.e.Enqueue(t.Context(), receipt{work{Order: 9}}, pawl.Queue("mail"), pawl.Attempts(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.e.Wait(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	r := s.reader()
	panel := func(path string) string { return part(r.get(path), `<section class="panel groups"`, "</section>") }
	until(t, func() bool { return strings.Contains(panel("/jobs/dead"), "9 dead jobs now") })
	text := panel("/jobs/dead?kind=invoice.render")
	for _, want := range []string{"8 dead jobs of kind <bdi>invoice.render</bdi> now", ">Dead now</th>", `<b class="c-dead">8</b>`, ">Retry 8…<"} {
		if !strings.Contains(plainMarkup(text), want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if text := panel("/jobs/dead?queue=mail"); text != "" {
		t.Errorf("nobody has counted the deaths of a queue by error: %s", text)
	}
	if _, err := s.e.DeleteAll(t.Context(), pawl.Filter{States: []pawl.State{pawl.StateDead}, Kind: "invoice.render"}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		text := panel("/jobs/dead?kind=invoice.render")
		return strings.Contains(text, "0 dead jobs of kind") && !strings.Contains(text, "Retry")
	})
}

// plainMarkup is a page without the classes of what users wrote.
func plainMarkup(text string) string {
	return regexp.MustCompile(`<bdi[^>]*>`).ReplaceAllString(text, "<bdi>")
}

// What the answer to an action tells, the frame does not tell a second time.
func TestU7_AnOperationIsToldOnce(t *testing.T) {
	c := serve(t)
	for i := range 3 {
		if _, err := c.e.Enqueue(t.Context(), charge{work{Order: i}}); err != nil {
			t.Fatal(err)
		}
	}
	r := c.reader()
	if _, text := r.do("POST", "/do/jobs/cancel", url.Values{"all": {"1"}, "view": {"ready"}, "csrf": {tokenOf(t, r.get("/ask/jobs/cancel?all=1&view=ready"))}}, "HX-Request", "true"); !strings.Contains(text,
		"Cancelled 3 jobs.") {
		t.Fatal(text)
	}
	if text := r.get("/jobs"); strings.Contains(part(text, `<div class="toasts">`, "<nav"), "Cancelled 3 jobs.") {
		t.Errorf("%s", part(text, `<div class="toasts">`, "<nav"))
	}
	if op, err := c.e.Bulk(t.Context(), pawl.BulkDelete(pawl.Filter{States: []pawl.State{pawl.StateCancelled}})); err != nil {
		t.Fatal(err)
	} else if _, err := c.e.WaitOperation(t.Context(), op.ID); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		return strings.Contains(part(r.get("/jobs"), `<div class="toasts">`, "<nav"), "Deleted 3 jobs.")
	}) // by somebody else
}
