package main

import (
	"fmt"
	"strings"
)

// walk is what was drawn of one store.
type walk struct {
	store string
	*drawing
}

// page writes docs/walk.md. internal/archtest/walk_test.go reads it.
func page(walks []walk, windows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# The walk of one job

Every function of ours that one plain job passes from %[1]sEnqueue%[1]s to purge, in the order of its life. A plain job has no
options, and a handler that returns nil at once; the engine has one queue with one worker and has done jobs before. It has a free
slot for the job, so the job is handed over and passes no claim ([ADR 0021](adr/0021-hand-over.md)).

It is measured: [internal/tools/walk](../internal/tools/walk) runs such jobs, one at a time, and counts what runs for each. The
page has what ran for nine of ten of %[2]d jobs on each store, so that what the engine does by the clock beside them (beats,
other rounds of upkeep) is not taken for theirs. Calls go down and to the right; a function stands where it comes first, once, also
when others call it later. What a function literal does counts for the function it is written in. The words are the beginning
of each function's comment.

A step of the walk is a function that has more than three statements, those inside of others counted: a person who wants to know
what happens to a job has to stop and read it. A shorter one passes on, reads or sets something, is read where it is called, and
has a dot before its name. The aim is at most 70 on SQLite and 90 on Postgres; it is not reached, also not by steps alone.
[ADR 0011](adr/0011-counting-the-walk.md) has the numbers before and after, and why they are not lower. Make the page anew with

    go run ./internal/testenv -- go run ./internal/tools/walk
`, "`", windows)
	for _, w := range walks {
		fmt.Fprintf(&b, "\n## On %s: %d steps, %d functions\n\n```text\n", w.store, w.steps(), len(w.ran))
		for i, p := range phases {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintln(&b, p.name)
			for _, l := range w.lines[p.name] {
				text := strings.Repeat("  ", l.depth+1)
				if !l.fn.step() {
					text += "· "
				}
				text += l.fn.name
				if l.fn.does != "" {
					text += "  " + l.fn.does
				}
				fmt.Fprintln(&b, text)
			}
		}
		b.WriteString("```\n")
	}
	return b.String()
}
