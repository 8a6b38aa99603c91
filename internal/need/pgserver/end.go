package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawlwork/pawl/internal/need/child"
)

// stopLimit bounds the wait for a server that does not stop. A healthy one needs a fraction of a second, or what its disk needs for a checkpoint.
const stopLimit = time.Minute

// Stop shuts down in order: open transactions roll back, a checkpoint is written ("fast").
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Abort ends the server at once without a checkpoint, so that the next Start recovers from the log ("immediate").
func (s *Server) Abort() error { return s.end(syscall.SIGQUIT) }

// Dismiss lets the server go once its last client has left ("smart"), and returns what is closed when it has. New clients
// are refused at once. Stop ends the wait.
func (s *Server) Dismiss() (gone <-chan struct{}, err error) {
	if s.process == nil {
		return nil, s.wrap(errors.New("Dismiss of a server that does not run"))
	}
	return s.process.Done(), s.process.Signal(syscall.SIGTERM)
}

func (s *Server) end(sig syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	process := s.process
	s.process = nil
	if !process.Stop(sig, stopLimit) {
		return s.wrap(fmt.Errorf("killed, since it did not stop within %v of signal %q", stopLimit, sig))
	}
	return nil
}

// Kill is the crash: postmaster and backends get SIGKILL. It returns when all have ended, since a backend that still
// lives would keep the next start out of the shared memory.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	process := s.process
	s.process = nil
	backends, err := child.Of(process.PID())
	if err != nil {
		return s.wrap(err)
	}
	_ = process.Signal(syscall.SIGKILL)
	<-process.Done()
	for _, pid := range backends {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	deadline := time.After(stopLimit)
	for _, pid := range backends {
		for !child.Ended(pid) {
			select {
			case <-deadline:
				return s.wrap(fmt.Errorf("backend %d lives on after SIGKILL", pid))
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}

// Remove ends the server if it runs and leaves nothing of it: no process, no folder, no shared memory.
func (s *Server) Remove() error {
	err := s.Abort()
	if id, ok := s.segment(); ok {
		removeSegment(id)
	}
	return errors.Join(err, os.RemoveAll(s.config.Dir))
}

// segment is the id of the shared memory that a killed server left. Postgres writes it to its lock file, which it
// removes when it ends in order, together with the memory.
func (s *Server) segment() (int, bool) {
	text, err := os.ReadFile(filepath.Join(s.Data(), "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	const segmentLine = 6 // "key id", after pid, data folder, start time, port, socket folder and address
	lines := strings.Split(string(text), "\n")
	if len(lines) <= segmentLine {
		return 0, false
	}
	fields := strings.Fields(lines[segmentLine])
	if len(fields) != 2 {
		return 0, false
	}
	id, err := strconv.Atoi(fields[1])
	return id, err == nil
}
