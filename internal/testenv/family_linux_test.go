package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlwork/pawl/internal/need/child"
)

// family is a process and all its descendants at one moment, held by handles: a process id alone may be given to
// somebody else.
type family struct {
	members []member
}

type member struct {
	pid, parent int
	name        string
	handle      int
}

func familyOf(t *testing.T, pid int) *family {
	t.Helper()
	f := &family{}
	f.add(t, pid, 0)
	t.Cleanup(func() {
		for _, m := range f.members { // nothing to do, unless the test failed
			_ = unix.PidfdSendSignal(m.handle, unix.SIGKILL, nil, 0)
			_ = unix.Close(m.handle)
		}
	})
	return f
}

func (f *family) add(t *testing.T, pid, parent int) {
	t.Helper()
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // ended since it was listed
	}
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	f.members = append(f.members, member{pid, parent, strings.TrimSpace(string(name)), handle})
	children, err := child.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		f.add(t, c, pid)
	}
}

// host is the testenv's second process: the first child of the first one.
func (f *family) host(t *testing.T) member {
	t.Helper()
	for _, m := range f.members[1:] {
		if m.parent == f.members[0].pid {
			return m
		}
	}
	t.Fatal("the guard has no child")
	return member{}
}

// postmaster is the shared Postgres: the one whose parent is not Postgres.
func (f *family) postmaster(t *testing.T) member {
	t.Helper()
	for _, m := range f.members {
		if m.name == "postgres" && m.parent == f.host(t).pid {
			return m
		}
	}
	t.Fatal("the host has no Postgres")
	return member{}
}

// names counts members by the name of their program.
func (f *family) names() map[string]int {
	count := map[string]int{}
	for _, m := range f.members {
		count[m.name]++
	}
	return count
}

// kernelName is what the kernel keeps of a program's name.
func kernelName(program string) string {
	const longest = 15
	name := filepath.Base(program)
	return name[:min(len(name), longest)]
}

// waitEnded waits until every member has ended, and says of each that does not.
func (f *family) waitEnded(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(generousLimit)
	for _, m := range f.members {
		for {
			left := max(time.Until(deadline), 0)
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(m.handle), Events: unix.POLLIN}}, int(left.Milliseconds()))
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				t.Errorf("process %d (%s) lives on", m.pid, m.name)
			}
			break
		}
	}
}

// noSegment fails if the Postgres of that process id left shared memory.
func noSegment(t *testing.T, postmaster int) {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	creator := -1
	for i, title := range strings.Fields(lines[0]) {
		if title == "cpid" {
			creator = i
		}
	}
	for _, line := range lines[1:] {
		if fields := strings.Fields(line); creator < len(fields) && fields[creator] == strconv.Itoa(postmaster) {
			t.Errorf("Postgres %d left shared memory: %s", postmaster, line)
		}
	}
}
