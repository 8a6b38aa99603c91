package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, now: time.Now, zone: time.Local,
		terminal: isTerminal(os.Stderr),
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// app is one call of the program, and what it has to do with the world.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	now      func() time.Time
	zone     *time.Location
	terminal bool // err is one: progress may be shown

	json bool
	note string
	api  *client
	open func(context.Context) (*client, error) // [what the settings say]
}

// run does what the arguments say, and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if a.api != nil {
		if closing := a.api.close(); err == nil {
			err = closing
		}
	}
	if err == nil {
		return exitOK
	}
	a.json = a.json || asksJSON(args) // a wrong flag before it ends the reading of flags
	a.tell(err)
	return exitCode(err)
}

// asksJSON reports whether --json is among the flags.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

// isTerminal reports whether a person reads the file.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
