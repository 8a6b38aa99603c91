package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// build compiles the program with counters in all our packages.
func build(root, to string) error {
	cmd := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+modulePath+"/...", "-o", to, program)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// ofTheJob reports whether a function is the job's that ran in so many windows: in nine of ten. A tick of the engine may fall
// into some; and a look that the engine took a moment before may spare a job its own.
func ofTheJob(times, windows int) bool { return 10*times >= 9*windows }

// measure runs the program on a store and returns in how many windows each function ran.
func measure(s *source, bin, address, dir string, windows int) (map[*function]int, error) {
	cmd := exec.Command(bin, "-store", address, "-windows", strconv.Itoa(windows), "-out", dir)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir) // what the program writes at its end is not looked at
	cmd.Stderr = os.Stderr
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the measured program: %w", err)
	}
	seen := map[*function]int{}
	for i := range windows {
		ran, err := s.window(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		for fn := range ran {
			seen[fn]++
		}
	}
	return seen, nil
}

// window reads the counters of one window.
func (s *source) window(dir string) (map[*function]bool, error) {
	text := filepath.Join(dir, "counters.txt")
	cmd := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+text)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w", err)
	}
	counters, err := os.ReadFile(text)
	if err != nil {
		return nil, err
	}
	ran := map[*function]bool{}
	for line := range strings.Lines(string(counters)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "mode:") || strings.HasSuffix(line, " 0") {
			continue
		}
		file, block, _ := strings.Cut(line, ":") // path/file.go:line.column,line.column statements count
		var at, column int
		if _, err := fmt.Sscanf(block, "%d.%d,", &at, &column); err != nil {
			return nil, fmt.Errorf("counter %q: %w", line, err)
		}
		for _, fn := range s.byFile[file] {
			if fn.lines[0] <= at && at <= fn.lines[1] {
				ran[fn] = true
			}
		}
	}
	return ran, nil
}
