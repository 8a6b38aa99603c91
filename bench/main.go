package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, says io.Writer) error {
	if text := os.Getenv(taskVariable); text != "" {
		return perform(ctx, text)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(says)
	list := flags.Bool("list", false, "name the works and end")
	only := flags.String("only", "", "works to run, separated by commas; jobs stands for all that are about jobs (default all but those on demand)")
	system := flags.String("system", "", "the one system to run, for profiling: without the others there is no ratio (default all)")
	rounds := flags.Int("n", 3, "rounds: each runs every system of a work once")
	path := flags.String("out", "out/latest.json", "file for the result")
	dir := flags.String("dir", "", "folder for SQLite files (default that for temporary files)")
	profiles := flags.String("profile", "", "folder for CPU profiles, one of the last run of each system")
	costs := flags.Bool("costs", false, "count WAL, statements and connections of works on Postgres, through a proxy: their speeds do not count then")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *list {
		for _, w := range works() {
			fmt.Fprintf(out, "%-26s %s\n", w.name, w.what)
		}
		return nil
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-n %d: must be 1 or more", *rounds)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}

	r := runner{servers: findServers(), dir: *dir, rounds: *rounds, system: *system, says: says, out: filepath.Dir(*path), profiles: *profiles, costs: *costs}
	if r.profiles != "" {
		if err := os.MkdirAll(r.profiles, 0o755); err != nil {
			return err
		}
	}
	var result report
	if result.About, err = describeEnvironment(ctx, r.servers, *dir); err != nil {
		return err
	}
	for _, w := range chosen {
		r.run(ctx, w, &result)
	}
	result.print(out)
	if err := result.save(*path); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: the table is not complete")
	}
	if len(result.Failed) > 0 {
		return fmt.Errorf("%d runs failed", len(result.Failed))
	}
	return nil
}

// choose finds the works that -only names.
func choose(only string) ([]work, error) {
	all := works()
	if only == "" {
		return slices.DeleteFunc(all, func(w work) bool { return w.onDemand }), nil
	}
	var chosen []work
	for name := range strings.SplitSeq(only, ",") {
		if name == "jobs" {
			chosen = append(chosen, slices.DeleteFunc(works(), func(w work) bool {
				return w.onDemand || strings.HasPrefix(w.name, "batch-") || strings.Contains(w.name, "-stream-")
			})...)
			continue
		}
		i := slices.IndexFunc(all, func(w work) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %q: no such work (-list names them)", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
