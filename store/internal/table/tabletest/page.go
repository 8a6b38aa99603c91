package tabletest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store/internal/table"
)

// The marks between which a page has its list.
const (
	pageBegins = "<!-- tables: made from the list, do not edit -->\n"
	pageEnds   = "<!-- end of tables -->"
)

// Page is the list as a table of a page.
func Page(list []table.Table) string {
	var page strings.Builder
	page.WriteString("| table | key | users' bytes | belongs to | goes by itself |\n|---|---|---|---|---|\n")
	for _, t := range list {
		goes := t.Expiry.Own
		if goes == "" && t.Expiry.Column != "" {
			goes = "`" + t.Expiry.Column + "` is over"
		}
		key := code(t.Key)
		if t.Shared {
			key += "; of the whole database"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", t.Name, key, code(t.Users), code(t.Parent.Tables), goes)
	}
	return page.String()
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

// ComparePage fails when the page at a path does not have the list; update writes
// it there instead.
func ComparePage(t *testing.T, path string, list []table.Table, update bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegins)
	made, after, ended := strings.Cut(rest, pageEnds)
	if !ok || !ended {
		t.Fatalf("%s has no place for the list: %q and %q", path, pageBegins, pageEnds)
	}
	want := "\n" + Page(list) + "\n"
	if made == want {
		return
	}
	if !update {
		t.Fatalf("%s is out of step with the list of tables: run this test with -update", path)
	}
	if err := os.WriteFile(path, []byte(before+pageBegins+want+pageEnds+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
