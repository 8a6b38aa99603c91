package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is what the report needs of a line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// test is one top-level test that ended.
type test struct {
	pkg, name, result string // result: pass, fail or skip
	seconds           float64
	logged            []string // what it and its subtests logged
}

// tests are all that ran, in the order of their ends.
type tests struct {
	ended  []test
	broken []string // packages that failed without a failed test: they did not compile, or ran into the timeout
	logs   map[string][]string
}

// read takes events until they end and shows their output to the person who waits.
func (ts *tests) read(events io.Reader, console io.Writer) error {
	ts.logs = map[string][]string{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil { // not an event, but something a program said
				fmt.Fprintf(console, "%s", line)
			} else {
				fmt.Fprint(console, e.Output)
				ts.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (ts *tests) take(e event) {
	top, _, isSubtest := strings.Cut(e.Test, "/")
	key := e.Package + " " + top
	switch e.Action {
	case "output":
		if text, ok := logged(e.Output); ok && e.Test != "" {
			ts.logs[key] = append(ts.logs[key], text)
		}
	case "pass", "fail", "skip":
		if isSubtest {
			return
		}
		if e.Test != "" {
			ts.ended = append(ts.ended, test{e.Package, e.Test, e.Action, e.Elapsed, ts.logs[key]})
			delete(ts.logs, key)
		} else if e.Action == "fail" && !ts.failedIn(e.Package) {
			ts.broken = append(ts.broken, e.Package)
		}
	}
}

func (ts *tests) failedIn(pkg string) bool {
	for _, t := range ts.ended {
		if t.pkg == pkg && t.result == "fail" {
			return true
		}
	}
	return false
}

var logLine = regexp.MustCompile(`^\s+(?:\S+\.go:\d+: )(.*)$`)

// logged is the text of a line that t.Log wrote: set in, behind the file's name, or set in further as a continuation.
func logged(output string) (string, bool) {
	output = strings.TrimRight(output, "\n")
	if m := logLine.FindStringSubmatch(output); m != nil {
		return m[1], true
	}
	const continuation = "        "
	if strings.HasPrefix(output, continuation) && !strings.HasPrefix(strings.TrimSpace(output), "--- ") {
		return strings.TrimPrefix(output, continuation), true
	}
	return "", false
}
