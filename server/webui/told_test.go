package webui_test

import (
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
