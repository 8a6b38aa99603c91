package lite

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"github.com/pawlwork/pawl/job"
)

// Locks of an open file rather than of a process: two stores of one process are
// apart, and closing another handle of the file frees nothing.
const (
	ofdGetLock = 36 // F_OFD_GETLK
	ofdSetLock = 37 // F_OFD_SETLK
)

// Alive is the open file. Its methods do nothing when it is nil.
type Alive struct {
	file *os.File
	name string // of this very file, in its first bytes

	mu   sync.Mutex
	held map[int64]bool // bytes that this store holds: its own lock does not look taken to it
}

// OpenAlive opens the file, and makes it when there is none. Nil means that
// there is no proof; a store works without.
func OpenAlive(path string, logger *slog.Logger) *Alive {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		a := &Alive{file: file, held: map[int64]bool{}}
		if a.name, err = a.named(); err == nil {
			return a
		}
		err = errors.Join(err, file.Close())
	}
	logger.Debug("pawl: no file to show that workers live; their leases decide", "file", path, "error", err)
	return nil
}

// nameLength is that of rand.Text.
const nameLength = 26

// named reads the file's name, and writes it when the file is new. Who finds
// another at that does without: nobody is waited for, who may have been stopped.
func (a *Alive) named() (string, error) {
	name := make([]byte, nameLength)
	if _, err := a.file.ReadAt(name, 0); err == nil {
		return string(name), nil
	}
	if err := a.lock(syscall.F_WRLCK, 0); err != nil {
		return "", err
	}
	defer a.lock(syscall.F_UNLCK, 0)
	_, err := a.file.ReadAt(name, 0)
	if errors.Is(err, io.EOF) {
		copy(name, rand.Text())
		_, err = a.file.WriteAt(name, 0)
	}
	return string(name), err
}

// lock takes or frees one byte, and does not wait.
func (a *Alive) lock(kind int16, at int64) error {
	return syscall.FcntlFlock(a.file.Fd(), ofdSetLock, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1})
}

// Take holds a worker's byte and returns the name of the file, empty when it
// could not be taken.
func (a *Alive) Take(namespace int64, w job.WorkerID) string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := aliveByte(namespace, w)
	if !a.held[at] {
		if err := a.lock(syscall.F_WRLCK, at); err != nil {
			return ""
		}
		a.held[at] = true
	}
	return a.name
}

// Free gives a worker's byte back.
func (a *Alive) Free(namespace int64, w job.WorkerID) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := aliveByte(namespace, w); a.held[at] {
		delete(a.held, at)
		_ = a.lock(syscall.F_UNLCK, at) // if it stays taken, the lease decides
	}
}

// IsFree reports whether a worker that took its byte in the named file holds it
// no more.
func (a *Alive) IsFree(namespace int64, w job.WorkerID, name string) bool {
	if a == nil || name == "" || name != a.name {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := aliveByte(namespace, w)
	if a.held[at] {
		return false
	}
	look := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	return syscall.FcntlFlock(a.file.Fd(), ofdGetLock, &look) == nil && look.Type == syscall.F_UNLCK
}

// Close frees every byte.
func (a *Alive) Close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}
