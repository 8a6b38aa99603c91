//go:build unix

package pool

import (
	"os"
	"syscall"
)

// readNow reads what is there and does not wait; 0 and less is nothing.
func readNow(f *os.File, buffer []byte) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Read(func(fd uintptr) bool { // pipes of os.Pipe do not block
		n, err = syscall.Read(int(fd), buffer)
		return true
	})
	return n
}
