package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// packages counts what `go test` says of each package.
type packages struct{ ok, cached, failed, empty int }

// count reads one line of `go test`'s output. Lines of other commands match none of its forms.
func (p *packages) count(line string) {
	switch {
	case strings.HasPrefix(line, "ok  \t"):
		p.ok++
		if strings.Contains(line, "\t(cached)") {
			p.cached++
		}
	case strings.HasPrefix(line, "FAIL\t"):
		p.failed++
	case strings.HasPrefix(line, "?   \t"), strings.HasPrefix(line, "\t") && strings.Contains(line, "coverage:"):
		p.empty++
	}
}

// output passes the command's output on and counts packages as they go by.
type output struct {
	writer   *os.File // what the command writes to
	reader   *os.File
	done     chan struct{}
	packages packages // complete after close
}

func watchOutput() (*output, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{writer: writer, reader: reader, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer reader.Close() // so that the command, too, learns that nobody reads on
		lines := bufio.NewReader(io.TeeReader(reader, os.Stdout))
		for {
			line, err := lines.ReadString('\n')
			o.packages.count(line)
			if err != nil {
				return
			}
		}
	}()
	return o, nil
}

// outputGrace bounds the wait for a process that holds the command's output and could not be found to be ended.
const outputGrace = 30 * time.Second

// close waits until all that was written has been passed on.
func (o *output) close() {
	_ = o.writer.Close()
	select {
	case <-o.done:
	case <-time.After(outputGrace):
		say("something that the command started still holds its output")
	}
	_ = o.reader.Close()
	<-o.done
}

// summarise says which suites ran, by what tests asked for, not by what was offered: a suite that no test asked for
// must show.
func summarise(ledger string, suites []string, servers []server, rows []tool, p packages) {
	if p != (packages{}) {
		say("go packages: %d ok (%d cached), %d failed, %d without tests", p.ok, p.cached, p.failed, p.empty)
	}
	text, err := os.ReadFile(ledger)
	if err != nil {
		say("%v", err)
		return
	}
	versions := map[string]string{}
	for _, row := range rows {
		versions[row.suite] = versionOf(row.find())
	}
	for _, s := range servers {
		versions[s.suite] = s.version
	}
	for _, suite := range suites {
		say("suite %-10s %-12s %s", suite, versions[suite], asked(string(text), suite, rows))
	}
}

// asked says how many tests of which packages asked for a suite, by its name or by the name of its program.
func asked(ledger, suite string, rows []tool) string {
	names := map[string]bool{suite: true}
	for _, row := range rows {
		if row.suite == suite {
			names[row.program] = true
		}
	}
	tests := map[string]bool{}
	var pkgs []string
	for line := range strings.Lines(ledger) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || !names[fields[0]] {
			continue
		}
		pkg, test := fields[1], fields[2]
		tests[pkg+" "+test] = true
		if !slices.Contains(pkgs, pkg) {
			pkgs = append(pkgs, pkg)
		}
	}
	if len(tests) == 0 {
		return "no test asked for it"
	}
	short := make([]string, len(pkgs))
	for i, pkg := range pkgs {
		short[i] = path.Base(pkg)
	}
	word := "tests"
	if len(tests) == 1 {
		word = "test"
	}
	return fmt.Sprintf("%d %s, in %s", len(tests), word, strings.Join(short, ", "))
}
