package streamtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance_streams.md anew")

// backends are those that run the suite.
var backends = []string{
	"memory", "memory with leases",
	"sqlite file", "sqlite memory", "sqlite two processes", "sqlite spaces",
	"postgres", "postgres behind a pooler", "postgres only the user's pool", "postgres spaces",
}

// matrix is docs/conformance_streams.md as the suite makes it.
func matrix() string {
	var b strings.Builder
	b.WriteString("# Conformance: what every backend of streams is held against\n\n" +
		"Made from `stream/streamtest` by `go test ./stream/streamtest -run TestMatrix -update`; the same test fails when this page is out of step.\n" +
		"A case that needs a feature which a backend does not declare sees to it that this is refused by name.\n")
	for _, t := range suite() {
		fmt.Fprintf(&b, "\n## %s\n\n| case | %s |\n|---|%s\n", t.name, strings.Join(backends, " | "), strings.Repeat("---|", len(backends)))
		for _, c := range t.cases {
			fmt.Fprintf(&b, "| %s |%s\n", c.name, strings.Repeat(" ✓ |", len(backends)))
		}
	}
	return b.String()
}

func TestMatrix_DocsAreInStep(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "conformance_streams.md")
	want := matrix()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/conformance_streams.md is out of step with the suite: go test ./stream/streamtest -run TestMatrix -update")
	}
}

func TestMatrix_NamesAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range suite() {
		for _, c := range g.cases {
			if name := g.name + "/" + c.name; seen[name] {
				t.Errorf("two cases are called %s", name)
			} else {
				seen[name] = true
			}
		}
	}
}
