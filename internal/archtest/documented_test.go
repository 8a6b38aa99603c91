package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Exported means promised, and a promise is written down: every exported type, function, method, constant and
// variable that a user can import has a comment. A group of constants or variables may share one.
func checkDocumented(f file) []string {
	if f.test() || f.syntax.Name.Name == "main" || slices.Contains(strings.Split(f.path, "/"), "internal") {
		return nil
	}
	var findings []string
	undocumented := func(node ast.Node, name string) {
		findings = append(findings, fmt.Sprintf("%s: %s is exported and has no comment", f.at(node.Pos()), name))
	}
	for _, declaration := range f.syntax.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) && !promisedElsewhere(d) {
				undocumented(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					// In a group of types each has its own promise; alone, the comment stands above "type".
					if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
						undocumented(s, s.Name.Name)
					}
				case *ast.ValueSpec:
					if d.Doc != nil || s.Doc != nil || s.Comment != nil {
						continue
					}
					for _, name := range s.Names {
						if name.IsExported() {
							undocumented(name, name.Name)
						}
					}
				}
			}
		}
	}
	return findings
}

// promisedElsewhere reports whether a method only keeps a promise that the standard library has written down:
// fmt.Stringer's, error's, and that of errors.Unwrap.
func promisedElsewhere(d *ast.FuncDecl) bool {
	return d.Recv != nil && d.Type.Params.NumFields() == 0 && slices.Contains([]string{"String", "Error", "Unwrap"}, d.Name.Name)
}

// exportedReceiver reports whether a function is a method of an exported type, or no method at all.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	kind := d.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.ParenExpr:
			kind = k.X
		case *ast.IndexExpr: // a type parameter
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.IsExported()
		default:
			return true
		}
	}
}

// checkPackageComments wants one package comment in every package, programs and internal packages too: a reader who
// opens a folder finds out what it is for.
func checkPackageComments(files []file) []string {
	commented := make(map[string]bool)
	for _, f := range files {
		if f.syntax != nil && !f.test() {
			commented[f.dir()] = commented[f.dir()] || f.syntax.Doc != nil
		}
	}
	var findings []string
	for dir, ok := range commented {
		if !ok {
			findings = append(findings, dir+": no file has a package comment")
		}
	}
	slices.Sort(findings)
	return findings
}

func TestDocumented_EveryExportedName(t *testing.T) { holds(t, checkDocumented) }

func TestDocumented_EveryPackage(t *testing.T) {
	for _, finding := range checkPackageComments(tree(t)) {
		t.Error(finding)
	}
}

func TestDocumented_RuleCatches(t *testing.T) {
	bare := mustParse(t, "job/x.go", `package job
type State int
func (State) String() string { return "" }
func (State) Error(loud bool) string { return "" }
func String() string { return "" }
func (*Box[K]) Open() {}
func (hidden) Open() {}
func Decide() {}
func decide() {}
const Ready = 1
var ErrA, ErrB error
// Box and hidden share a comment that neither may lean on.
type (
	Box[K any] struct{}
	hidden struct{}
)
`)
	finds(t, checkDocumented(bare), "State", "Error", "String", "Open", "Decide", "Ready", "ErrA", "ErrB", "Box")
	finds(t, checkDocumented(mustParse(t, "job/x.go", `package job
// State is where a job is.
type State int
// The states.
const (
	Ready State = iota
	Running
)
var (
	ErrLost error // the lease is lost
	// ErrGone says that it is gone.
	ErrGone error
)
`)))
	finds(t, checkDocumented(mustParse(t, "internal/runner/x.go", "package runner\nfunc Run() {}\n")))
	finds(t, checkDocumented(mustParse(t, "server/cmd/pawl/x.go", "package main\nfunc Run() {}\n")))
	finds(t, checkDocumented(mustParse(t, "job/x_test.go", "package job\nfunc TestX() {}\n")))

	finds(t, checkPackageComments([]file{
		mustParse(t, "job/a.go", "package job\n"),
		mustParse(t, "job/a_test.go", "// Package job is explained only to testers.\npackage job\n"),
		mustParse(t, "flow/a.go", "package flow\n"),
		mustParse(t, "flow/doc.go", "// Package flow is graphs.\npackage flow\n"),
	}), "job: no file has a package comment")
}
