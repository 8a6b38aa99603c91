package breaks

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable prints one line for each result, then what the commands said about each that is not good, cut to its
// last lines.
func WriteTable(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "breaks\tpatch\ttest\tverdict")
	caught := 0
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", strings.Join(r.Patch.Breaks, ","), r.Patch.Name, r.Patch.Test, r.Verdict)
		if r.Verdict == Caught {
			caught++
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Verdict != Caught {
			fmt.Fprintf(w, "\n%s: %s\n  why: %s\n%s", r.Patch.Name, r.Verdict, r.Patch.Why, indent(r.Detail, 40))
		}
	}
	_, err := fmt.Fprintf(w, "\n%d of %d patches caught\n", caught, len(results))
	return err
}

// indent sets the last lines of a text in from the margin.
func indent(text string, last int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-last):]
	return "  | " + strings.Join(lines, "\n  | ") + "\n"
}
