package breaks

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Verdict says what became of a patch. Only Caught is good.
type Verdict int

// The verdicts.
const (
	Caught     Verdict = iota // the named test failed, as it must
	Survived                  // the named test passed on broken code
	NotRun                    // the named test was skipped, or no such test ran
	NotApplied                // the patch does not fit the tree
	NotBuilt                  // the broken code or its test does not compile, or vet refuses it
	BrokenNow                 // the named test fails without the patch, so its failure would prove nothing
	Impossible                // the copy or the go command failed
)

func (v Verdict) String() string {
	return [...]string{"caught", "SURVIVED", "NOT RUN", "DOES NOT APPLY", "DOES NOT COMPILE", "FAILS WITHOUT THE PATCH", "COULD NOT RUN"}[v]
}

// An event is one line of go test -json.
type event struct{ Action, Test, Output string }

// An testResult is what one run of a test showed.
type testResult int

const (
	passed testResult = iota
	failed
	absent // skipped, or never started
)

// judge reads the output of go test -json for the one test of the given name, and its exit status.
//
// A package that fails although the test passed counts as a failure: the leak check of TestMain speaks only then.
// So does a test that began and never ended, since a panic in another goroutine or a timeout ends the process.
func judge(output []byte, name string, exitedClean bool) testResult {
	began, ended, seen := false, false, absent
	for line := range bytes.Lines(output) {
		var e event
		if json.Unmarshal(line, &e) != nil || e.Test != name {
			continue
		}
		switch e.Action {
		case "run":
			began = true
		case "pass":
			ended, seen = true, passed
		case "fail":
			ended, seen = true, failed
		case "skip":
			ended, seen = true, absent
		}
	}
	switch {
	case !began:
		return absent
	case !exitedClean && (!ended || seen == passed):
		return failed
	}
	return seen
}

// text is what people would have seen of go test -json: its output lines.
func text(output []byte) string {
	var b strings.Builder
	for line := range bytes.Lines(output) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			b.Write(line)
			continue
		}
		b.WriteString(e.Output)
	}
	return b.String()
}
