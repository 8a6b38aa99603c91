package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Every way in which a run can be ended from outside. In each, root (see there) proves that no file is left, family that
// no process is: neither the servers, nor the command, nor the child of it that put itself into a session of its own.
func TestTakedown_LeavesNoProcessAndNoFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		part string
		end  func(r *run, f *family) error
		code int // of the process that was started; -1 if a signal ended it
	}{
		{"Interrupt", commandPart, func(r *run, _ *family) error { return r.guard.Process.Signal(syscall.SIGINT) }, 130},
		{"Terminate", commandPart, func(r *run, _ *family) error { return r.guard.Process.Signal(syscall.SIGTERM) }, 143},
		{"Hangup", commandPart, func(r *run, _ *family) error { return r.guard.Process.Signal(syscall.SIGHUP) }, 129},
		{"InterruptOfTheGroup", commandPart, func(r *run, _ *family) error { return syscall.Kill(-r.guard.Process.Pid, syscall.SIGINT) }, 130},
		{"KillOfTheGuard", commandPart, func(r *run, _ *family) error { return r.guard.Process.Kill() }, -1},
		{"KillOfTheGroup", commandPart, func(r *run, _ *family) error { return syscall.Kill(-r.guard.Process.Pid, syscall.SIGKILL) }, -1},
		{"KillOfTheHost", commandPart, func(_ *run, f *family) error { return syscall.Kill(f.host(t).pid, syscall.SIGKILL) }, 1},
		{"TwoSignalsForADeafCommand", stubbornPart, func(r *run, f *family) error {
			// Straight to the host. Two threads of it may take them, so either may be the first that counts.
			host := f.host(t).pid
			if err := syscall.Kill(host, syscall.SIGINT); err != nil {
				return err
			}
			return syscall.Kill(host, syscall.SIGTERM)
		}, 128},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, c.part, nil)
			if n := r.family.names(); n["postgres"] == 0 || n["redis-server"] != 1 {
				t.Fatalf("servers do not run: %v", n)
			}
			if n := r.family.names()[kernelName(self)]; n != 4 {
				t.Fatalf("want guard, host, command and its child, got %v", r.family.names())
			}
			if !strings.HasPrefix(r.ready, r.root) {
				t.Fatalf("temporary files in %s, want them within %s, which is watched", r.ready, r.root)
			}
			postmaster := r.family.postmaster(t).pid
			if err := c.end(r, r.family); err != nil {
				t.Fatal(err)
			}
			switch code := r.wait(t); {
			case c.code == 128 && (code == 128+int(syscall.SIGINT) || code == 128+int(syscall.SIGTERM)):
			case code != c.code:
				t.Errorf("exit code %d, want %d (128: and either signal)\n%s", code, c.code, r.said)
			}
			r.family.waitEnded(t)
			noSegment(t, postmaster)
		})
	}
}

// `go run` and make do not take their program with them when they are killed. It must notice.
func TestTakedown_FollowsADeadLauncher(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range launchers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			launcher := filepath.Join(t.TempDir(), name)
			if err := os.Symlink(self, launcher); err != nil {
				t.Fatal(err)
			}
			r := start(t, commandPart, func(cmd *exec.Cmd) {
				cmd.Path = launcher
				cmd.Env = append(cmd.Env, partVariable+"="+partLauncher)
			})
			if err := r.guard.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if code := r.wait(t); code != -1 {
				t.Errorf("exit code %d, want that of a killed process", code)
			}
			r.family.waitEnded(t)
		})
	}
}

// A closed terminal, or the end of a pipe to less: whoever read our words is gone, and the next one we write raises
// SIGPIPE. Both ways of ending must work all the same.
func TestTakedown_WithNobodyToTellIt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, commandPart, func(cmd *exec.Cmd) { cmd.Stderr = writer })
			_ = writer.Close()
			_ = reader.Close()
			_ = r.stdout.Close()
			if err := r.guard.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			r.wait(t)
			r.family.waitEnded(t)
		})
	}
}

// A command whose output nobody reads any more learns it, as it would without testenv, instead of waiting for ever.
func TestTakedown_WhenNobodyReadsOn(t *testing.T) {
	t.Parallel()
	cmd, said := testenv(t, root(t), "-suites", "nats", "--", "yes")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	_ = stdout.Close()
	if code := exit(t, cmd.Wait()); code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, said)
	}
}

func TestTakedown_AfterTheCommandsOwnEnd(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         int
	}{
		{"Success", "echo out; exit 0", 0},
		{"Failure", "echo out; exit 7", 7},
		// What the command leaves running holds its output open. It must be ended, not waited for.
		{"LeftRunning", "echo out; setsid sleep 1000 & exit 3", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			needServers(t)
			cmd, said := testenv(t, root(t), "-install=false", "-suites", "redis,nats", "--", "sh", "-c", c.script)
			out, code := complete(t, cmd)
			if code != c.code || out != "out\n" {
				t.Errorf("output %q, code %d, want \"out\\n\" and %d\n%s", out, code, c.code, said)
			}
			if strings.Contains(said.String(), "still holds its output") {
				t.Errorf("waited for what should have been ended:\n%s", said)
			}
		})
	}
}

func TestTakedown_WhenAServerDoesNotStart(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --version ] || { echo the disk is on fire; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, said := testenv(t, root(t), "-install=false", "-suites", "nats,redis", "--", "echo", "ran")
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	out, code := complete(t, cmd)
	if code != 1 || out != "" || !strings.Contains(said.String(), "the disk is on fire") {
		t.Errorf("code %d, output %q, want 1, none, and the server's own words in:\n%s", code, out, said)
	}
}

func TestTakedown_RemovesTheGivenFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root(t), "given")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, said := testenv(t, t.TempDir(), "-suites", "nats", "-dir", dir, "--", "sh", "-c", "dirname $TMPDIR")
	out, code := complete(t, cmd)
	if code != 0 || strings.TrimSpace(out) != dir {
		t.Errorf("code %d, folder %q, want 0 and %q\n%s", code, out, dir, said)
	}
}

func TestTakedown_RefusesAFolderThatHoldsMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, said := testenv(t, t.TempDir(), "-suites", "nats", "-dir", dir, "--", "echo", "ran")
	out, code := complete(t, cmd)
	if code != 2 || out != "" || !strings.Contains(said.String(), "thesis.txt") {
		t.Errorf("code %d, output %q, want 2, none, and the file's name in:\n%s", code, out, said)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}
