//go:build unix

package guard

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// startLimit bounds the wait for a guard that hangs before it calls Main, not for a healthy one.
	startLimit = time.Minute
	// lookLimit bounds how long the killed are looked for after a guard was killed.
	lookLimit = 5 * time.Second
)

// Ready says whether programs can be run here.
func Ready() error {
	if !ready.Load() {
		return ErrNotReady
	}
	return nil
}

// A Process is a program under its guard.
type Process struct {
	pid     int
	cmd     *exec.Cmd // of the guard
	said    tail      // what the guard wrote to its stderr
	exited  chan struct{}
	done    chan struct{}
	exit    Exit
	err     error
	mu      sync.Mutex
	control *os.File
}

// Start starts a program. The caller closes its copies of the program's files.
func Start(p Program) (*Process, error) {
	if err := Ready(); err != nil {
		return nil, err
	}
	program, err := self()
	if err != nil {
		return nil, err
	}
	theirControl, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirControl.Close()
	status, theirStatus, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer theirStatus.Close()
	g := &Process{control: control, exited: make(chan struct{}), done: make(chan struct{})}
	g.cmd = &exec.Cmd{
		Path: program, Args: []string{name, filepath.Base(p.Path)}, Stderr: &g.said,
		ExtraFiles: []*os.File{theirControl, theirStatus, p.Dir, p.Stdin, p.Stdout, p.Stderr},
		// Its own session: what is sent to the worker's group or comes from its terminal does not reach it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := g.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the guard: %w", err), control.Close(), status.Close())
	}
	_ = theirStatus.Close() // so that the guard's end is seen
	words := json.NewDecoder(status)
	if err := g.begin(p, status, words); err != nil {
		_ = control.Close()
		_ = g.cmd.Process.Kill() // it has started nothing, or hangs before it came to read
		_ = g.cmd.Wait()
		return nil, errors.Join(err, status.Close())
	}
	go g.follow(status, words)
	return g, nil
}

// begin tells the guard what to run and waits until it does.
func (g *Process) begin(p Program, status *os.File, words *json.Decoder) error {
	text, err := json.Marshal(spec{Path: []byte(p.Path), Args: asBytes(p.Args), Env: asBytes(p.Env), UID: p.UID, GID: p.GID, Grace: p.Grace})
	if err != nil {
		return err
	}
	limit := time.Now().Add(startLimit)
	_ = g.control.SetWriteDeadline(limit)
	_ = status.SetReadDeadline(limit)
	_, sent := g.control.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	var first word
	switch err := words.Decode(&first); {
	case err != nil:
		return fmt.Errorf("the guard did not start (does main begin with Guard()?): %w%s", errors.Join(sent, err), g.said.text())
	case first.Error != "":
		return errors.New(first.Error)
	}
	g.pid = first.PID
	_ = g.control.SetWriteDeadline(time.Time{})
	return status.SetReadDeadline(time.Time{})
}

// follow hears the guard out.
func (g *Process) follow(status *os.File, words *json.Decoder) {
	defer close(g.done)
	exited, gone := false, false
	for {
		var w word
		if err := words.Decode(&w); err != nil {
			break // its end
		}
		if w.Exit != nil && !exited {
			exited, g.exit = true, *w.Exit
			close(g.exited)
		}
		gone = gone || w.Gone
	}
	if !gone { // killed: we have not waited for it, so its session's number is still its own
		for limit := time.Now().Add(lookLimit); killSession(g.cmd.Process.Pid) && time.Now().Before(limit); {
			time.Sleep(lookAgain)
		}
	}
	err := g.cmd.Wait()
	if !gone {
		g.err = fmt.Errorf("the guard ended too early: %w%s", errors.Join(err), g.said.text())
	}
	if !exited {
		g.exit = Exit{Code: -1, Signal: "unknown"}
		close(g.exited)
	}
	_ = status.Close()
	g.Kill()
}

// PID is the program's process and group.
func (g *Process) PID() int { return g.pid }

// Guard is the guard's process.
func (g *Process) Guard() int { return g.cmd.Process.Pid }

// Exited is closed when the program itself has ended.
func (g *Process) Exited() <-chan struct{} { return g.exited }

// Done is closed when the program and all that it started are gone.
func (g *Process) Done() <-chan struct{} { return g.done }

// Exit is how the program ended. It waits for Exited.
func (g *Process) Exit() Exit {
	<-g.exited
	return g.exit
}

// Err says what went wrong with the guard. It waits for Done.
func (g *Process) Err() error {
	<-g.done
	return g.err
}

// End asks for an end: SIGTERM to the program's group, and SIGKILL to all that are left after the grace. It does not wait.
func (g *Process) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.control != nil {
		_, _ = g.control.Write([]byte{end})
	}
}

// Kill ends all at once, as the guard does by itself when this process is gone. It does not wait.
func (g *Process) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.control != nil {
		_ = g.control.Close()
		g.control = nil
	}
}

// tail keeps the last bytes written.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 2 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		return ""
	}
	return ": " + string(t.kept)
}
