//go:build unix

package main

import (
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
