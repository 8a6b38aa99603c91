package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostWalked is how many functions of ours one plain job may pass on a store: a person who follows it has to read them all.
//
// The aim is 70 on SQLite and 90 on Postgres. These are the numbers that internal/tools/walk measured last,
// so that the walk does not grow unseen on its way there.
var mostWalked = map[string]int{"SQLite": 228, "Postgres": 273}

var (
	walkHeading = regexp.MustCompile(`^## On (\w+): (\d+) functions$`)
	walkLine    = regexp.MustCompile(`^ +([\w/]+(?:\.\w+){1,2})(?:  .*)?$`)
)

// checkWalk holds docs/walk.md against the functions of the tree. The page says how many it draws for each store, draws as
// many, each once, and no more than may be.
func checkWalk(page file, functions map[string]bool, most map[string]int) (findings []string) {
	drawn := map[string]bool{}
	store, at, said, open := "", "", 0, false
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
			said, _ = strconv.Atoi(m[2])
			clear(drawn)
			delete(missing, store)
			if limit, known := most[store]; !known {
				add("there is no store %s", store)
			} else if said > limit {
				add("a job passes %d functions on %s, want at most %d", said, store, limit)
			}
		case strings.HasPrefix(line, "```"):
			if open = !open; !open && len(drawn) != said {
				findings = append(findings, fmt.Sprintf("%s: says %d functions and draws %d", at, said, len(drawn)))
			}
		case open && strings.HasPrefix(line, " "):
			name := ""
			if m := walkLine.FindStringSubmatch(line); m != nil {
				name = m[1]
			}
			switch {
			case !functions[name]:
				add("there is no function %q", readable(name, line))
			case drawn[name]:
				add("%s is drawn twice", name)
			}
			drawn[name] = true
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

// walkNames are the functions of a file as internal/tools/walk writes them: the package's folder without those that only say
// who may import it, the receiver's type, the name.
func walkNames(f file) (names []string) {
	place := strings.ReplaceAll("/"+f.dir(), "/internal/", "/")[1:]
	if place == "." {
		place = "pawl"
	}
	for _, d := range f.syntax.Decls {
		if decl, ok := d.(*ast.FuncDecl); ok && !f.test() {
			names = append(names, place+"."+receiverDot(decl)+decl.Name.Name)
		}
	}
	return names
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
	functions := map[string]bool{}
	var page file
	for _, f := range tree(t) {
		if f.path == "docs/walk.md" {
			page = f
		}
		if f.syntax != nil {
			for _, name := range walkNames(f) {
				functions[name] = true
			}
		}
	}
	findings := checkWalk(page, functions, mostWalked)
	for _, finding := range findings {
		t.Error(finding)
	}
	if len(findings) > 0 {
		t.Log("after a change of the code: go run ./internal/testenv -- go run ./internal/tools/walk")
	}
}

func TestWalk_RuleCatches(t *testing.T) {
	functions := map[string]bool{}
	for path, text := range map[string]string{
		"engine.go":                              "package pawl\nfunc (e *Engine) Enqueue() {}\n",
		"internal/runner/x.go":                   "package runner\nfunc judge() {}\n",
		"store/internal/commit/x.go":             "package commit\nfunc (m *Committer[C]) Do() {}\n",
		"store/postgres/internal/jobs/x.go":      "package jobs\nfunc (Room) Purge() {}\n",
		"store/postgres/internal/jobs/x_test.go": "package jobs\nfunc inTest() {}\n",
	} {
		for _, name := range walkNames(mustParse(t, path, text)) {
			functions[name] = true
		}
	}
	most := map[string]int{"SQLite": 3}
	check := func(text string) []string { return checkWalk(mustParse(t, "docs/walk.md", text), functions, most) }
	const fine = "## On SQLite: 3 functions\n```text\nenqueue\n  pawl.Engine.Enqueue  hands in\n    store/commit.Committer.Do\n\nrun\n  runner.judge  judges\n```\n"
	finds(t, check(fine))
	finds(t, check(strings.Replace(fine, "runner.judge ", "runner.gone ", 1)), `docs/walk.md:8: there is no function "runner.gone"`)
	finds(t, check(strings.Replace(fine, "runner.judge ", "store/postgres/jobs.inTest ", 1)), "there is no function")
	finds(t, check(strings.Replace(fine, "runner.judge ", "judges: runs ", 1)), `there is no function "judges: runs  judges"`)
	finds(t, check(strings.Replace(fine, "runner.judge ", "pawl.Engine.Enqueue ", 1)), "pawl.Engine.Enqueue is drawn twice", "docs/walk.md:1: says 3 functions and draws 2")
	finds(t, check(strings.Replace(fine, "3", "2", 1)), "docs/walk.md:1: says 2 functions and draws 3")
	finds(t, check("## On SQLite: 4 functions\n```text\n  pawl.Engine.Enqueue\n  store/commit.Committer.Do\n  runner.judge\n  store/postgres/jobs.Room.Purge\n```\n"), "a job passes 4 functions on SQLite, want at most 3")
	finds(t, check(fine+strings.Replace(fine, "SQLite", "Redis", 1)), "there is no store Redis")
	finds(t, check("# The walk\n"), "docs/walk.md: no walk on SQLite")
}
