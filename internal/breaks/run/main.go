// Run tries every patch of internal/breaks on a copy of the tree and exits with 1 unless each one is caught by the
// test it names:
//
//	go run ./internal/breaks/run [-only 'S*'] [-timeout 2m]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pawlwork/pawl/internal/breaks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "breaks:", err)
		}
		stop()
		os.Exit(1)
	}
}

// run is main without the process around it. The table goes to out, progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("breaks", flag.ContinueOnError)
	flags.SetOutput(progress)
	only := flags.String("only", "*", "try only the patches whose `name`, without .patch, matches this glob")
	root := flags.String("root", ".", "the top `folder` of the repository")
	timeout := flags.Duration("timeout", 2*time.Minute, "the longest that one test may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q is not understood", flags.Arg(0))
	}
	if *timeout <= 0 {
		return fmt.Errorf("-timeout is %s, must be above 0", *timeout)
	}
	patches, err := choose(filepath.Join(*root, "internal", "breaks"), *only)
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "pawl-breaks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A test run by root may start a server as another user, who has to be able to reach its files here.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	tree, err := breaks.CopyTree(ctx, *root, dir)
	if err != nil {
		return err
	}
	prover := &breaks.Prover{Tree: tree, Timeout: *timeout}
	var results []breaks.Result
	survived := 0
	for _, patch := range patches {
		fmt.Fprintf(progress, "%s ...", patch.Name)
		result := prover.Prove(ctx, patch)
		fmt.Fprintf(progress, " %s\n", result.Verdict)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if result.Verdict != breaks.Caught {
			survived++
		}
		results = append(results, result)
	}
	if err := breaks.WriteTable(out, results); err != nil {
		return err
	}
	if survived > 0 {
		return fmt.Errorf("%d of %d patches were not caught", survived, len(results))
	}
	return nil
}

// choose loads the patches whose names match. None is an error: a run that tries nothing must not look like a good one.
func choose(dir, only string) ([]breaks.Patch, error) {
	all, err := breaks.Load(dir)
	if err != nil {
		return nil, err
	}
	var chosen []breaks.Patch
	for _, patch := range all {
		ok, err := path.Match(only, patch.Name)
		if err != nil {
			return nil, fmt.Errorf("-only %q: %w", only, err)
		}
		if ok {
			chosen = append(chosen, patch)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no patch in %s matches -only %q", dir, only)
	}
	return chosen, nil
}
