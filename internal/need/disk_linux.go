package need

import (
	"fmt"
	"os"
	"syscall"
)

// mountSmall puts a file system of a few bytes at dir.
func mountSmall(dir string, bytes int) (unmount func() error, err error) {
	if err := syscall.Mount("pawl", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, fmt.Sprintf("size=%d", bytes)); err != nil {
		return nil, os.NewSyscallError("mount", err)
	}
	return func() error { return os.NewSyscallError("unmount", syscall.Unmount(dir, 0)) }, nil
}
