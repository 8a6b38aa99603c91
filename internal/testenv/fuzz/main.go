// Fuzz runs every fuzz target of some packages for a part of the time each.
//
//	fuzz -time 20s ./server/httpapi ./job/metric
//
// New inputs go to the build cache, where `go test -fuzz` finds them again. An input that fails is written to the
// package's testdata, as `go test -fuzz` does, printed, and makes the exit code 1.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	whole := flag.Duration("time", 20*time.Second, "for all targets together")
	flag.Parse()
	if *whole <= 0 || flag.NArg() == 0 {
		fmt.Fprintf(os.Stderr, "fuzz: -time is %v and there are %d packages: both must be above 0\n", *whole, flag.NArg())
		os.Exit(2)
	}
	if err := fuzz(ctx, os.Stdout, *whole, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// target is one function of a package.
type target struct {
	pkg, name string
	program   string // the package's tests
	dir       string // of the package
	cache     string // of the package's inputs
}

func fuzz(ctx context.Context, out io.Writer, whole time.Duration, packages []string) error {
	dir, err := os.MkdirTemp("", "pawl-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cache, err := output(ctx, "", "go", "env", "GOCACHE")
	if err != nil {
		return err
	}
	var targets []target
	for i, pkg := range packages {
		found, err := build(ctx, pkg, filepath.Join(dir, fmt.Sprint(i)), filepath.Join(cache, "fuzz"))
		if err != nil {
			return err
		}
		targets = append(targets, found...)
	}
	if len(targets) == 0 {
		return errors.New("the packages have no targets")
	}
	each := (whole / time.Duration(len(targets))).Round(100 * time.Millisecond)
	var faults []error
	for _, t := range targets {
		if err := t.run(ctx, out, max(each, 100*time.Millisecond)); err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
	}
	return errors.Join(faults...)
}

// build makes the tests of a package once for all of its targets, with the instruments of fuzzing.
func build(ctx context.Context, pkg, program, cache string) ([]target, error) {
	if _, err := output(ctx, "", "go", "test", "-c", "-fuzz", ".", "-o", program, pkg); err != nil {
		return nil, err
	}
	place, err := output(ctx, "", "go", "list", "-f", "{{.Dir}}\t{{.ImportPath}}", pkg)
	if err != nil {
		return nil, err
	}
	dir, path, _ := strings.Cut(place, "\t")
	names, err := output(ctx, dir, program, "-test.list", "^Fuzz")
	if err != nil {
		return nil, err
	}
	var list []target
	for _, name := range strings.Fields(names) {
		list = append(list, target{pkg, name, program, dir, filepath.Join(cache, filepath.FromSlash(path))})
	}
	return list, nil
}

// run fuzzes one target and reports in a line, or with all it said when it failed.
func (t target) run(ctx context.Context, out io.Writer, long time.Duration) error {
	said, err := output(ctx, t.dir, t.program, "-test.run", "^$", "-test.fuzz", "^"+t.name+"$", "-test.fuzztime", long.String(),
		"-test.fuzzcachedir", t.cache, "-test.timeout", (long + 5*time.Minute).String())
	if err != nil && ctx.Err() == nil && !overdue(err.Error()) {
		return fmt.Errorf("%s in %s: %w", t.name, t.pkg, err)
	}
	_, count, _ := cutLast(said, "execs: ")
	count, _, _ = strings.Cut(cmp.Or(count, "no"), " ") // those that are known took all of the time
	fmt.Fprintf(out, "fuzz: %-26s %-20s %6v %8s inputs\n", t.pkg, t.name, long, count)
	return nil
}

// overdue reports whether a target failed only because its time was over: Go 1.26 takes that for a fault now and then
// (golang/go#75804). An input that fails is always written, and says so.
func overdue(said string) bool {
	_, why, failed := cutLast(said, "--- FAIL: ")
	lines := strings.Split(why, "\n")
	return failed && len(lines) > 1 && strings.TrimSpace(lines[1]) == context.DeadlineExceeded.Error() && !strings.Contains(said, "Failing input")
}

func cutLast(text, mark string) (before, after string, found bool) {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(mark):], true
}

// output is what a program says. A failure has that in its error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	said, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(said))
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, text)
	}
	return text, err
}
