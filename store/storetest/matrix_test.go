package storetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md anew")

// matrix is docs/conformance.md as the suite and the declared features make it.
func matrix() string {
	var b strings.Builder
	b.WriteString("# Conformance: what every store is held against\n\n" +
		"Made from `store/storetest` by `go test ./store/storetest -run TestMatrix -update`; the same test fails when this page is out of step.\n" +
		"A cell is ✓ where the case runs, or names the feature that the setup does not declare (`store/storetest/features.go`).\n" +
		"Every case has a database of its own, which `Check` must find clean at the end. Beside these cases, every setup plays the random programs of `RunModel` and the history check of `RunLinear`.\n")
	for _, v := range suite() {
		fmt.Fprintf(&b, "\n## %s\n\n| case |", v.name)
		for _, s := range setups {
			fmt.Fprintf(&b, " %s |", s.Name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(setups)) + "\n")
		for _, c := range v.cases {
			fmt.Fprintf(&b, "| %s |", c.name)
			for _, s := range setups {
				cell := "✓"
				if missing := s.Features.missing(c.needs); missing != "" {
					cell = "needs " + missing
				}
				fmt.Fprintf(&b, " %s |", cell)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestMatrix_DocsAreInStep(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "conformance.md")
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
		t.Error("docs/conformance.md is out of step with the suite: go test ./store/storetest -run TestMatrix -update")
	}
}

func TestMatrix_NamesAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range suite() {
		for _, c := range v.cases {
			name := v.name + "/" + c.name
			if seen[name] {
				t.Errorf("two cases are called %s", name)
			}
			if strings.ContainsAny(c.name, " /") {
				t.Errorf("%s: go test could not be asked for it by name", name)
			}
			seen[name] = true
		}
	}
}

func TestMatrix_EveryCaseRunsSomewhere(t *testing.T) {
	for _, v := range suite() {
		for _, c := range v.cases {
			runs := false
			for _, s := range setups {
				runs = runs || s.Features.missing(c.needs) == ""
			}
			if !runs {
				t.Errorf("%s/%s runs on no declared setup", v.name, c.name)
			}
		}
	}
}
