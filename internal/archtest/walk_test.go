package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// walked is how many functions of ours one plain job passes on a store, and how many of them are steps: have more than
// mostShort statements, so that a person who follows the job has to stop and read them.
type walked struct{ steps, functions int }

// mostWalked is the most there may be. The aim is 70 on SQLite and 90 on Postgres (docs/adr/0011-counting-the-walk.md). These
// are the numbers that internal/tools/walk measured last, so that the walk does not grow unseen, neither by steps nor by what is
// cut into pieces too small to be steps.
var mostWalked = map[string]walked{"SQLite": {108, 190}, "Postgres": {123, 210}}

// mostShort is internal/tools/walk's.
const mostShort = 3

var (
	walkHeading = regexp.MustCompile(`^## On (\w+): (\d+) steps, (\d+) functions$`)
	walkLine    = regexp.MustCompile(`^ +(· )?([\w/]+(?:\.\w+){1,2})(?:  .*)?$`)
)

// checkWalk holds docs/walk.md against the functions of the tree, of which it is told the size. The page says how many it draws
// for each store, draws as many, each once and a step as one, and no more than may be.
func checkWalk(page file, sizes map[string]int, most map[string]walked) (findings []string) {
	drawn := map[string]bool{}
	var said, counted walked
	store, at, open := "", "", false
	missing := make(map[string]bool, len(most))
	for name := range most {
		missing[name] = true
	}
	for i, line := range strings.Split(string(page.text), "\n") {
		here := fmt.Sprintf("%s:%d", page.path, i+1)
		add := func(format string, args ...any) {
			findings = append(findings, here+": "+fmt.Sprintf(format, args...))
		}
		switch m := walkHeading.FindStringSubmatch(line); {
		case m != nil:
			store, at = m[1], here
			said.steps, _ = strconv.Atoi(m[2])
			said.functions, _ = strconv.Atoi(m[3])
			counted = walked{}
			clear(drawn)
			delete(missing, store)
			if limit, known := most[store]; !known {
				add("there is no store %s", store)
			} else if said.steps > limit.steps || said.functions > limit.functions {
				add("a job passes %+v on %s, want at most %+v", said, store, limit)
			}
		case strings.HasPrefix(line, "```"):
			if open = !open; !open && counted != said {
				findings = append(findings, fmt.Sprintf("%s: says %+v and draws %+v", at, said, counted))
			}
		case open && strings.HasPrefix(line, " "):
			name, step := "", false
			if m := walkLine.FindStringSubmatch(line); m != nil {
				name, step = m[2], m[1] == ""
			}
			switch size, known := sizes[name]; {
			case !known:
				add("there is no function %q", readable(name, line))
			case drawn[name]:
				add("%s is drawn twice", name)
			case step != (size > mostShort):
				add("%s has %d statements, a step has more than %d", name, size, mostShort)
			}
			drawn[name] = true
			counted.functions++
			if step {
				counted.steps++
			}
		}
	}
	for name := range missing {
		findings = append(findings, fmt.Sprintf("%s: no walk on %s", page.path, name))
	}
	return findings
}

// readable is the name on a line, or the whole line where there is none to read.
func readable(name, line string) string {
	if name == "" {
		return strings.TrimSpace(line)
	}
	return name
}

// addWalkSizes adds the functions of a file as internal/tools/walk writes them, with how many statements they have: the package's
// folder without those that only say who may import it, the receiver's type, the name.
func addWalkSizes(sizes map[string]int, f file) {
	place := strings.ReplaceAll("/"+f.dir(), "/internal/", "/")[1:]
	if place == "." {
		place = "pawl"
	}
	for _, d := range f.syntax.Decls {
		if decl, ok := d.(*ast.FuncDecl); ok && !f.test() {
			name := place + "." + receiverDot(decl) + decl.Name.Name
			sizes[name] = max(sizes[name], statements(decl)) // the larger of those that are built for different systems
		}
	}
}

// statements counts as internal/tools/walk does.
func statements(decl *ast.FuncDecl) (n int) {
	for node := range ast.Preorder(decl) {
		switch node.(type) {
		case *ast.BlockStmt, *ast.LabeledStmt, *ast.CaseClause, *ast.CommClause, *ast.EmptyStmt:
		case ast.Stmt:
			n++
		}
	}
	return n
}

// receiverDot is the name of a method's type and a dot, empty for a function.
func receiverDot(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	for node := range ast.Preorder(decl.Recv.List[0].Type) {
		if name, ok := node.(*ast.Ident); ok { // the first is the type's, those of its parameters follow
			return name.Name + "."
		}
	}
	return ""
}

func TestWalk_NamesWhatIsThereAndDoesNotGrow(t *testing.T) {
	sizes := map[string]int{}
	var page file
	for _, f := range tree(t) {
		if f.path == "docs/walk.md" {
			page = f
		}
		if f.syntax != nil {
			addWalkSizes(sizes, f)
		}
	}
	findings := checkWalk(page, sizes, mostWalked)
	for _, finding := range findings {
		t.Error(finding)
	}
	if len(findings) > 0 {
		t.Log("after a change of the code: go run ./internal/testenv -- go run ./internal/tools/walk")
	}
}

func TestWalk_RuleCatches(t *testing.T) {
	sizes := map[string]int{}
	for path, text := range map[string]string{
		"engine.go":                              "package pawl\nfunc (e *Engine) Enqueue() { if a { b() }; for { c() } }\n",
		"internal/runner/x.go":                   "package runner\nfunc judge() {}\n",
		"store/internal/commit/x.go":             "package commit\nfunc (m *Committer[C]) Do() {}\n",
		"store/postgres/internal/jobs/x.go":      "package jobs\nfunc (Room) Purge() {}\n",
		"store/postgres/internal/jobs/x_test.go": "package jobs\nfunc inTest() {}\n",
	} {
		addWalkSizes(sizes, mustParse(t, path, text))
	}
	most := map[string]walked{"SQLite": {1, 3}}
	check := func(text string) []string { return checkWalk(mustParse(t, "docs/walk.md", text), sizes, most) }
	const fine = "## On SQLite: 1 steps, 3 functions\n```text\nenqueue\n  pawl.Engine.Enqueue  hands in\n    · store/commit.Committer.Do\n\nrun\n  · runner.judge  judges\n```\n"
	finds(t, check(fine))
	finds(t, check(strings.Replace(fine, "runner.judge ", "runner.gone ", 1)), `docs/walk.md:8: there is no function "runner.gone"`)
	finds(t, check(strings.Replace(fine, "runner.judge ", "store/postgres/jobs.inTest ", 1)), "there is no function")
	finds(t, check(strings.Replace(fine, "· runner.judge ", "judges: runs ", 1)), `there is no function "judges: runs  judges"`)
	finds(t, check(strings.Replace(fine, "· runner.judge ", "pawl.Engine.Enqueue ", 1)), "pawl.Engine.Enqueue is drawn twice", "draws {steps:2 functions:3}")
	finds(t, check(strings.Replace(fine, "3 functions", "2 functions", 1)), "docs/walk.md:1: says {steps:1 functions:2} and draws {steps:1 functions:3}")
	finds(t, check(strings.Replace(strings.Replace(fine, "1 steps", "0 steps", 1), "  pawl", "  · pawl", 1)), "pawl.Engine.Enqueue has 4 statements, a step has more than 3")
	finds(t, check(strings.Replace(fine, "1 steps", "2 steps", 1)), "a job passes {steps:2 functions:3} on SQLite, want at most {steps:1 functions:3}", "says {steps:2")
	finds(t, check("## On SQLite: 1 steps, 4 functions\n```text\n  pawl.Engine.Enqueue\n  · store/commit.Committer.Do\n  · runner.judge\n  · store/postgres/jobs.Room.Purge\n```\n"), "a job passes {steps:1 functions:4} on SQLite, want at most {steps:1 functions:3}")
	finds(t, check(fine+strings.Replace(fine, "SQLite", "Redis", 1)), "there is no store Redis")
	finds(t, check("# The walk\n"), "docs/walk.md: no walk on SQLite")
}
