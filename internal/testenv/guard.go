package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/pawlwork/pawl/internal/need/child"
)

// endings are the signals that mean: take everything down.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// watchEndings returns the signals that mean: take everything down. A broken pipe is none of them, and must not end us
// either: when the terminal or the pager that we write to is gone, there is still everything to take down. It is caught
// rather than ignored, because programs inherit what is ignored.
func watchEndings() <-chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, endings...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals
}

// guard is the process that was started. It runs the host, passes signals on, and cleans up after a host that could not.
func guard(opts options) int {
	signals := watchEndings()
	launcherDied := watchLauncher()

	dir, err := folder(opts.dir)
	if err != nil {
		say("%v", err)
		return 2
	}
	defer removeFolder(dir)
	if err := adoptOrphans(); err != nil {
		say("%v", err)
		return 1
	}
	process, err := startHost(dir)
	if err != nil {
		say("%v", err)
		return 1
	}
	for {
		select {
		case sig := <-signals:
			_ = process.Signal(sig.(syscall.Signal))
		case <-launcherDied:
			launcherDied = nil
			_ = process.Signal(syscall.SIGTERM)
		case <-process.Done():
			endChildren(nil)
			return afterHost(process.Wait())
		}
	}
}

// startHost runs this program again, in a session of its own: neither the terminal's Ctrl-C nor a kill of our process
// group reaches it, only we and the kernel do.
func startHost(dir string) (*child.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Env = append(os.Environ(), hostVariable+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return child.Start(cmd, syscall.SIGTERM)
}

// afterHost is the exit code. A host that was killed may have left an installation half done.
func afterHost(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		say("%v", err)
		return 1
	case exit.Exited():
		return exit.ExitCode()
	}
	say("the host process ended by itself: %v", err)
	if os.Geteuid() == 0 {
		if release, err := lockPackages(); err == nil {
			debian.undo()
			release()
		}
	}
	return 1
}

// folder makes the temporary folder, or takes the given one, which must be ours alone since it will be removed.
func folder(given string) (string, error) {
	if given == "" {
		dir, err := os.MkdirTemp("", "pawl-testenv-")
		if err != nil {
			return "", err
		}
		return dir, openFolder(dir)
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("-dir: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	self, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !os.SameFile(info, self) {
			return "", fmt.Errorf("-dir: %s holds %s: the folder will be removed, so it must be empty but for this program", dir, entry.Name())
		}
	}
	return dir, openFolder(dir)
}

// openFolder lets the user that Postgres runs as reach its own part of the folder.
func openFolder(dir string) error { return os.Chmod(dir, 0o711) }

func removeFolder(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		say("%v", err)
	}
}
