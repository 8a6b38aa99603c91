package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlwork/pawl/internal/need/child"
)

// commandGrace is how long the command may take to end after a signal. A second signal ends the patience.
const commandGrace = 10 * time.Second

// server is one thing that runs beside the command.
type server struct {
	suite   string
	version string
	pid     int      // 0 if it runs inside this process
	env     []string // what the command is told
	stop    func() error
}

// host starts the servers, runs the command and takes everything down, in this order and whatever happens in between.
// The exit code is the command's, 1 if a server did not start or stop, 128 and the signal's number if one came first.
func host(dir string, opts options) (code int) {
	signals := watchEndings()
	defer removeFolder(dir)
	if err := adoptOrphans(); err != nil {
		say("%v", err)
		return 1
	}
	defer endChildren(nil)

	rows := toolsOf(opts.suites)
	if err := install(rows, opts.install); err != nil {
		say("%v", err)
		return 1
	}
	if sig, came := pending(signals); came {
		return 128 + int(sig)
	}
	servers, err := startServers(dir, rows, opts.suites)
	defer func() {
		for _, s := range slices.Backward(servers) {
			if err := s.stop(); err != nil {
				say("%v", err)
				code = max(code, 1)
			}
		}
	}()
	if err != nil {
		say("%v", err)
		return 1
	}
	return runCommand(dir, opts, servers, rows, signals)
}

func pending(signals <-chan os.Signal) (syscall.Signal, bool) {
	select {
	case sig := <-signals:
		return sig.(syscall.Signal), true
	default:
		return 0, false
	}
}

// startServers starts what the suites ask for. On error the servers that did start are returned with it.
func startServers(dir string, rows []tool, suites []string) ([]server, error) {
	var servers []server
	if slices.Contains(suites, "nats") {
		s, err := startNATS(filepath.Join(dir, "nats"))
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
	}
	for _, row := range rows {
		start := map[string]func(program, dir string) (server, error){
			"postgres": startPostgres,
			"redis":    startRedis,
		}[row.suite]
		if start == nil {
			continue // a tool that tests start themselves
		}
		s, err := start(row.find(), filepath.Join(dir, row.suite))
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// runCommand runs the command and says what ran.
func runCommand(dir string, opts options, servers []server, rows []tool, signals <-chan os.Signal) int {
	env, err := environment(dir, servers, rows)
	if err != nil {
		say("%v", err)
		return 1
	}
	output, err := watchOutput()
	if err != nil {
		say("%v", err)
		return 1
	}
	cmd := exec.Command(opts.command[0], opts.command[1:]...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = output.writer, os.Stderr
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		output.close()
		say("%v", err)
		return 127
	}
	keep := []int{process.PID()}
	for _, s := range servers {
		keep = append(keep, s.pid)
	}
	stopReaping := reapOrphans(keep)
	code := wait(process, signals)
	stopReaping()
	endChildren(keep) // before the output is closed: what the command left running may still hold it
	output.close()
	summarise(filepath.Join(dir, ledgerName), opts.suites, servers, rows, output.packages)
	return code
}

// wait waits for the command. A signal is passed on to its group; one that does not end of it is killed.
func wait(process *child.Process, signals <-chan os.Signal) int {
	var patience <-chan time.Time
	got := syscall.Signal(0)
	for {
		select {
		case sig := <-signals:
			if got != 0 {
				_ = process.SignalGroup(syscall.SIGKILL)
				continue
			}
			got = sig.(syscall.Signal)
			say("%v: ending the command", got)
			_ = process.SignalGroup(got)
			patience = time.After(commandGrace)
		case <-patience:
			say("the command does not end: killing it")
			_ = process.SignalGroup(syscall.SIGKILL)
		case <-process.Done():
			if got != 0 {
				return 128 + int(got)
			}
			return exitCode(process.Wait())
		}
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	default:
		say("%v", err)
		return 1
	}
}

const ledgerName = "ledger"

// environment is what the command gets: the servers' addresses, the tools in PATH, and a folder for temporary files that
// goes away with ours, since a killed `go test` leaves its own behind.
func environment(dir string, servers []server, rows []tool) ([]string, error) {
	temporary, ledger := filepath.Join(dir, "tmp"), filepath.Join(dir, ledgerName)
	if err := os.Mkdir(temporary, 0o777); err != nil {
		return nil, err
	}
	if err := os.Chmod(temporary, 0o777|os.ModeSticky); err != nil {
		return nil, err
	}
	if err := os.WriteFile(ledger, nil, 0o666); err != nil {
		return nil, err
	}
	path := filepath.SplitList(os.Getenv("PATH"))
	for _, row := range rows {
		if folder := filepath.Dir(row.find()); !slices.Contains(path, folder) {
			path = append(path, folder)
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, hostVariable+"=") })
	env = append(env,
		"PATH="+strings.Join(path, string(filepath.ListSeparator)),
		"TMPDIR="+temporary,
		"PAWL_TEST_REQUIRED=1",
		"PAWL_TEST_LEDGER="+ledger,
	)
	for _, s := range servers {
		env = append(env, s.env...)
	}
	return env, nil
}

// failed names the server that an error belongs to.
func failed(suite string, err error) error { return fmt.Errorf("%s: %w", suite, err) }
