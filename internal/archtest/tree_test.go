package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A file is one file of the repository. Its path is slash-separated and starts at the top of the repository,
// because the rules are about places in it.
type file struct {
	path string
	text []byte
	// syntax and lines are set for Go source outside testdata.
	syntax *ast.File
	lines  *token.FileSet
}

// at says where a node is, in the form editors jump to.
func (f file) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.path, f.lines.Position(pos).Line)
}

func (f file) dir() string  { return path.Dir(f.path) }
func (f file) test() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f file) binary() bool { return bytes.IndexByte(f.text[:min(len(f.text), 8000)], 0) >= 0 }

// imports reports the name under which the file knows the package, and whether it imports it.
func (f file) imports(importPath string) (name string, ok bool) {
	for _, spec := range f.syntax.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name, true
		}
		return path.Base(importPath), true
	}
	return "", false
}

// parse makes a file of source text. The rules' own tests feed it violations.
func parse(name, text string) (file, error) {
	f := file{path: name, text: []byte(text)}
	if !strings.HasSuffix(name, ".go") || slices.Contains(strings.Split(name, "/"), "testdata") {
		return f, nil
	}
	f.lines = token.NewFileSet()
	syntax, err := parser.ParseFile(f.lines, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	f.syntax = syntax
	return f, nil
}

// mustParse is parse for source written in a test.
func mustParse(t *testing.T, name, text string) file {
	t.Helper()
	f, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// top is the repository's first folder: the one with go.work, above this package.
func top() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.work above the test's folder")
		}
		dir = parent
	}
}

// readTree reads every file of the repository once: those git tracks, and those it would track if they were added.
var readTree = sync.OnceValues(func() ([]file, error) {
	root, err := top()
	if err != nil {
		return nil, err
	}
	// The walk comes first even when git has the answer: the go command remembers which folders a test has read,
	// and would otherwise repeat an old verdict after a file was added.
	names, err := walk(root)
	if err != nil {
		return nil, err
	}
	if known, err := listed(root); err == nil {
		names = slices.DeleteFunc(names, func(name string) bool { return !known[name] })
	}
	files := make([]file, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		f, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
})

func walk(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		names = append(names, filepath.ToSlash(short))
		return nil
	})
	return names, err
}

// listed asks git. A tree without git (an unpacked archive) has only what belongs to it, so the walk is enough there.
func listed(root string) (map[string]bool, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for name := range strings.SplitSeq(string(out), "\x00") {
		known[name] = true
	}
	return known, nil
}

// tree is readTree for a test.
func tree(t *testing.T) []file {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files found: the rules would hold for want of anything to read", len(files))
	}
	return files
}

// holds runs a rule over every Go file of the repository.
func holds(t *testing.T, rule func(file) []string) {
	t.Helper()
	for _, f := range tree(t) {
		if f.syntax == nil {
			continue
		}
		for _, finding := range rule(f) {
			t.Error(finding)
		}
	}
}

// finds requires that the findings are exactly the wanted ones; each wanted text is a part of its finding.
func finds(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d findings, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("finding %d is %q, want one with %q", i, got[i], want[i])
		}
	}
}
