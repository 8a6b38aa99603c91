//go:build unix

package guard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// lookAgain is how soon a guard that kills looks again for who is left, if no child's end tells it before.
const lookAgain = 50 * time.Millisecond

// Main turns this process into a guard if it was started as one, and then does not return. It must be called before
// anything else is done.
func Main() {
	ready.Store(true)
	if len(os.Args) > 0 && os.Args[0] == name {
		os.Exit(guard())
	}
}

// guard is the whole life of a guard; its result is the exit code.
func guard() int {
	runtime.LockOSThread() // the kernel ties the parent-death signal to the thread that starts the program
	runtime.GOMAXPROCS(1)
	keepFiles()
	control, status := os.NewFile(controlFile, "control"), os.NewFile(statusFile, "status")
	s, err := readSpec(control)
	if err != nil {
		fmt.Fprintln(os.Stderr, name+" is started by Pawl, not by hand:", err)
		return 2
	}
	w := &watch{words: json.NewEncoder(status), children: make(chan os.Signal, 1)}
	signal.Notify(w.children, syscall.SIGCHLD)
	// What is meant for the worker, or for all (systemd's stop), must not end us before the program. They are caught, not
	// ignored, because programs inherit what is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if err := w.start(s); err != nil {
		w.say(word{Error: err.Error()})
		return 1
	}
	w.say(word{PID: w.program})
	w.until(listen(control), s.Grace)
	w.say(word{Gone: true})
	return 0
}

// keepFiles keeps every open file from the program: ours, and those that the worker itself inherited and never closed.
func keepFiles() {
	for file := controlFile; file <= stderrFile; file++ {
		syscall.CloseOnExec(file)
	}
	others, _ := os.ReadDir("/dev/fd")
	for _, other := range others {
		if file, err := strconv.Atoi(other.Name()); err == nil && file > stderrFile {
			syscall.CloseOnExec(file)
		}
	}
}

func readSpec(control io.Reader) (s spec, err error) {
	var size uint32
	if err := binary.Read(control, binary.BigEndian, &size); err != nil {
		return s, err
	}
	if size > maxSpec {
		return s, fmt.Errorf("%d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(control, text); err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// listen tells of each byte of the control pipe, and is closed when the worker has closed it or is gone.
func listen(control io.Reader) <-chan byte {
	asked := make(chan byte)
	go func() {
		defer close(asked)
		for b := make([]byte, 1); ; {
			if _, err := io.ReadFull(control, b); err != nil {
				return
			}
			asked <- b[0]
		}
	}()
	return asked
}

// watch is what a guard knows.
type watch struct {
	words    *json.Encoder
	children chan os.Signal
	program  int // its process and group
	exited   bool
}

// say tells the worker; one that is gone is told by listen.
func (w *watch) say(what word) { _ = w.words.Encode(what) }

func (w *watch) start(s spec) error {
	defer func() { // only the program has them now: so their ends are seen, and its stdin breaks when nobody reads it
		for file := dirFile; file <= stderrFile; file++ {
			_ = syscall.Close(file)
		}
	}()
	if err := adopt(); err != nil {
		return err
	}
	if err := syscall.Fchdir(dirFile); err != nil {
		return fmt.Errorf("entering the folder: %w", err)
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	tie(attr)
	if s.UID != 0 || s.GID != 0 {
		attr.Credential = &syscall.Credential{Uid: s.UID, Gid: s.GID}
	}
	path := string(s.Path)
	var err error
	w.program, err = syscall.ForkExec(path, append([]string{path}, asStrings(s.Args)...), &syscall.ProcAttr{
		Env: asStrings(s.Env), Files: []uintptr{stdinFile, stdoutFile, stderrFile}, Sys: attr,
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	return nil
}

// until waits until the program and all that it started are gone.
func (w *watch) until(asked <-chan byte, grace time.Duration) {
	var late, again <-chan time.Time
	ending, killing := false, false
	for !w.reap() {
		if killing = killing || w.exited && !ending; killing {
			signalAll(w, syscall.SIGKILL)
			again = time.After(lookAgain)
		}
		select {
		case <-w.children:
		case <-again:
		case <-late:
			killing = true
		case b, open := <-asked:
			switch {
			case !open:
				asked, killing = nil, true
			case b == end && !ending:
				ending, late = true, time.After(grace)
				signalAll(w, syscall.SIGTERM)
			}
		}
	}
}

// exit notes how the program ended and tells.
func (w *watch) exit(status syscall.WaitStatus) {
	w.exited = true
	how := Exit{Code: status.ExitStatus()}
	if status.Signaled() {
		how = Exit{Code: -1, Signal: status.Signal().String()}
	}
	w.say(word{Exit: &how})
}
