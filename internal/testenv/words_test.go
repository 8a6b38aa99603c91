package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParse_NamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "no command given"},
		{"-suites postgres", "no command given"},
		{"-suites postgres,oracle -- true", `-suites: "oracle" is unknown, want some of nats,postgres,redis,pgbouncer,faketime,python3,browser`},
		{"-suites  -- true", "is unknown"},
	} {
		_, err := parse(strings.Split(c.args, " "), io.Discard)
		if c.args == "" {
			_, err = parse(nil, io.Discard)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parse(%q): %v, want %q", c.args, err, c.want)
		}
	}
}

func TestParse_InstallsWhatTheSuitesNeed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--", "true"}, []string{"postgresql", "redis-server", "pgbouncer", "faketime", "python3", "chromium"}},
		{[]string{"-suites", "browser,nats,browser", "--", "true"}, []string{"chromium"}},
	} {
		opts, err := parse(c.args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := packageNames(toolsOf(opts.suites)); !slices.Equal(got, c.want) {
			t.Errorf("parse(%q) asks for %q, want %q", c.args, got, c.want)
		}
	}
}

func TestFind_TakesTheNewestVersion(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9", "15", "13"} {
		if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "pawl-no-such-program"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A newer one that cannot be run is none.
	if err := os.MkdirAll(filepath.Join(dir, "16"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "16", "pawl-no-such-program"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	row := tool{program: "pawl-no-such-program", folders: []string{filepath.Join(dir, "*")}}
	if got := row.find(); filepath.Base(filepath.Dir(got)) != "15" {
		t.Errorf("found %q, want that of version 15", got)
	}
	row.folders = nil
	if got := row.find(); got != "" {
		t.Errorf("found %q, want nothing", got)
	}
}

func TestSwitches_ArePutBack(t *testing.T) {
	dir := t.TempDir()
	s := switches{services: filepath.Join(dir, "policy-rc.d"), cluster: filepath.Join(dir, "createcluster.conf")}
	const before = "#create_main_cluster = true\n"
	if err := os.WriteFile(s.cluster, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.forbidServices(); err != nil {
		t.Fatal(err)
	}
	if err := s.forbidCluster(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.services); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("no program that forbids services: %v, %v", info, err)
	}
	if text, _ := os.ReadFile(s.cluster); !strings.Contains(string(text), "\ncreate_main_cluster = false\n") {
		t.Errorf("clusters are not forbidden: %q", text)
	}
	s.undo()
	s.undo()
	if _, err := os.Stat(s.services); !os.IsNotExist(err) {
		t.Errorf("the policy stays: %v", err)
	}
	if text, _ := os.ReadFile(s.cluster); string(text) != before {
		t.Errorf("the settings are %q, want %q", text, before)
	}
}

// An administrator's own policy is neither changed nor removed.
func TestSwitches_KeepAnotherPolicy(t *testing.T) {
	s := switches{services: filepath.Join(t.TempDir(), "policy-rc.d")}
	const theirs = "#!/bin/sh\nexit 101\n"
	if err := os.WriteFile(s.services, []byte(theirs), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.forbidServices(); err != nil {
		t.Fatal(err)
	}
	s.undo()
	if text, err := os.ReadFile(s.services); err != nil || string(text) != theirs {
		t.Errorf("the policy is %q, %v", text, err)
	}
}

func TestSummary_CountsPackages(t *testing.T) {
	var got packages
	for _, line := range strings.SplitAfter("ok  \ta/b\t0.1s\nok  \ta/c\t(cached)\n?   \ta/d\t[no test files]\n"+
		"--- FAIL: TestX (0.00s)\nFAIL\nFAIL\ta/e\t0.2s\nokay then\nFAIL\n", "\n") {
		got.count(line)
	}
	if want := (packages{ok: 2, cached: 1, failed: 1, empty: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestSummary_TellsSuitesThatNoTestAskedFor(t *testing.T) {
	const ledger = "postgres\tx/store/postgres\tTestA\npostgres\tx/store/postgres\tTestA\npostgres\tx/bench\tTestA\n" +
		"pgbouncer\tx/store/postgres\tTestB\nchromium\tx/webui\tTestC\nspoiled line\n"
	for _, c := range []struct{ suite, want string }{
		{"postgres", "2 tests, in postgres, bench"},
		{"pgbouncer", "1 test, in postgres"},
		{"browser", "1 test, in webui"},
		{"redis", "no test asked for it"},
	} {
		if got := asked(ledger, c.suite, tools); got != c.want {
			t.Errorf("asked(%q) = %q, want %q", c.suite, got, c.want)
		}
	}
}
