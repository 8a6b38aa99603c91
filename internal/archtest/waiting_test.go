package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// A skipped test looks like a passed one. Only internal/need may skip, because there a missing server turns into a
// failure under make test. Any method called Skip, SkipNow or Skipf counts, in every file that imports testing:
// which value is a testing.TB in disguise cannot be told from the source alone.
func checkSkips(f file) []string {
	testing, ok := f.imports("testing")
	if !ok || strings.HasPrefix(f.path, "internal/need/") {
		return nil
	}
	var findings []string
	report := func(node ast.Node, what string) {
		findings = append(findings, fmt.Sprintf("%s: %s: only internal/need skips", f.at(node.Pos()), what))
	}
	// open holds the functions around the node being visited, innermost last.
	var open []ast.Node
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if node == nil {
			open = open[:len(open)-1]
			return true
		}
		open = append(open, node)
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		receiver, plain := selector.X.(*ast.Ident)
		switch name := selector.Sel.Name; {
		case plain && receiver.Name == testing && name == "Short":
			report(selector, "testing.Short")
		case !slices.Contains([]string{"Skip", "SkipNow", "Skipf"}, name):
		case plain && (f.isPackage(receiver.Name) || isRapid(open, receiver.Name)):
		default:
			report(selector, name)
		}
		return true
	})
	return findings
}

// isPackage reports whether a name is that of an imported package.
func (f file) isPackage(name string) bool {
	return slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool {
		known, _ := f.imports(strings.Trim(spec.Path.Value, `"`))
		return known == name
	})
}

// isRapid reports whether a name is a *rapid.T: its Skip throws one drawn value away and rapid draws another, so no
// test is skipped by it.
func isRapid(open []ast.Node, name string) bool {
	for _, node := range slices.Backward(open) {
		var parameters *ast.FieldList
		switch function := node.(type) {
		case *ast.FuncLit:
			parameters = function.Type.Params
		case *ast.FuncDecl:
			parameters = function.Type.Params
		default:
			continue
		}
		for _, field := range parameters.List {
			if !slices.ContainsFunc(field.Names, func(id *ast.Ident) bool { return id.Name == name }) {
				continue
			}
			pointer, ok := field.Type.(*ast.StarExpr)
			if !ok {
				return false
			}
			kind, ok := pointer.X.(*ast.SelectorExpr)
			if !ok {
				return false
			}
			pkg, ok := kind.X.(*ast.Ident)
			return ok && pkg.Name == "rapid" && kind.Sel.Name == "T"
		}
	}
	return false
}

// Tests wait for events, never for time to pass: a sleep is too short on a slow machine and too long on a fast one.
// Under synctest and pawltest a sleep is virtual; where the bubble is made in another file, the sleep says `virtual`.
// Elsewhere a sleep may only make something happen, such as a slow handler, and says so: `stimulus:`. Both stand in a
// comment on the sleep's line or the line above.
func checkSleeps(f file) []string {
	for _, bubble := range []string{"testing/synctest", modulePath + "/pawltest"} {
		if _, ok := f.imports(bubble); ok {
			return nil
		}
	}
	_, testing := f.imports("testing")
	name, ok := f.imports("time")
	if !ok || !testing && !f.test() {
		return nil
	}
	explained := make(map[int]bool)
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			if strings.Contains(comment.Text, "stimulus:") || strings.Contains(comment.Text, "virtual") {
				line := f.lines.Position(comment.Pos()).Line
				explained[line], explained[line+1] = true, true
			}
		}
	}
	var findings []string
	for node := range ast.Preorder(f.syntax) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Sleep" {
			continue
		}
		pkg, ok := selector.X.(*ast.Ident)
		if ok && pkg.Name == name && !explained[f.lines.Position(selector.Pos()).Line] {
			findings = append(findings, f.at(selector.Pos())+": time.Sleep in a test: wait for an event, or use synctest")
		}
	}
	return findings
}

func TestWaiting_OnlyNeedSkips(t *testing.T)      { holds(t, checkSkips) }
func TestWaiting_NoTestSleepsToWait(t *testing.T) { holds(t, checkSleeps) }

func TestWaiting_RuleCatchesSkips(t *testing.T) {
	const skips = `package x
import "testing"
func TestA(t *testing.T) { t.Skip("later"); t.Skipf("%d", 1); t.SkipNow() }
func BenchmarkA(b *testing.B) { b.Skip() }
func TestB(t *testing.T) { if testing.Short() { return } }
func TestC(t *testing.T) { box{t}.t.Skip() }
var later = (*testing.T).SkipNow
type box struct{ t testing.TB }
`
	finds(t, checkSkips(mustParse(t, "batch/x_test.go", skips)), "x_test.go:3: Skip", "Skipf", "SkipNow", "Skip", "testing.Short", "Skip", "SkipNow")
	finds(t, checkSkips(mustParse(t, "store/storetest/x.go", skips)), "Skip", "Skipf", "SkipNow", "Skip", "testing.Short", "Skip", "SkipNow")
	finds(t, checkSkips(mustParse(t, "internal/need/need.go", skips)))

	const draws = `package x
import ("testing"; "pgregory.net/rapid"; "example.org/flow")
func TestA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { t.Skip("draw again") })
	rapid.Check(t, func(r *rapid.T) { t.Skip("all of it") })
	flow.Skip()
}
`
	finds(t, checkSkips(mustParse(t, "batch/x_test.go", draws)), "x_test.go:5: Skip")
	finds(t, checkSkips(mustParse(t, "flow/x.go", "package flow\nfunc move(n node) { n.Skip() }\n")))
}

func TestWaiting_RuleCatchesSleeps(t *testing.T) {
	const sleeps = `package x
import ("testing"; "time")
func TestA(t *testing.T) {
	time.Sleep(1)
	// stimulus: the handler is slow
	time.Sleep(2)
	time.Sleep(3) // stimulus: as above
	// stimulus: this comment explains the next line only

	time.Sleep(4)
	f := time.Sleep
	time.Sleep(5) // virtual
}
`
	finds(t, checkSleeps(mustParse(t, "batch/x_test.go", sleeps)), "x_test.go:4:", "x_test.go:10:", "x_test.go:11:")
	finds(t, checkSleeps(mustParse(t, "pawltest/x.go", sleeps)), "x.go:4:", "x.go:10:", "x.go:11:")
	finds(t, checkSleeps(mustParse(t, "batch/x_test.go", strings.Replace(sleeps, `"testing";`, `"testing"; "testing/synctest";`, 1))))
	finds(t, checkSleeps(mustParse(t, "x_test.go", strings.Replace(sleeps, `"testing";`, `"testing"; "github.com/pawlwork/pawl/pawltest";`, 1))))
	finds(t, checkSleeps(mustParse(t, "examples/slow/main.go", "package main\nimport \"time\"\nfunc main() { time.Sleep(1) }\n")))
}
