package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// NewStandby makes a standby of a running server from a copy of it, and picks its port. It will stream what the primary
// commits from the port of the primary that is given, which may be that of a way to it. Nothing runs yet.
func NewStandby(c Config, primaryPort int) (*Server, error) {
	s := &Server{config: c}
	if err := s.copy(primaryPort); err != nil {
		return nil, s.wrap(err)
	}
	return s, nil
}

func (s *Server) copy(primaryPort int) error {
	if err := s.settle(); err != nil {
		return err
	}
	err := run(s.command("pg_basebackup", "--pgdata", s.Data(), "--host", "127.0.0.1", "--port", fmt.Sprint(primaryPort),
		"--username", "postgres", "--checkpoint", "fast", "--wal-method", "stream", "--write-recovery-conf", "--no-sync"))
	if err != nil {
		return err
	}
	s.port, err = freePort()
	return err
}

// standby reports whether the server follows another one.
func (s *Server) standby() bool {
	_, err := os.Stat(filepath.Join(s.Data(), "standby.signal"))
	return err == nil
}

// ready is what the server's log says once it can be talked to.
func (s *Server) ready() string {
	if s.standby() {
		return "ready to accept read-only connections"
	}
	return "ready to accept connections"
}

// Promote makes a running standby a primary, and returns when it takes writes.
func (s *Server) Promote() error {
	if err := run(s.command("pg_ctl", "promote", "--pgdata", s.Data(), "--wait")); err != nil {
		return s.wrap(err)
	}
	return nil
}
