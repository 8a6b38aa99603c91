package breaks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Tree is a copy of the source that may be broken. It is a git repository of its own with one commit, so that
// git apply knows no other, and going back to that commit undoes whatever a patch and its test have left.
type Tree struct {
	dir       string
	temporary string // for the go command and the tests: what they leave when they are killed goes with the copy
}

// CopyTree copies the work tree at source into the empty folder scratch: every file that git tracks or would track, as
// it is now on disk. What is not committed yet is tested too. Removing scratch removes all that was ever written.
func CopyTree(ctx context.Context, source, scratch string) (*Tree, error) {
	t := &Tree{dir: filepath.Join(scratch, "tree"), temporary: filepath.Join(scratch, "tmp")}
	if err := errors.Join(os.Mkdir(t.dir, 0o755), os.Mkdir(t.temporary, 0o755)); err != nil {
		return nil, err
	}
	out, err := run(ctx, source, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", source, err)
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name == "" {
			continue
		}
		if err := copyFile(filepath.Join(source, name), filepath.Join(t.dir, name)); err != nil {
			return nil, fmt.Errorf("copy the tree: %w", err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template="},
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--no-verify", "--message=before any patch"},
	} {
		if err := t.git(ctx, nil, args...); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// copyFile copies a regular file with its permissions, or a link as a link. A file that git lists but that is gone
// from the disk is left out.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// Apply breaks the copy. A patch that does not fit changes nothing.
func (t *Tree) Apply(ctx context.Context, p Patch) error {
	return t.git(ctx, p.Text, "apply", "--whitespace=nowarn", "-")
}

// Restore brings the copy back to what was copied, and removes files that a failing test has left, such as the
// examples that rapid keeps.
func (t *Tree) Restore(ctx context.Context) error {
	return errors.Join(t.git(ctx, nil, "reset", "--quiet", "--hard"), t.git(ctx, nil, "clean", "--quiet", "-ffdx"))
}

// git runs git in the copy with settings that no user's configuration can change.
func (t *Tree) git(ctx context.Context, input []byte, args ...string) error {
	settings := []string{"git", "-c", "user.name=breaks", "-c", "user.email=breaks@localhost", "-c", "commit.gpgsign=false",
		"-c", "core.autocrlf=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.excludesFile="}
	if _, err := run(ctx, t.dir, input, append(settings, args...)...); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

// CheckApplies reports whether a patch fits the tree at root, without touching it.
func CheckApplies(ctx context.Context, root string, p Patch) error {
	if _, err := run(ctx, root, p.Text, "git", "apply", "--check", "--whitespace=nowarn", "-"); err != nil {
		return fmt.Errorf("%s: git apply --check: %w", p.Name, err)
	}
	return nil
}

// run runs a command in dir and returns its standard output. The error holds what it wrote to standard error.
func run(ctx context.Context, dir string, input []byte, args ...string) ([]byte, error) {
	command := newCommand(ctx, dir, args...)
	var problem bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(input), &problem
	out, err := command.Output()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return out, cause
		}
		return out, fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return out, nil
}
