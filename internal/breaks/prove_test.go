package breaks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every verdict is reached, on one copy, one patch after the other: what one leaves behind would spoil the next.
func TestProve_TellsCaughtFromEverythingElse(t *testing.T) {
	source := plant(t)
	prover := &Prover{Tree: grow(t, source), Timeout: time.Minute}
	for _, c := range []struct {
		name, test, diff string
		want             Verdict
		detail           string
	}{
		{"a test that notices", "TestC1_StopsAtTheLimit", pastTheLimit, Caught, ""},
		{"a patch that does not fit", "TestC1_StopsAtTheLimit", elsewhere, NotApplied, "patch does not apply"},
		{"a patch that does not compile", "TestC1_StopsAtTheLimit", notBuilt, NotBuilt, "undefined: limt"},
		{"a test that leaves a file", "TestC9_LeavesAFile", pastTheLimit, Caught, ""},
		{"a test that sees nothing", "TestC3_SeesNothing", pastTheLimit, Survived, "PASS: TestC3_SeesNothing"},
		{"a subtest that sees nothing", "TestC2_Counts/from_2", pastTheLimit, Survived, "PASS: TestC2_Counts/from_2"},
		{"a subtest that is not there", "TestC2_Counts/from_7", pastTheLimit, NotRun, ""},
		{"a test that is not there", "TestC1_StopsAt", pastTheLimit, NotRun, "no tests to run"},
		{"a test that is skipped", "TestC4_IsSkipped", pastTheLimit, NotRun, "SKIP: TestC4_IsSkipped"},
		{"a test that brings the process down", "TestC5_Crashes", pastTheLimit, Caught, ""},
		{"a leak seen after the test", "TestC7_PassesAndLeaks", pastTheLimit, Caught, ""},
		{"a test that fails anyway", "TestC8_FailsAlways", pastTheLimit, BrokenNow, "as ever"},
		{"the first again", "TestC1_StopsAtTheLimit", pastTheLimit, Caught, ""},
	} {
		got := prover.Prove(t.Context(), parsed(t, c.name, header(c.test)+c.diff))
		if got.Verdict != c.want || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s: %s, want %s with %q; it said\n%s", c.name, got.Verdict, c.want, c.detail, got.Detail)
		}
	}
	if text, err := os.ReadFile(filepath.Join(source, "count.go")); err != nil || string(text) != fixture["count.go"] {
		t.Errorf("the tree that was copied has changed (%v):\n%s", err, text)
	}
	if text, err := os.ReadFile(filepath.Join(prover.Tree.dir, "count.go")); err != nil || string(text) != fixture["count.go"] {
		t.Errorf("the copy was not restored (%v):\n%s", err, text)
	}
}

// A broken test may hang; the time limit of go test then ends it, and that is a failure like any other.
func TestProve_HangingTestIsCaught(t *testing.T) {
	prover := &Prover{Tree: grow(t, plant(t)), Timeout: 5 * time.Second}
	patch := parsed(t, "hangs", header("TestC6_Hangs")+pastTheLimit)
	// The limit is for the broken run. The unbroken one is known to pass, so that a slow machine cannot spoil it.
	prover.before = map[string]Result{strings.Join(patch.Test.Args(), " "): {Verdict: Caught}}
	if got := prover.Prove(t.Context(), patch); got.Verdict != Caught {
		t.Errorf("%s, want %s; it said\n%s", got.Verdict, Caught, got.Detail)
	}
}

func TestProve_CancelledRunIsNoVerdict(t *testing.T) {
	prover := &Prover{Tree: grow(t, plant(t)), Timeout: time.Minute}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("called off"))
	got := prover.Prove(ctx, parsed(t, "x", header("TestC1_StopsAtTheLimit")+pastTheLimit))
	if got.Verdict != Impossible || !strings.Contains(got.Detail, "called off") {
		t.Errorf("%s (%s), want %s", got.Verdict, got.Detail, Impossible)
	}
}

func TestJudge_ReadsOnlyTheNamedTest(t *testing.T) {
	const (
		begins = `{"Action":"run","Test":"TestA"}` + "\n"
		passes = `{"Action":"pass","Test":"TestA"}` + "\n"
		fails  = `{"Action":"fail","Test":"TestA"}` + "\n"
		skips  = `{"Action":"skip","Test":"TestA"}` + "\n"
		other  = `{"Action":"run","Test":"TestA/b"}` + "\n" + `{"Action":"fail","Test":"TestA/b"}` + "\n"
	)
	for _, c := range []struct {
		output string
		clean  bool
		want   testResult
	}{
		{begins + passes, true, passed},
		{begins + fails, false, failed},
		{begins + skips, true, absent},
		{begins + skips, false, absent},
		{begins + other + passes, true, passed},
		{begins + passes, false, failed},
		{begins, false, failed},
		{other, false, absent},
		{"", false, absent},
		{"no JSON\n", false, absent},
	} {
		if got := judge([]byte(c.output), "TestA", c.clean); got != c.want {
			t.Errorf("clean=%v, got %d, want %d of\n%s", c.clean, got, c.want, c.output)
		}
	}
}

func TestEnvironment_LeadsNowhereElse(t *testing.T) {
	got := environment([]string{"HOME=/h", "GIT_DIR=/x/.git", "GIT_INDEX_FILE=i", "GOWORK=/x/go.work", "PWD=/x", "GOFLAGS=-buildvcs=false"})
	if want := "HOME=/h GOFLAGS=-buildvcs=false"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if got := environment([]string{"GOWORK=off"}); len(got) != 1 {
		t.Errorf("GOWORK=off was dropped: %v", got)
	}
}
