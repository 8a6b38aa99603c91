//go:build unix && !linux

package child

import "syscall"

// tie does nothing: only Linux tells a child of its parent's death. Orderly ends are still covered by Stop.
func tie(*syscall.SysProcAttr, syscall.Signal) {}
