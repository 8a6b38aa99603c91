package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/pawlwork/pawl/internal/need/child"
)

// install brings what is missing, if this machine is Debian's kind and we are root; else its error says in one line what
// to install. It starts no service and makes no database cluster: tests have servers of their own.
//
// It is not interrupted by signals, because half a package is worse than one wait.
func install(rows []tool, mayInstall bool) error {
	lacking := missing(rows)
	if len(lacking) == 0 {
		return nil
	}
	names := packageNames(lacking)
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 || !mayInstall {
		return fmt.Errorf("please install: %s (as root: apt-get install --no-install-recommends %s)",
			strings.Join(names, ", "), strings.Join(names, " "))
	}
	release, err := lockPackages()
	if err != nil {
		return err
	}
	defer release()
	if lacking = missing(rows); len(lacking) == 0 { // another testenv brought them while we waited
		return nil
	}
	names = packageNames(lacking)
	say("installing %s", strings.Join(names, ", "))
	stale := aptGet("update") // old lists may still do
	if err := installQuietly(names); err != nil {
		return errors.Join(stale, err)
	}
	if lacking = missing(rows); len(lacking) > 0 {
		return fmt.Errorf("installed %s, but their programs are not found", strings.Join(packageNames(lacking), ", "))
	}
	return nil
}

func installQuietly(names []string) error {
	defer debian.undo()
	if err := debian.forbidServices(); err != nil {
		return err
	}
	if slices.Contains(names, "postgresql") {
		// postgresql-common brings the file that says whether the server package makes a cluster. So it comes first,
		// then the word for no, then the server.
		if err := aptInstall("postgresql-common"); err != nil {
			return err
		}
		if err := debian.forbidCluster(); err != nil {
			return err
		}
	}
	return aptInstall(names...)
}

func aptInstall(names ...string) error {
	return aptGet(append([]string{"install", "--yes", "--no-install-recommends"}, names...)...)
}

// aptGet runs apt-get without questions. What it says is shown only if it fails.
func aptGet(args ...string) error {
	cmd := exec.Command("apt-get", append([]string{"--quiet", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	process, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return err
	}
	if err := process.Wait(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, said.Bytes())
	}
	return nil
}

// lockPackages keeps two testenvs from installing at once. A folder can carry the lock as well as a file, and then no
// file is left behind.
func lockPackages() (release func(), err error) {
	folder, err := os.Open("/var/lib/dpkg")
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = folder.Close()
		return nil, fmt.Errorf("locking %s: %w", folder.Name(), err)
	}
	return func() { _ = folder.Close() }, nil
}
