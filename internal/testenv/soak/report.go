package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"time"
)

// report is everything that docs/soak.md says.
type report struct {
	when      time.Time
	took      time.Duration
	commit    string
	machine   string
	tests     tests
	testErr   error
	fuzzed    string
	fuzzedErr error
	breaks    string
	breaksErr error
}

func (r report) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Soak\n\nWritten by `make soak`; do not edit. %s, commit %s, %s, %v in all.\n\n",
		r.when.Format("2006-01-02 15:04 MST"), r.commit, r.machine, r.took.Round(time.Second))
	fmt.Fprintf(&b, "Result: **%s**\n\n## Long tests\n\n", r.verdict())
	r.writeTests(&b)
	if r.fuzzed != "" || r.fuzzedErr != nil {
		b.WriteString("\n## Fuzzing\n\n")
		writeBlock(&b, r.fuzzed)
	}
	b.WriteString("\n## Patches that must be caught\n\nEach breaks a promise on purpose; the test it names must fail.\n\n")
	writeBlock(&b, r.breaks)
	for _, t := range r.tests.ended {
		if len(t.logged) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n", t.name)
			writeBlock(&b, strings.Join(t.logged, "\n"))
		}
	}
	return b.Bytes()
}

func (r report) verdict() string {
	if r.testErr == nil && r.fuzzedErr == nil && r.breaksErr == nil {
		return "passed"
	}
	var faults []string
	for _, err := range []error{r.testErr, r.fuzzedErr, r.breaksErr} {
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	return "FAILED: " + strings.Join(faults, "; ")
}

func (r report) writeTests(b *bytes.Buffer) {
	if len(r.tests.ended) == 0 && len(r.tests.broken) == 0 {
		b.WriteString("There are none.\n")
		return
	}
	b.WriteString("| package | test | result | seconds |\n|---|---|---|--:|\n")
	for _, t := range r.tests.ended {
		fmt.Fprintf(b, "| %s | %s | %s | %.1f |\n", path.Base(t.pkg), t.name, t.result, t.seconds)
	}
	for _, pkg := range r.tests.broken {
		fmt.Fprintf(b, "| %s | the package as a whole | fail | |\n", path.Base(pkg))
	}
}

func writeBlock(b *bytes.Buffer, text string) {
	fmt.Fprintf(b, "```\n%s\n```\n", strings.TrimRight(text, "\n"))
}
