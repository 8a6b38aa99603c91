//go:build unix

package main

import (
	"os"
	"syscall"
	"time"
)

// cpuTime is what the process has spent so far, in user and kernel mode. Servers' time is not in it.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}

// askForStacks ends a Go program that hangs, and makes it say where.
func askForStacks(p *os.Process) error { return p.Signal(syscall.SIGQUIT) }
