package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plant writes a tree with two patches: one that its test notices, one that it does not.
func plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	patch := func(value string) string {
		return "# breaks: C1\n# why: it answers wrongly\n# test: go test ./. -run TestC1_IsNotThree\n" +
			"--- a/answer.go\n+++ b/answer.go\n@@ -1,3 +1,3 @@\n // Package answer answers.\n package answer\n-const is = 1\n+const is = " + value + "\n"
	}
	for name, text := range map[string]string{
		"go.mod":                          "module example.org/answer\n\ngo 1.26\n",
		"answer.go":                       "// Package answer answers.\npackage answer\nconst is = 1\n",
		"answer_test.go":                  "package answer\nimport \"testing\"\nfunc TestC1_IsNotThree(t *testing.T) { if is == 3 { t.Error(is) } }\n",
		"internal/breaks/C1-two.patch":    patch("2"),
		"internal/breaks/C1-three.patch":  patch("3"),
		"internal/breaks/README-not-read": "",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestRun_FailsUnlessEveryPatchIsCaught(t *testing.T) {
	root := plant(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)

	var out strings.Builder
	if err := run(t.Context(), []string{"-root", root, "-only", "*-three"}, &out, io.Discard); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if want := "1 of 1 patches caught"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}

	out.Reset()
	err := run(t.Context(), []string{"-root", root}, &out, io.Discard)
	if err == nil || err.Error() != "1 of 2 patches were not caught" {
		t.Errorf("error %v, want one survivor of two", err)
	}
	if !strings.Contains(out.String(), "C1-two: SURVIVED") {
		t.Errorf("the survivor is not named in\n%s", out.String())
	}

	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestRun_RefusesBadInput(t *testing.T) {
	root := plant(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{`no patch in`, []string{"-root", root, "-only", "S*"}},
		{`no patch in`, []string{"-root", t.TempDir()}},
		{`-only "[": syntax error in pattern`, []string{"-root", root, "-only", "["}},
		{`-timeout is 0s, must be above 0`, []string{"-root", root, "-timeout", "0s"}},
		{`argument "S3" is not understood`, []string{"-root", root, "S3"}},
	} {
		if err := run(t.Context(), c.args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}
