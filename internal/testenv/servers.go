package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/pawlwork/pawl/internal/need/child"
	"github.com/pawlwork/pawl/internal/need/pgserver"
)

// serverGrace bounds the wait for a server that does not start or stop. A healthy one needs a fraction of a second.
const serverGrace = 20 * time.Second

func startPostgres(program, dir string) (server, error) {
	pg, err := pgserver.New(pgserver.Config{Bin: filepath.Dir(program), Dir: dir})
	if err != nil {
		return server{}, err
	}
	if err := pg.Start(); err != nil {
		return server{}, err
	}
	return server{
		suite:   "postgres",
		version: versionOf(program),
		pid:     pg.PID(),
		env:     []string{"PAWL_TEST_POSTGRES=" + pg.URL(), "PAWL_TEST_POSTGRES_BIN=" + filepath.Dir(program)},
		stop:    pg.Remove,
	}, nil
}

// startRedis syncs every write, as Postgres here does: a test of durability, or a comparison of the two, would prove nothing
// otherwise.
func startRedis(program, dir string) (server, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return server{}, err
	}
	const tries = 5
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return server{}, failed("redis", err)
		}
		cmd := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no", "--logfile", "")
		process, log, err := child.Serve(cmd, syscall.SIGKILL, "eady to accept connections")
		if err != nil && try < tries && strings.Contains(log.String(), "in use") {
			continue // the port was free a moment ago; nobody knows it yet, so another one does as well
		}
		if err != nil {
			return server{}, failed("redis", err)
		}
		return server{
			suite:   "redis",
			version: versionOf(program),
			pid:     process.PID(),
			env:     []string{"PAWL_TEST_REDIS=127.0.0.1:" + port},
			stop: func() error {
				process.Stop(syscall.SIGKILL, serverGrace) // its data goes with the folder
				return nil
			},
		}, nil
	}
}

func startNATS(dir string) (server, error) {
	nats, err := natsserver.NewServer(&natsserver.Options{
		ServerName: "pawl-testenv",
		Host:       "127.0.0.1",
		Port:       natsserver.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   dir,
		NoLog:      true,
		NoSigs:     true,
	})
	if err != nil {
		return server{}, failed("nats", err)
	}
	go nats.Start()
	if !nats.ReadyForConnections(serverGrace) {
		nats.Shutdown()
		return server{}, failed("nats", fmt.Errorf("not ready after %v", serverGrace))
	}
	if !nats.JetStreamEnabled() {
		nats.Shutdown()
		return server{}, failed("nats", errors.New("JetStream did not start"))
	}
	return server{
		suite:   "nats",
		version: natsserver.VERSION,
		env:     []string{"PAWL_TEST_NATS=" + nats.ClientURL()},
		stop: func() error {
			nats.Shutdown()
			nats.WaitForShutdown()
			return nil
		},
	}, nil
}

// versionOf is the version that a program says it has: the first word that looks like one.
func versionOf(program string) string {
	said, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "of unknown version"
	}
	for word := range strings.FieldsSeq(string(said)) {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "v="), "v")
		if word != "" && word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return "of unknown version"
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
