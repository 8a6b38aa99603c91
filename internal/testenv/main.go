// Testenv runs a command beside the servers that Pawl's tests talk to, and leaves nothing behind.
//
//	go run ./internal/testenv -- go test -race ./...
//
// It installs what is missing if it may (root, apt-get), starts a private Postgres, Redis and NATS JetStream on free
// loopback ports in a temporary folder, tells the command their addresses (see package need), runs it, and takes
// everything down: at the end, on Ctrl-C, SIGTERM and SIGHUP, when the command fails, and when testenv is killed.
// Its exit code is the command's.
//
// Two processes share the work, because a process that gets SIGKILL cannot clean up after itself. The guard is the one
// you started: it keeps the folder, passes on signals and waits. The host, its child, holds the servers and the command.
// If the guard is killed, the kernel tells the host, which takes everything down as on SIGTERM. If the host is killed,
// what it had started falls to the guard, which ends it and removes the folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// options are what the command line says.
type options struct {
	suites  []string
	install bool
	dir     string // the folder to use and remove, "" for a fresh one
	command []string
}

// hostVariable marks the process as the host and holds its folder.
const hostVariable = "PAWL_TESTENV_HOST"

func main() {
	opts, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		say("%v", err)
		os.Exit(2)
	}
	if dir := os.Getenv(hostVariable); dir != "" {
		os.Exit(host(dir, opts))
	}
	os.Exit(guard(opts))
}

func parse(args []string, output io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("testenv", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprintln(output, "usage: testenv [flags] -- command [arguments]\n\nRuns the command beside private test servers.")
		flags.PrintDefaults()
	}
	suites := flags.String("suites", usual, "what to provide, separated by commas")
	flags.BoolVar(&opts.install, "install", true, "install what is missing, as root where apt-get is")
	flags.StringVar(&opts.dir, "dir", "", "folder for servers and temporary files, `removed` at the end; it may hold this program and nothing else (default a fresh one)")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	opts.command = flags.Args()
	var err error
	if opts.suites, err = parseSuites(*suites); err != nil {
		return options{}, err
	}
	if len(opts.command) == 0 {
		return options{}, errors.New("no command given: testenv [flags] -- command [arguments]")
	}
	return opts, nil
}

// say tells the person who waits something, apart from the command's output.
func say(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "testenv: "+strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}
