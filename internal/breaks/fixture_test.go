package breaks

import (
	"os"
	"path/filepath"
	"testing"
)

// fixture is a small tree of its own: a counter that promises to stop at its limit, and tests of every temper.
var fixture = map[string]string{
	"go.mod":     "module example.org/count\n\ngo 1.26\n",
	".gitignore": "/ignored.go\n",
	// If this were copied, the package would not compile.
	"ignored.go": "package nonsense\n",
	"count.go": `// Package count counts.
package count

const limit = 3

// Add counts one more, up to the limit.
func Add(n int) int {
	if n >= limit {
		return n
	}
	return n + 1
}
`,
	"count_test.go": `package count

import (
	"fmt"
	"os"
	"testing"
)

// exit stands for a leak check, which speaks after the tests have passed.
var exit int

func TestMain(m *testing.M) { os.Exit(m.Run() + exit) }

func TestC1_StopsAtTheLimit(t *testing.T) {
	if got := Add(3); got != 3 {
		t.Fatalf("Add(3) = %d, want 3", got)
	}
}

func TestC2_Counts(t *testing.T) {
	for n := range 3 {
		t.Run(fmt.Sprint("from_", n), func(t *testing.T) {
			if got := Add(n); got != n+1 {
				t.Fatalf("Add(%d) = %d", n, got)
			}
		})
	}
}

func TestC3_SeesNothing(t *testing.T) { Add(1) }

func TestC4_IsSkipped(t *testing.T) {
	if Add(3) != 3 {
		t.Skip("as if a server were missing")
	}
}

func TestC5_Crashes(t *testing.T) {
	done := make(chan int)
	go func() {
		if Add(3) != 3 {
			panic("in another goroutine")
		}
		close(done) // not deferred: the test could end, and with it the process, before the panic does
	}()
	<-done
}

func TestC6_Hangs(t *testing.T) {
	if Add(3) != 3 {
		select {}
	}
}

func TestC7_PassesAndLeaks(t *testing.T) {
	if Add(3) != 3 {
		exit = 1
	}
}

func TestC8_FailsAlways(t *testing.T) { t.Error("as ever") }

func TestC9_LeavesAFile(t *testing.T) {
	if Add(3) != 3 {
		t.Error(os.WriteFile("left.go", []byte("package nonsense\n"), 0o600))
	}
}
`,
}

// header is the beginning of a patch for the fixture.
func header(test string) string {
	return "# breaks: C1\n# why: it counts past its limit\n# test: go test ./. -run " + test + "\n"
}

// Diffs against the fixture.
const (
	pastTheLimit = `diff --git a/count.go b/count.go
--- a/count.go
+++ b/count.go
@@ -5,5 +5,5 @@ const limit = 3
 // Add counts one more, up to the limit.
 func Add(n int) int {
-	if n >= limit {
+	if n > limit {
 		return n
 	}
`
	notBuilt = `diff --git a/count.go b/count.go
--- a/count.go
+++ b/count.go
@@ -5,5 +5,5 @@ const limit = 3
 // Add counts one more, up to the limit.
 func Add(n int) int {
-	if n >= limit {
+	if n >= limt {
 		return n
 	}
`
	elsewhere = `diff --git a/count.go b/count.go
--- a/count.go
+++ b/count.go
@@ -5,5 +5,5 @@ const limit = 3
 // Add counts one more, up to the limit.
 func Add(n int) int {
-	if n >= boundary {
+	if n > boundary {
 		return n
 	}
`
)

// plant writes the fixture into a git repository in a temporary folder. Nothing is committed: the copy takes what git
// would track.
func plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range fixture {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t.Context(), dir, nil, "git", "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// grow copies the planted fixture.
func grow(t *testing.T, source string) *Tree {
	t.Helper()
	tree, err := CopyTree(t.Context(), source, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// parsed is Parse for a patch written in a test.
func parsed(t *testing.T, name, text string) Patch {
	t.Helper()
	p, err := Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
