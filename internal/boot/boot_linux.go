package boot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// self reads who this process is, once: nothing of it changes while it lives.
var self = sync.OnceValue(func() Identity {
	kernel, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Identity{}
	}
	host, err := os.Hostname()
	if err != nil {
		return Identity{}
	}
	pid := os.Getpid()
	// A /proc of another pid namespace would show somebody else under our number.
	if link, err := os.Readlink("/proc/self"); err != nil || link != fmt.Sprint(pid) {
		return Identity{}
	}
	_, start, err := stat(pid)
	if err != nil {
		return Identity{}
	}
	return Identity{
		Machine: fmt.Sprintf("%s %s %s", strings.TrimSpace(string(kernel)), pids, host),
		Process: pid, Start: start + " " + timeNamespace(),
	}
})

// timeNamespace names the clock that start times are shown by; empty on kernels
// that have only one.
func timeNamespace() string {
	link, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return ""
	}
	return link
}

// dead is the rule of this package.
func dead(me, other Identity) bool {
	if me.Machine == "" || me.Machine != other.Machine || other.Process < 1 {
		return false
	}
	if err := syscall.Kill(other.Process, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	state, start, err := stat(other.Process)
	if err != nil {
		return false // it may have ended since, or be hidden from us: the next look tells
	}
	if state == 'Z' || state == 'X' {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", other.Process))
		return err == nil && len(threads) <= 1 // with more, only its first thread has ended
	}
	_, mine, _ := strings.Cut(me.Start, " ")
	began, theirs, whole := strings.Cut(other.Start, " ")
	return whole && mine == theirs && began != "" && began != start
}

// stat reads the state of a process and when it was started, in ticks.
func stat(pid int) (state byte, start string, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", err
	}
	return parse(text)
}

var errStat = errors.New("boot: /proc/PID/stat is not as proc(5) says")

// parse finds fields 3 and 22. The second is the name of the program, which may
// hold anything, also spaces and brackets: the fields are counted from its last one.
func parse(text []byte) (state byte, start string, err error) {
	const beforeState, stateField, startField = 2, 3, 22
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, "", errStat
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) <= startField-stateField || len(fields[0]) != 1 {
		return 0, "", errStat
	}
	return fields[stateField-beforeState-1][0], fields[startField-beforeState-1], nil
}
