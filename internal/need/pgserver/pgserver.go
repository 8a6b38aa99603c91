// Package pgserver runs a private Postgres in a folder of its own: the one that all tests share, and those that a test
// kills and starts again.
//
// The server listens on loopback only, trusts every local connection, keeps fsync on and never outlives the process that
// started it. Its port stays the same over restarts, so that clients find it again.
package pgserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawlwork/pawl/internal/need/child"
)

// Config says where a server lives. Bin and Dir are required.
type Config struct {
	Bin      string   // folder of initdb and postgres
	Dir      string   // folder for data and socket, made by New; the server's user must be able to reach it
	Settings []string // more settings, as name=value
	Env      []string // of the server, beside this process's, as name=value
}

// Server is a private Postgres. Its methods are for one goroutine at a time.
type Server struct {
	config     Config
	credential *syscall.Credential
	port       int
	process    *child.Process
	log        *child.Log
}

// New makes the data folder of a server and picks its port. Nothing runs yet.
func New(c Config) (*Server, error) {
	s := &Server{config: c}
	if err := s.initialise(); err != nil {
		return nil, s.wrap(err)
	}
	return s, nil
}

func (s *Server) initialise() error {
	if err := s.settle(); err != nil {
		return err
	}
	// initdb need not sync: a folder lost to a power cut at this moment is simply made again.
	initdb := s.command("initdb", "--pgdata", s.Data(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if err := run(initdb); err != nil {
		return err
	}
	var err error
	s.port, err = freePort()
	return err
}

// settle makes the server's folder, and decides whose it is.
func (s *Server) settle() error {
	credential, err := child.Unprivileged("postgres")
	if err != nil {
		return err
	}
	s.credential = credential
	if err := os.Mkdir(s.config.Dir, 0o755); err != nil || credential == nil {
		return err
	}
	return os.Chown(s.config.Dir, int(credential.Uid), int(credential.Gid))
}

// run runs a program of Postgres to its end.
func run(cmd *exec.Cmd) error {
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	if err := process.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, said.String())
	}
	return nil
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.config.Bin, name), args...)
	cmd.Dir = s.config.Dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	return cmd
}

func (s *Server) wrap(err error) error {
	return fmt.Errorf("private Postgres in %s: %w", s.config.Dir, err)
}

// Data is the server's data folder.
func (s *Server) Data() string { return filepath.Join(s.config.Dir, "data") }

// Port is the loopback port. It changes only if somebody else took it before the first start.
func (s *Server) Port() int { return s.port }

// URL is the address of the superuser's database.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// PID is the process id of the running postmaster, 0 if there is none.
func (s *Server) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}

// Log is the end of the server's log.
func (s *Server) Log() string { return s.log.String() }

// portTries bounds how often a first start may lose its port to somebody else.
const portTries = 5

// Start starts the server and returns when it accepts connections, after whatever recovery it needs.
func (s *Server) Start() error {
	if s.process != nil {
		return s.wrap(errors.New("Start of a running server"))
	}
	first := s.log == nil
	for try := 1; ; try++ {
		err := s.start()
		if err == nil {
			return nil
		}
		if !first || try == portTries || !strings.Contains(s.Log(), "could not bind") {
			return s.wrap(err)
		}
		// The port was free a moment ago. Nobody knows it yet, so another one does as well.
		if s.port, err = freePort(); err != nil {
			return s.wrap(err)
		}
	}
}

func (s *Server) start() error {
	settings := append([]string{
		fmt.Sprintf("port=%d", s.port),
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=" + s.socket(),
		"fsync=on",
		"max_connections=300",
		"shared_buffers=128MB",
		"logging_collector=off",
		"log_destination=stderr",
		// Shared memory as files of the data folder: what a kill leaves, the folder's removal takes away.
		"dynamic_shared_memory_type=mmap",
	}, s.config.Settings...)
	args := []string{"-D", s.Data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	// SIGQUIT is the immediate shutdown: no checkpoint for data that nobody will read, yet shared memory is given back.
	cmd := s.command("postgres", args...)
	cmd.Env = append(cmd.Env, s.config.Env...)
	process, log, err := child.Serve(cmd, syscall.SIGQUIT, s.ready())
	s.process, s.log = process, log
	return err
}

// socket is the folder for the socket, or none if its path would be longer than a socket's address may be.
func (s *Server) socket() string {
	const longest = 107 - len("/.s.PGSQL.65535.lock")
	if len(s.config.Dir) > longest {
		return ""
	}
	return s.config.Dir
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
