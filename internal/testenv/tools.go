package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tool is a program that a suite of tests needs, and the Debian package that brings it.
type tool struct {
	suite   string
	program string
	pkg     string
	folders []string // where it may be beside PATH, as patterns; the last match wins, which is the newest version
}

// tools is the one table of what tests may ask for. NATS is missing since it runs inside this program.
var tools = []tool{
	{suite: "postgres", program: "postgres", pkg: "postgresql", folders: []string{"/usr/lib/postgresql/*/bin"}},
	{suite: "redis", program: "redis-server", pkg: "redis-server"},
	{suite: "pgbouncer", program: "pgbouncer", pkg: "pgbouncer", folders: []string{"/usr/sbin"}},
	{suite: "faketime", program: "faketime", pkg: "faketime"},
	{suite: "python3", program: "python3", pkg: "python3"},
	{suite: "browser", program: "chromium", pkg: "chromium"},
}

// usual are the suites of a run that names none.
const usual = "postgres,redis,nats,pgbouncer,faketime,python3,browser"

// parseSuites splits and checks the value of the flag -suites.
func parseSuites(text string) ([]string, error) {
	known := []string{"nats"}
	for _, t := range tools {
		known = append(known, t.suite)
	}
	var suites []string
	for suite := range strings.SplitSeq(text, ",") {
		if !slices.Contains(known, suite) {
			return nil, fmt.Errorf("-suites: %q is unknown, want some of %s", suite, strings.Join(known, ","))
		}
		if !slices.Contains(suites, suite) {
			suites = append(suites, suite)
		}
	}
	return suites, nil
}

// toolsOf are the rows of the table for these suites.
func toolsOf(suites []string) []tool {
	var rows []tool
	for _, t := range tools {
		if slices.Contains(suites, t.suite) {
			rows = append(rows, t)
		}
	}
	return rows
}

// find is the tool's path with links resolved (Postgres looks for its parts beside itself), or "" if it is missing.
func (t tool) find() string {
	path, err := exec.LookPath(t.program)
	if err != nil {
		for _, pattern := range t.folders {
			matches, _ := filepath.Glob(filepath.Join(pattern, t.program))
			slices.SortFunc(matches, func(a, b string) int {
				if len(a) != len(b) { // 9 before 15
					return len(a) - len(b)
				}
				return strings.Compare(a, b)
			})
			for _, match := range matches {
				if info, err := os.Stat(match); err == nil && info.Mode()&0o111 != 0 {
					path = match
				}
			}
		}
	}
	if path == "" {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(resolved) == t.program {
		return resolved
	}
	return path
}

// missing are the tools that are not there.
func missing(rows []tool) []tool {
	return slices.DeleteFunc(slices.Clone(rows), func(t tool) bool { return t.find() != "" })
}

// packageNames are the names to install for these tools.
func packageNames(rows []tool) []string {
	var names []string
	for _, t := range rows {
		names = append(names, t.pkg)
	}
	return names
}
