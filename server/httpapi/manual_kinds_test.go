package httpapi

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page names every kind of problem, with its statuses, and no other.
func TestU2_TheManualNamesEveryKindOfProblem(t *testing.T) {
	statuses := map[string][]int{"internal": {500}}
	add := func(kind string, status int) {
		if !slices.Contains(statuses[kind], status) {
			statuses[kind] = append(statuses[kind], status)
		}
	}
	for _, k := range kinds {
		add(k.kind, k.status)
	}
	for status, kind := range byStatus {
		add(kind, status)
	}
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9, ]+) \\|").FindAllStringSubmatch(string(page), -1) {
		said[row[1]] = row[2]
	}
	for kind, list := range statuses {
		slices.Sort(list)
		want := strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
		if said[kind] != want {
			t.Errorf("%s: the page says %q, want %s", kind, said[kind], want)
		}
		delete(said, kind)
	}
	for kind := range said {
		t.Errorf("%s: there is no such kind", kind)
	}
	if names := kindNames(); len(names) != len(statuses) {
		t.Errorf("the document has %d kinds, the table %d", len(names), len(statuses))
	}
}
