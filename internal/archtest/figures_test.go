package archtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A figure on the README's first screen was measured. A row of a table there that names a work of the benchmark
// (`postgres-drain-100`) in its first cell has, in the others, only figures that one row of docs/performance.md has for
// that work.
func checkFigures(readme, measured file) []string {
	var findings []string
	for i, line := range strings.Split(string(readme.text), "\n") {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) < 3 || cells[0] != "" {
			continue
		}
		work := benchWork.FindString(cells[1])
		if work == "" {
			continue
		}
		known := false
		for row := range strings.SplitSeq(string(measured.text), "\n") {
			known = known || strings.HasPrefix(row, "| "+work) && hasAll(row, cells[2], work)
		}
		if !known {
			findings = append(findings, fmt.Sprintf("%s:%d: no row of %s for %s has these figures", readme.path, i+1, measured.path, work))
		}
	}
	return findings
}

var (
	benchWork = regexp.MustCompile("`[a-z]+-[a-z0-9-]+`")
	figure    = regexp.MustCompile(`\d[\d,.]*\d|\d`)
)

// hasAll reports whether a row has all figures of a text. Those in the name of the work do not count.
func hasAll(row, text, work string) bool {
	has := figure.FindAllString(strings.ReplaceAll(row, work, ""), -1)
	for _, f := range figure.FindAllString(text, -1) {
		if !slices.Contains(has, f) {
			return false
		}
	}
	return true
}

func TestU14_FiguresOfTheReadmeWereMeasured(t *testing.T) {
	var readme, measured file
	for _, f := range tree(t) {
		switch f.path {
		case "README.md":
			readme = f
		case "docs/performance.md":
			measured = f
		}
	}
	if rows := benchWork.FindAllString(string(readme.text), -1); len(rows) < 3 {
		t.Errorf("README.md names only %d works of the benchmark", len(rows))
	}
	for _, finding := range checkFigures(readme, measured) {
		t.Error(finding)
	}
}

func TestU14_RuleOfFiguresCatches(t *testing.T) {
	measured := mustParse(t, "docs/performance.md", "| `postgres-drain-100`, per s | **29,542** (24,930–31,936) | 8,312 | **3.6** |\n| `postgres-idle`, ms | 1.99 |\n")
	page := func(text string) file { return mustParse(t, "README.md", text) }
	finds(t, checkFigures(page("| in 7 slots (`postgres-drain-100`) | 29,542 | 8,312 | 3.6 × |\n| other | 7 |\ntext `postgres-drain-100` 9\n"), measured))
	finds(t, checkFigures(page("\n| drained, `postgres-drain-100` | 29,543 | 8,312 | 3.6 × |\n"), measured), "README.md:2: no row of docs/performance.md for `postgres-drain-100`")
	finds(t, checkFigures(page("| drained, `postgres-drain-100` | 1.99 |\n"), measured), "no row")
	finds(t, checkFigures(page("| gone, `postgres-gone` | 1 |\n"), measured), "no row")
}
