// Soak runs the long tests, fuzzing, and then the patches of internal/breaks, and writes what came out to docs/soak.md.
//
//	soak -o docs/soak.md -fuzz './job ./store' -- -tags fault,soak -run '^Test(Fault|Soak)' ./...
//
// What follows -- are arguments of `go test`. None means that there are no long tests yet, which the report then says.
// A failure is reported like a success and makes the exit code 1; an interrupted run reports nothing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	path := flag.String("o", "docs/soak.md", "`file` to write the report to")
	limit := flag.Duration("limit", time.Hour, "the longest that everything together may take")
	fuzzed := flag.String("fuzz", "", "`packages` whose targets are fuzzed for five minutes together")
	flag.Parse()
	if *limit <= 0 {
		fmt.Fprintf(os.Stderr, "soak: -limit is %v, must be above 0\n", *limit)
		os.Exit(2)
	}
	if err := soak(ctx, *path, *limit, strings.Fields(*fuzzed), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(ctx context.Context, path string, limit time.Duration, fuzzed, testArgs []string) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := report{
		when:    time.Now().UTC(),
		commit:  commit(limited),
		machine: fmt.Sprintf("%s, %s/%s, %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	if len(testArgs) > 0 {
		r.testErr = runTests(limited, &r.tests, testArgs)
	}
	if len(fuzzed) > 0 {
		r.fuzzed, r.fuzzedErr = runProgram(limited, "./internal/testenv/fuzz", append([]string{"-time", "5m"}, fuzzed...)...)
	}
	r.breaks, r.breaksErr = runProgram(limited, "./internal/breaks/run")
	r.took = time.Since(r.when)
	if ctx.Err() != nil {
		return errors.New("interrupted, nothing is reported")
	}
	if err := os.WriteFile(path, r.markdown(), 0o644); err != nil {
		return err
	}
	return errors.Join(r.testErr, r.fuzzedErr, r.breaksErr)
}

// runTests runs `go test` and reads its events as they come.
func runTests(ctx context.Context, tests *tests, args []string) error {
	cmd := command(ctx, "go", append([]string{"test", "-json"}, args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := tests.read(events, os.Stdout)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return readErr
}

// runProgram returns the table that a program of ours prints.
func runProgram(ctx context.Context, name string, args ...string) (string, error) {
	cmd := command(ctx, "go", append([]string{"run", name}, args...)...)
	var table bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &table), os.Stderr
	if err := cmd.Run(); err != nil {
		return table.String(), fmt.Errorf("%s: %w", strings.TrimPrefix(name, "./"), err)
	}
	return table.String(), nil
}

// command ends politely when its context does: go test then kills its tests, and each cleans up.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// commit names the source that ran, with a word if it was changed since.
func commit(ctx context.Context) string {
	out, err := command(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
