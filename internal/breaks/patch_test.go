package breaks

import (
	"slices"
	"strings"
	"testing"
)

func TestParse_ReadsTheHeader(t *testing.T) {
	p := parsed(t, "dir/C1-limit.patch", `# breaks: C1, P10
# why: it counts past
# why: its limit
# test: go test -race ./store/sqlite -tags fault -run '^TestStore/job_claim$'
`+pastTheLimit)
	if p.Name != "C1-limit" || p.Why != "it counts past its limit" || !slices.Equal(p.Breaks, []string{"C1", "P10"}) {
		t.Errorf("%+v", p)
	}
	if p.Test.Function() != "TestStore" {
		t.Errorf("function %s, want TestStore", p.Test.Function())
	}
	if got, want := strings.Join(p.Test.Args("-json"), " "), "test -count=1 -run=^TestStore$/^job_claim$ -race -tags=fault -json ./store/sqlite"; got != want {
		t.Errorf("args %s, want %s", got, want)
	}
}

func TestParse_NamesEveryFault(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{pastTheLimit, "no line `# breaks:`"},
		{pastTheLimit, "no line `# why:`"},
		{pastTheLimit, "0 lines `# test:`, want 1"},
		{"# breaks: the budget\n", `breaks "the budget", which is no promise`},
		{"# because: x\n", `"# because: x" is none of breaks, why, test`},
		{header("TestA"), "no diff below the header"},
		{header("TestA") + strings.ReplaceAll(pastTheLimit, "count.go", "count_test.go"), "touches count_test.go"},
		{"# test: make test\n", "does not begin with go test"},
		{"# test: go test ./a ./b -run TestA\n", "exactly one package"},
		{"# test: go test ./... -run TestA\n", "exactly one package"},
		{"# test: go test -run TestA\n", "no package"},
		{"# test: go test ./a\n", `-run "" is not the name of one test`},
		{"# test: go test ./a -run\n", "-run has no value"},
		{"# test: go test ./a -run TestA|TestB\n", "is not the name of one test"},
		{"# test: go test ./a -run TestA -exec rm\n", `"-exec" is none of`},
	} {
		if _, err := Parse("x.patch", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

// The patches that are here fit the tree as it is now and name tests that exist. Whether those tests then fail is
// tried by the program in run, which takes longer.
func TestPatches_ApplyAndNameATest(t *testing.T) {
	const root = "../.."
	patches, err := Load(".")
	if err != nil {
		t.Error(err)
	}
	for _, p := range patches {
		if err := CheckApplies(t.Context(), root, p); err != nil {
			t.Error(err)
		}
		if err := CheckTestExists(root, p.Test); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestPatches_StalePatchIsFound(t *testing.T) {
	source := plant(t)
	if err := CheckApplies(t.Context(), source, parsed(t, "x", header("TestA")+pastTheLimit)); err != nil {
		t.Error(err)
	}
	if err := CheckApplies(t.Context(), source, parsed(t, "x", header("TestA")+elsewhere)); err == nil {
		t.Error("a patch for other source applies")
	}
	if err := CheckTestExists(source, Test{Package: "./.", Name: "TestC2_Counts/from_7"}); err != nil {
		t.Error(err)
	}
	if err := CheckTestExists(source, Test{Package: "./.", Name: "TestC2"}); err == nil || !strings.Contains(err.Error(), "no test function TestC2") {
		t.Errorf("a missing test: %v", err)
	}
}

func TestWriteTable_ShowsWhatSurvived(t *testing.T) {
	p := parsed(t, "C1-limit", header("TestA")+pastTheLimit)
	var out strings.Builder
	if err := WriteTable(&out, []Result{{p, Caught, ""}, {p, Survived, "--- PASS: TestA"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"breaks  patch     test       verdict\n",
		"C1      C1-limit  ./. TestA  caught\n",
		"C1      C1-limit  ./. TestA  SURVIVED\n",
		"C1-limit: SURVIVED\n  why: it counts past its limit\n  | --- PASS: TestA\n",
		"\n1 of 2 patches caught\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
