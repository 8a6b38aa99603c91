package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const events = `{"Action":"run","Package":"x/engine","Test":"TestSoak_Drain"}
{"Action":"output","Package":"x/engine","Test":"TestSoak_Drain","Output":"=== RUN   TestSoak_Drain\n"}
{"Action":"output","Package":"x/engine","Test":"TestSoak_Drain/sqlite","Output":"    drain_test.go:12: 20000 jobs\n"}
{"Action":"output","Package":"x/engine","Test":"TestSoak_Drain/sqlite","Output":"        101 kills\n"}
{"Action":"output","Package":"x/engine","Test":"TestSoak_Drain/sqlite","Output":"    --- PASS: TestSoak_Drain/sqlite (1.00s)\n"}
{"Action":"pass","Package":"x/engine","Test":"TestSoak_Drain/sqlite","Elapsed":1}
{"Action":"pass","Package":"x/engine","Test":"TestSoak_Drain","Elapsed":12.34}
not an event
{"Action":"fail","Package":"x/engine","Test":"TestFault_Kill","Elapsed":2}
{"Action":"fail","Package":"x/engine","Elapsed":14}
{"Action":"output","Package":"x/store","Output":"FAIL\tx/store [build failed]\n"}
{"Action":"fail","Package":"x/store","Elapsed":0}
`

func TestReport_HoldsEveryResult(t *testing.T) {
	var ts tests
	var console strings.Builder
	if err := ts.read(strings.NewReader(events), &console); err != nil {
		t.Fatal(err)
	}
	if got := console.String(); !strings.Contains(got, "20000 jobs") || !strings.Contains(got, "not an event") {
		t.Errorf("the console shows %q", got)
	}
	r := report{
		when: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), took: 90 * time.Second, commit: "abc", machine: "go, 2 CPUs",
		tests: ts, testErr: errors.New("go test: exit status 1"), fuzzed: "FuzzDraft 20s\n", breaks: "9 of 9 patches caught\n",
	}
	const want = "# Soak\n\nWritten by `make soak`; do not edit. 2030-01-02 03:04 UTC, commit abc, go, 2 CPUs, 1m30s in all.\n\n" +
		"Result: **FAILED: go test: exit status 1**\n\n" +
		"## Long tests\n\n| package | test | result | seconds |\n|---|---|---|--:|\n" +
		"| engine | TestSoak_Drain | pass | 12.3 |\n| engine | TestFault_Kill | fail | 2.0 |\n" +
		"| store | the package as a whole | fail | |\n" +
		"\n## Fuzzing\n\n```\nFuzzDraft 20s\n```\n" +
		"\n## Patches that must be caught\n\nEach breaks a promise on purpose; the test it names must fail.\n\n```\n9 of 9 patches caught\n```\n" +
		"\n## TestSoak_Drain\n\n```\n20000 jobs\n101 kills\n```\n"
	if got := string(r.markdown()); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
}

func TestReport_SaysThatNothingRan(t *testing.T) {
	got := string(report{}.markdown())
	if !strings.Contains(got, "There are none.") || !strings.Contains(got, "**passed**") {
		t.Errorf("report:\n%s", got)
	}
	got = string(report{fuzzedErr: errors.New("internal/testenv/fuzz: exit status 1")}.markdown())
	if !strings.Contains(got, "**FAILED: internal/testenv/fuzz: exit status 1**") {
		t.Errorf("report:\n%s", got)
	}
	got = string(report{breaksErr: errors.New("internal/breaks: 1 of 9 patches were not caught")}.markdown())
	if !strings.Contains(got, "**FAILED: internal/breaks: 1 of 9 patches were not caught**") {
		t.Errorf("report:\n%s", got)
	}
}
