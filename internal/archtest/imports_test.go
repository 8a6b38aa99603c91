package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// A listing is what the rules need of one package of `go list -json`. Imports and Deps leave test files out.
type listing struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// listPackages asks the go command for the root module's packages. It does not guess from the files, because build
// constraints and the modules nested in the tree decide what is really linked.
func listPackages(root string) ([]listing, error) {
	command := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	command.Dir = root
	var problem bytes.Buffer
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, problem.String())
	}
	var packages []listing
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listing
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// checkImports holds one package against the table.
func checkImports(table []layer, p listing) []string {
	here := place(p.ImportPath)
	line, ok := layerOf(table, here)
	if !ok {
		return []string{fmt.Sprintf("%s is in no layer: say in layers_test.go where it belongs", here)}
	}
	var findings []string
	for _, path := range p.Imports {
		there := place(path)
		ours := there != path
		if (ours || !standard(path)) && !fitsAny(line.may, there) {
			findings = append(findings, fmt.Sprintf("%s (%s) imports %s, which its layer may not", here, line.is, there))
		}
	}
	for _, path := range p.Deps {
		if there := place(path); there != here && fitsAny(line.never, there) {
			findings = append(findings, fmt.Sprintf("%s (%s) links %s, which it must never", here, line.is, there))
		}
	}
	return findings
}

func TestImports_PointDownThePicture(t *testing.T) {
	root, err := top()
	if err != nil {
		t.Fatal(err)
	}
	tree(t) // so that a cached verdict is dropped when the source changes
	packages, err := listPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatal("go list names no package: the rule would hold for want of anything to read")
	}
	for _, p := range packages {
		for _, finding := range checkImports(layers, p) {
			t.Error(finding)
		}
	}
}

func TestImports_TableNamesOnlyItsOwnPlaces(t *testing.T) {
	for _, line := range layers {
		if line.is == "" {
			t.Errorf("%s: the table does not say what it is", line.at)
		}
		for _, name := range line.may {
			stem := strings.TrimSuffix(name, "/...")
			if !standard(stem) && stem != "." {
				continue // another module
			}
			if _, ok := layerOf(layers, stem); !ok {
				t.Errorf("%s may import %s, which is in no layer: a slip of the pen allows nothing", line.at, name)
			}
			if fitsAny(line.never, stem) {
				t.Errorf("%s both may and must never import %s", line.at, name)
			}
		}
	}
}

// The designed sins, each in the form go list reports it.
func TestImports_RuleCatches(t *testing.T) {
	ours := func(below string) string { return modulePath + "/" + below }
	for _, c := range []struct {
		name string
		p    listing
		want []string
	}{
		{
			name: "a facade with a driver in it",
			p:    listing{ImportPath: modulePath, Imports: []string{"context", ours("store/sqlite")}, Deps: []string{ours("store/sqlite"), "github.com/ncruces/go-sqlite3"}},
			want: []string{"imports store/sqlite", "links store/sqlite", "links github.com/ncruces/go-sqlite3"},
		},
		{
			name: "a facade that gets its driver by a detour",
			p:    listing{ImportPath: modulePath, Imports: []string{ours("internal/runner")}, Deps: []string{ours("internal/runner"), "github.com/jackc/pgx/v5/pgconn"}},
			want: []string{"links github.com/jackc/pgx/v5/pgconn"},
		},
		{
			name: "a built-in kind in everybody's program",
			p:    listing{ImportPath: ours("pawltest"), Imports: []string{ours("kinds/webhook")}, Deps: []string{ours("kinds/webhook"), "net/http"}},
			want: []string{"imports kinds/webhook"},
		},
		{
			name: "a built-in kind that brings a driver",
			p:    listing{ImportPath: ours("kinds/demo"), Imports: []string{modulePath, ours("store/sqlite")}, Deps: []string{modulePath, ours("store/sqlite")}},
			want: []string{"imports store/sqlite", "links store/sqlite"},
		},
		{
			name: "SQL in the domain",
			p:    listing{ImportPath: ours("job"), Imports: []string{"database/sql"}, Deps: []string{"database/sql"}},
			want: []string{"job (jobs: vocabulary and pure rules) links database/sql"},
		},
		{
			name: "HTTP in the domain, by a detour",
			p:    listing{ImportPath: ours("flow"), Imports: []string{ours("job")}, Deps: []string{ours("job"), "net/http"}},
			want: []string{"links net/http"},
		},
		{
			name: "rules that know their store",
			p:    listing{ImportPath: ours("stream"), Imports: []string{ours("store")}, Deps: []string{ours("store")}},
			want: []string{"imports store", "links store"},
		},
		{
			name: "a store that knows a loop",
			p:    listing{ImportPath: ours("store/postgres"), Imports: []string{modulePath, ours("internal/keeper")}, Deps: []string{modulePath, ours("internal/keeper")}},
			want: []string{"imports internal/keeper"},
		},
		{
			name: "a store that brings the other's driver",
			p:    listing{ImportPath: ours("store/sqlite"), Imports: []string{ours("store")}, Deps: []string{"github.com/jackc/pgx/v5"}},
			want: []string{"links github.com/jackc/pgx/v5"},
		},
		{
			name: "a group commit that knows what it commits",
			p:    listing{ImportPath: ours("store/internal/commit"), Imports: []string{ours("job"), ours("store/sqlite")}, Deps: []string{ours("job"), ours("store/sqlite"), "database/sql"}},
			want: []string{"imports job", "imports store/sqlite", "links job", "links store/sqlite", "links database/sql"},
		},
		{
			name: "a room that knows a later one",
			p:    listing{ImportPath: ours("store/sqlite/internal/workers"), Imports: []string{ours("store/sqlite/internal/settings"), ours("store/sqlite/internal/jobs")}},
			want: []string{"imports store/sqlite/internal/jobs"},
		},
		{
			name: "a database's own package that knows a room",
			p:    listing{ImportPath: ours("store/sqlite/internal/lite"), Imports: []string{ours("store/sqlite/internal/hints")}},
			want: []string{"imports store/sqlite/internal/hints"},
		},
		{
			name: "a loop that knows the facade",
			p:    listing{ImportPath: ours("internal/runner"), Imports: []string{modulePath}, Deps: []string{modulePath}},
			want: []string{"imports .", "links ."},
		},
		{
			name: "a suite that knows one store",
			p:    listing{ImportPath: ours("store/storetest"), Imports: []string{ours("store/sqlite")}, Deps: []string{ours("store/sqlite")}},
			want: []string{"imports store/sqlite", "links store/sqlite"},
		},
		{
			name: "a free-standing package with a dependency",
			p:    listing{ImportPath: ours("batch"), Imports: []string{"golang.org/x/sync/errgroup"}, Deps: []string{"golang.org/x/sync/errgroup"}},
			want: []string{"imports golang.org/x/sync/errgroup"},
		},
		{
			name: "a free-standing package that leans on its neighbour",
			p:    listing{ImportPath: ours("supervise"), Imports: []string{ours("batch")}, Deps: []string{ours("batch")}},
			want: []string{"imports batch"},
		},
		{
			name: "a testing library in shipped code",
			p:    listing{ImportPath: ours("internal/wake"), Imports: []string{"pgregory.net/rapid"}, Deps: []string{"pgregory.net/rapid"}},
			want: []string{"imports pgregory.net/rapid"},
		},
		{
			name: "a package that nobody has placed",
			p:    listing{ImportPath: ours("internal/queue")},
			want: []string{"internal/queue is in no layer"},
		},
		{
			name: "what is allowed",
			p:    listing{ImportPath: ours("store/sqlite"), Imports: []string{"database/sql", modulePath, ours("store"), "github.com/ncruces/go-sqlite3/driver"}, Deps: []string{ours("internal/runner"), "net/http"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) { finds(t, checkImports(layers, c.p), c.want...) })
	}
}
