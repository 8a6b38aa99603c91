package archtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A number in the name of a test can be looked up. docs/checklist.md and docs/promises.md have one entry for each line of
// the checklist and each promise:
//
//	### S3 Restart policies       a heading: it is built, at least in part
//	- Not: a defect of others that is not repeated, with the test that shows it: `TestS3_UsedUpBudgetIsAnError`
//	- Later: what of the line is not built
//	- Tests: `TestS3_BoundedWindowSlides`, `unique/J4_FreeAfterDone` (a case of the conformance suite)
//	- J8 Throttling               a bullet: it is planned, and has no test
//
// Every letter counts from 1 to its last line without a gap. What is built names tests that exist, and every number that
// a test, a case of the suite or a patch of internal/breaks carries is of something built.

// lastLine is the highest number of each letter.
var lastLine = map[string]int{"P": 10, "S": 8, "B": 10, "J": 35, "E": 28, "F": 16, "U": 14}

var (
	builtLine   = regexp.MustCompile(`^##+ ([A-Z]\d+) \S`)
	plannedLine = regexp.MustCompile(`^- ([A-Z]\d+) \S`)
	witness     = regexp.MustCompile("`([^`]+)`")
	carried     = regexp.MustCompile(`^(?:Test)?(?:Fault_|Soak_)?([PSBJEFU]\d+(?:to[A-Z]\d+|_[PSBJEFU]\d+)*)_`)
	number      = regexp.MustCompile(`[A-Z]\d+`)
	suiteGroup  = regexp.MustCompile(`^## (\w+)$`)
	suiteCase   = regexp.MustCompile(`^\| (\w+) \|`)
	breaksLine  = regexp.MustCompile(`(?m)^# breaks: (.+)$`)
)

// entry is one line of the checklist as a page has it.
type entry struct {
	at        string
	built     bool
	witnesses []string // of its Not: and Tests: bullets
}

// readEntries reads the entries of a page; made has the tests of the tree and the cases of the suite.
func readEntries(page file, made map[string]bool, entries map[string]*entry) (findings []string) {
	var open *entry
	add := func(name, at string, built bool) *entry {
		if before := entries[name]; before != nil {
			findings = append(findings, fmt.Sprintf("%s: %s is at %s too", at, name, before.at))
		}
		entries[name] = &entry{at: at, built: built}
		return entries[name]
	}
	lines := strings.Split(string(page.text), "\n")
	for i, line := range lines {
		at := fmt.Sprintf("%s:%d", page.path, i+1)
		for _, more := range lines[i+1:] { // a bullet goes on in indented lines
			if !strings.HasPrefix(more, "  ") {
				break
			}
			line += more
		}
		switch {
		case builtLine.MatchString(line):
			open = add(builtLine.FindStringSubmatch(line)[1], at, true)
		case strings.HasPrefix(line, "#"):
			open = nil
		case plannedLine.MatchString(line):
			add(plannedLine.FindStringSubmatch(line)[1], at, false)
		case strings.HasPrefix(line, "- Not: "), strings.HasPrefix(line, "- Tests: "):
			names := witness.FindAllStringSubmatch(line, -1)
			if len(names) == 0 {
				findings = append(findings, at+": names no test")
			}
			for _, m := range names {
				if !made[m[1]] {
					findings = append(findings, fmt.Sprintf("%s: there is no %s", at, m[1]))
				}
				if open != nil {
					open.witnesses = append(open.witnesses, m[1])
				}
			}
		}
	}
	return findings
}

// checkEntries holds the entries against the numbers that are in use, each with a place where it is.
func checkEntries(entries map[string]*entry, used map[string]string) (findings []string) {
	for letter, last := range lastLine {
		for i := 1; i <= last; i++ {
			if entries[letter+strconv.Itoa(i)] == nil {
				findings = append(findings, fmt.Sprintf("%s%d has no entry", letter, i))
			}
		}
	}
	for name, e := range entries {
		if n, _ := strconv.Atoi(name[1:]); n < 1 || n > lastLine[name[:1]] {
			findings = append(findings, fmt.Sprintf("%s: the checklist has no %s", e.at, name))
		}
		if e.built && len(e.witnesses) == 0 {
			findings = append(findings, fmt.Sprintf("%s: %s is built and names no test", e.at, name))
		}
	}
	for name, by := range used {
		if e := entries[name]; e == nil {
			findings = append(findings, fmt.Sprintf("%s carries %s, which has no entry", by, name))
		} else if !e.built {
			findings = append(findings, fmt.Sprintf("%s carries %s, which is only planned at %s", by, name, e.at))
		}
	}
	slices.Sort(findings)
	return findings
}

// carries are the numbers in the name of a test or of a case.
func carries(name string) []string {
	if m := carried.FindStringSubmatch(name); m != nil {
		return number.FindAllString(m[1], -1)
	}
	return nil
}

// suiteCases are the cases of the conformance suite, as group/case, from the page that is made of it.
func suiteCases(page file) (cases []string) {
	group := ""
	for line := range strings.SplitSeq(string(page.text), "\n") {
		if m := suiteGroup.FindStringSubmatch(line); m != nil {
			group = m[1]
		} else if m := suiteCase.FindStringSubmatch(line); m != nil && m[1] != "case" {
			cases = append(cases, group+"/"+m[1])
		}
	}
	return cases
}

func TestU12_EveryNumberCanBeLookedUp(t *testing.T) {
	made, used, entries := map[string]bool{}, map[string]string{}, map[string]*entry{}
	for _, f := range tree(t) {
		switch {
		case f.syntax != nil:
			for _, m := range madeName.FindAllStringSubmatch(string(f.text), -1) {
				made[m[1]] = true
				for _, n := range carries(m[1]) {
					used[n] = m[1]
				}
			}
		case f.path == "docs/conformance.md" || f.path == "docs/conformance_streams.md":
			for _, name := range suiteCases(f) {
				made[name] = true
				_, short, _ := strings.Cut(name, "/")
				for _, n := range carries(short) {
					used[n] = name
				}
			}
		case f.dir() == "internal/breaks":
			if m := breaksLine.FindStringSubmatch(string(f.text)); m != nil {
				for _, n := range number.FindAllString(m[1], -1) {
					used[n] = f.path
				}
			}
		}
	}
	if len(used) < 40 {
		t.Fatalf("only %d numbers are in use", len(used))
	}
	for _, f := range tree(t) {
		if f.path == "docs/checklist.md" || f.path == "docs/promises.md" {
			for _, finding := range readEntries(f, made, entries) {
				t.Error(finding)
			}
		}
	}
	for _, finding := range checkEntries(entries, used) {
		t.Error(finding)
	}
}

func TestU12_RulesOfTheChecklistCatch(t *testing.T) {
	made := map[string]bool{"TestS1_X": true, "unique/J4_Y": true}
	read := func(text string) ([]string, map[string]*entry) {
		entries := map[string]*entry{}
		return readEntries(mustParse(t, "docs/checklist.md", text), made, entries), entries
	}
	findings, entries := read("### S1 Tree\nIt grows.\n- Not: a fall. `TestS1_X`\n- Tests: `TestS1_X`,\n  `unique/J4_Y`\n## Planned\n- J8 Throttling\n")
	finds(t, findings)
	if e := entries["S1"]; e == nil || !e.built || len(e.witnesses) != 3 || entries["J8"] == nil || entries["J8"].built {
		t.Errorf("read %+v", entries)
	}
	findings, _ = read("### S1 Tree\n- Not: a fall.\n- Tests: `TestS1_Gone`, `unique/J4_Gone`\n- S1 Tree\n")
	finds(t, findings, "checklist.md:2: names no test", "no TestS1_Gone", "no unique/J4_Gone", "checklist.md:4: S1 is at docs/checklist.md:1 too")

	whole := map[string]*entry{}
	for letter, last := range lastLine {
		for i := 1; i <= last; i++ {
			whole[letter+strconv.Itoa(i)] = &entry{built: true, witnesses: []string{"TestX"}}
		}
	}
	finds(t, checkEntries(whole, map[string]string{"S1": "TestS1_X"}))
	finds(t, checkEntries(whole, map[string]string{"S9": "TestS9_X"}), "TestS9_X carries S9, which has no entry")
	delete(whole, "F16")
	whole["J36"] = &entry{at: "page:1"}
	whole["J8"] = &entry{at: "page:2"}
	whole["P1"] = &entry{at: "page:3", built: true}
	finds(t, checkEntries(whole, map[string]string{"J8": "TestJ8_X"}),
		"F16 has no entry", "TestJ8_X carries J8, which is only planned at page:2", "page:1: the checklist has no J36", "page:3: P1 is built and names no test")

	for name, want := range map[string]string{
		"TestS3_X": "S3", "TestFault_P1_P2_P3_Promotion": "P1 P2 P3", "TestSoak_J12_X": "J12", "TestB1toB8_X": "B1 B8",
		"J6_X": "J6", "TestFault_Kill": "", "TestX_J1_Y": "", "TestP8": "",
	} {
		if got := strings.Join(carries(name), " "); got != want {
			t.Errorf("%s carries %q, want %q", name, got, want)
		}
	}
	cases := suiteCases(mustParse(t, "docs/conformance.md", "# Conformance\n## unique\n\n| case | a |\n|---|---|\n| J4_X | ✓ |\n"))
	if !slices.Equal(cases, []string{"unique/J4_X"}) {
		t.Errorf("cases %q", cases)
	}
}
