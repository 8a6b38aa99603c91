//go:build unix

package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// openDir opens the folder of a job. os.Root follows links only inside of the root, and the program is started in what
// was opened here, whatever has its name by then.
func openDir(root, dir string) (*os.File, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	defer r.Close()
	if dir == "" {
		dir = "."
	}
	f, err := r.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err == nil {
		return f, nil
	}
	var fault syscall.Errno
	var where *fs.PathError
	switch {
	case errors.As(err, &fault) && (fault == syscall.ENOTDIR || fault == syscall.ELOOP):
		return nil, pawl.Dead(job.Invalid("dir", dir, "must be a folder"))
	case !errors.As(err, &fault) && errors.As(err, &where): // os does not name this error
		return nil, pawl.Dead(job.Invalid("dir", dir, "must be below the root, also where links lead: "+where.Err.Error()))
	}
	return nil, fmt.Errorf("dir: %w", err)
}
