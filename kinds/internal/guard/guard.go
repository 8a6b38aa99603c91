package guard

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// name is what the guard is called in the list of processes, and what [Main] knows it by.
const name = "pawl-guard"

// ready says that this program calls Main. It is a fact about the process, not a setting.
var ready atomic.Bool

// ErrNotReady says that the program does not begin with a call of Guard.
var ErrNotReady = errors.New("main (in tests: TestMain) must begin with a call of Guard(): " +
	"without it nobody ends what a program started when this process is killed")

// ErrUnsupported says that this operating system has no process groups.
var ErrUnsupported = errors.New("programs can be run on unix systems only: elsewhere nothing ends what they start")

// A Program is what to run, and with what.
type Program struct {
	Path string
	Args []string // without the name
	Env  []string // all of it: NAME=value

	// Dir is the folder it runs in. It is open, and not a name, so that nobody can put another folder in its place.
	Dir                   *os.File
	Stdin, Stdout, Stderr *os.File

	UID, GID uint32        // other than 0: runs as this user and group, which only root may ask for
	Grace    time.Duration // between SIGTERM and SIGKILL
}

// An Exit is how a program ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // its name; empty when the program exited by itself
}

// spec is a Program as the guard is told: in bytes, since JSON has no strings that are not UTF-8.
type spec struct {
	Path     []byte
	Args     [][]byte
	Env      [][]byte
	UID, GID uint32
	Grace    time.Duration
}

// MayRunAs reports whether this process may run programs as this user and group.
func MayRunAs(uid, gid uint32) bool { return uid == 0 && gid == 0 || os.Geteuid() == 0 }

func asBytes(list []string) [][]byte {
	of := make([][]byte, len(list))
	for i, s := range list {
		of[i] = []byte(s)
	}
	return of
}

func asStrings(list [][]byte) []string {
	of := make([]string, len(list))
	for i, b := range list {
		of[i] = string(b)
	}
	return of
}

// word is what a guard says: first that the program has started or why not, then how it exited, then that all are gone.
type word struct {
	PID   int    `json:",omitempty"`
	Error string `json:",omitempty"`
	Exit  *Exit  `json:",omitempty"`
	Gone  bool   `json:",omitempty"`
}

// The guard's files, in the order of exec.Cmd.ExtraFiles.
const (
	controlFile = 3 + iota
	statusFile
	dirFile
	stdinFile
	stdoutFile
	stderrFile
)

// end is the byte on the control pipe that asks for an end with grace.
const end = 'e'

// maxSpec bounds what a guard reads: the kernel takes no more arguments and environment than this anyway.
const maxSpec = 4 << 20
