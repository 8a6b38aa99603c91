package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const source = `package sample

import "testing"

func FuzzFine(f *testing.F) { f.Fuzz(func(t *testing.T, text string) {}) }

func FuzzWrong(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, text string) {
		if text != "a" {
			t.Error("not a")
		}
	})
}
`

// A target that fails makes the run fail, after the others have had their time.
func TestFuzz_AnInputThatFailsIsAFailure(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	for name, text := range map[string]string{"go.mod": "module sample\n\ngo 1.26.0\n", "sample_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	err := fuzz(t.Context(), &out, time.Second, []string{"."})
	if err == nil || !strings.Contains(err.Error(), "FuzzWrong") || !strings.Contains(err.Error(), "Failing input written to") || !strings.Contains(err.Error(), "not a") {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "FuzzFine") || strings.Contains(out.String(), "FuzzWrong") {
		t.Errorf("said %q", out.String())
	}
}

func TestFuzz_TimeThatIsOverIsNoFailure(t *testing.T) {
	for said, want := range map[string]bool{
		"fuzz: elapsed: 3s, execs: 5\n--- FAIL: FuzzX (3.00s)\n    context deadline exceeded\nFAIL":                                       true,
		"--- FAIL: FuzzX (3.00s)\n    x_test.go:5: context deadline exceeded\nFAIL":                                                       false,
		"--- FAIL: FuzzX (3.00s)\n    --- FAIL: FuzzX (0.00s)\n        wrong\n    \n    Failing input written to testdata/fuzz/FuzzX/1\n": false,
		"panic: context deadline exceeded": false,
		"":                                 false,
	} {
		if overdue(said) != want {
			t.Errorf("%q: %v", said, !want)
		}
	}
}
