package pawl_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The README's first program is what a new user copies. It is taken out of the
// page as it stands, put into a new module that knows this checkout by a replace
// and nothing else of it, built without a network, run, and stopped by Ctrl-C.
func TestU12_TheReadmesFirstProgramRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // or a hang would show as one of the whole package
	defer cancel()
	dir := t.TempDir()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```go\npackage main\n")
	program, _, closed := strings.Cut(program, "\n```\n")
	if !found || !closed {
		t.Fatal("README.md has no whole program: a go block that begins with package main")
	}
	newModule(t, ctx, dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"+program+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	goCommand(t, ctx, dir, offline, "build", "-o", "program", ".")

	var log strings.Builder
	run := exec.CommandContext(ctx, filepath.Join(dir, "program"))
	run.Dir, run.Stderr = dir, &log
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "welcome 42 attempt 1" {
		t.Errorf("printed %q", lines.Text())
	}
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
		t.Errorf("also printed %q", lines.Text())
	}
	if err := run.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, &log)
	}
}

// offline is for a go command that finds everything in the module cache, from
// which this test was built a moment ago.
var offline = []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local"}

// newModule makes the module of a user who has nothing but a checkout. It asks for
// the versions that this test was built from: a workspace may have raised them
// over those of our go.mod, and only these are sure to be in the cache.
func newModule(t *testing.T, ctx context.Context, dir string) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var mod strings.Builder
	fmt.Fprintf(&mod, "module example.com/welcome\n\n%s\n\n", regexp.MustCompile(`(?m)^go \S+$`).Find(ours))
	fmt.Fprintf(&mod, "require github.com/pawlwork/pawl v0.0.0\n\nreplace github.com/pawlwork/pawl => %s\n\n", root)
	used := goCommand(t, ctx, root, nil, "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}", "./store/sqlite")
	lines := strings.FieldsFunc(used, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintf(&mod, "require %s\n", line)
	}
	for name, text := range map[string]string{"go.mod": mod.String(), "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func goCommand(t *testing.T, ctx context.Context, dir string, env []string, args ...string) string {
	t.Helper()
	var log strings.Builder
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), env...), &log
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", args[0], err, out, &log)
	}
	return string(out)
}
