// Shots writes a picture of every page of Mission Control to a folder: dark and light, on a desk and on a phone. It builds pawl, lets its
// demo live until every page has something to see, and leaves nothing behind. `make screenshots` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	to := flag.String("to", "docs/screenshots", "folder of the pictures")
	live := flag.Duration("live", 75*time.Second, "how long the demo lives before the first picture")
	only := flag.String("only", "", "the one page to take [all]")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *to, *live, *only); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

// run takes all pictures.
func run(ctx context.Context, to string, live time.Duration, only string) (err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("pictures need chromium: %w", err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pawl-shots-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "pawl")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./server/cmd/pawl").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	d, err := startDemo(ctx, program, dir)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := d.stop(); err == nil {
			err = stopErr
		}
	}()
	if err := d.prepare(ctx, live); err != nil {
		return err
	}
	b, err := startBrowser(ctx, chromium, to)
	if err != nil {
		return err
	}
	defer b.end()
	for _, s := range scenes {
		if only != "" && only != s.name {
			continue
		}
		if err := b.take(d, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Printf("%d pictures, %d kB, are in %s\n", b.pictures, b.bytes/1000, to)
	return nil
}
