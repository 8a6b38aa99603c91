package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Of linux/prctl.h.
const (
	setChildSubreaper = 36
	setNoNewPrivs     = 38
)

// self is this executable, also when another file has its name by now, as after a deploy.
func self() (string, error) { return "/proc/self/exe", nil }

// adopt makes this process the parent of every descendant whose own parent ends, so that none gets away, whatever session
// or group it put itself into. The second call keeps them from becoming somebody whom we may not end.
func adopt() error {
	for _, option := range []uintptr{setChildSubreaper, setNoNewPrivs} {
		if _, _, fault := syscall.RawSyscall6(syscall.SYS_PRCTL, option, 1, 0, 0, 0, 0); fault != 0 {
			return fmt.Errorf("prctl %d: %w", option, fault)
		}
	}
	return nil
}

// tie has the kernel kill the program when the guard is killed.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// reap takes the exit status of all children that have ended, and reports whether none is left. Descendants without a
// parent are children too, so nothing at all is left then.
func (w *watch) reap() (gone bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return true // ECHILD
		case pid == 0:
			return false
		case pid == w.program:
			w.exit(status)
		}
	}
}

// signalAll sends a signal to our children and their groups. It never meets a stranger: the number of a child is not given
// to another before we reap it, nor is that of its group. Signalling a group is one step for the kernel, so that nobody in
// it can fork away; who is in no group of a child falls to us when its parent is gone.
func signalAll(w *watch, sig syscall.Signal) {
	all := children()
	for _, id := range all {
		if group, err := syscall.Getpgid(id); err == nil && group != syscall.Getpgrp() {
			_ = syscall.Kill(-group, sig)
		} else {
			_ = syscall.Kill(id, sig)
		}
	}
	if len(all) == 0 && !w.exited { // there is no /proc to look into
		_ = syscall.Kill(-w.program, sig)
	}
}

// children lists our children. The kernel's own list is quick enough to catch one that forks and ends again and again;
// kernels without it are asked for every process.
func children() (list []int) {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		text, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		for field := range bytes.FieldsSeq(text) {
			if id, err := strconv.Atoi(string(field)); err == nil {
				list = append(list, id)
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	own := os.Getpid()
	for p := range processes() {
		if p.parent == own {
			list = append(list, p.id)
		}
	}
	return list
}

// killSession kills what is left in a session and reports whether there was something. Its number must not be free: the
// caller has not waited for the process that began it.
func killSession(session int) (found bool) {
	for p := range processes() {
		if p.session == session && p.id != session && p.state != 'Z' && p.state != 'X' {
			found = true
			_ = syscall.Kill(p.id, syscall.SIGKILL)
		}
	}
	return found
}

type process struct {
	id, parent, group, session int
	state                      byte
}

// processes visits everything in /proc, zombies included.
func processes() func(yield func(process) bool) {
	return func(yield func(process) bool) {
		folder, err := os.Open("/proc")
		if err != nil {
			return
		}
		defer folder.Close()
		names, _ := folder.Readdirnames(-1)
		for _, n := range names {
			id, err := strconv.Atoi(n)
			if err != nil {
				continue
			}
			if p, ok := look(id); ok && !yield(p) {
				return
			}
		}
	}
}

// look reads /proc/id/stat. The name of the program stands in parentheses and may itself contain some; state, parent, group
// and session follow it.
func look(id int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return process{}, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return process{}, false
	}
	p := process{id: id, state: fields[0][0]}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return process{}, false
		}
	}
	return p, true
}
