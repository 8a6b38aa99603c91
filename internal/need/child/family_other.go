//go:build unix && !linux

package child

import "syscall"

// Of lists nothing where there is no /proc.
func Of(int) ([]int, error) { return nil, nil }

// Ended reports whether the process pid is gone.
func Ended(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
