package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startLimit bounds the wait for a broken server, not for a healthy one.
const startLimit = 60 * time.Second

// Serve starts a server as Start does and returns when its log contains the line that says it is ready. If the server
// ends first, the error carries the end of its log. The log is returned in both cases.
func Serve(cmd *exec.Cmd, orphaned syscall.Signal, ready string) (*Process, *Log, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// A plain file, not an io.Writer: else waiting for a server would also wait for its own children.
	cmd.Stdout, cmd.Stderr = writer, writer
	process, err := Start(cmd, orphaned)
	_ = writer.Close()
	if err != nil {
		_ = reader.Close()
		return nil, nil, err
	}
	log := follow(reader, ready)
	select {
	case <-log.ready:
		return process, log, nil
	case <-process.Done():
		<-log.ended
		return nil, log, fmt.Errorf("%s ended before it was ready (%v):\n%s", cmd.Path, process.Wait(), log)
	case <-time.After(startLimit):
		process.Stop(syscall.SIGKILL, 0)
		return nil, log, fmt.Errorf("%s was not ready after %v:\n%s", cmd.Path, startLimit, log)
	}
}

// Log keeps the last lines of a server's log.
type Log struct {
	ready chan struct{} // closed when the awaited line came
	ended chan struct{} // closed when the log ended

	mu    sync.Mutex
	lines []string
}

const logLines = 40

func follow(file *os.File, ready string) *Log {
	l := &Log{ready: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		defer file.Close()
		found := false
		reader := bufio.NewReader(file)
		for {
			line, err := reader.ReadString('\n')
			if line != "" {
				l.add(strings.TrimRight(line, "\n"))
			}
			if !found && strings.Contains(line, ready) {
				found = true
				close(l.ready)
			}
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *Log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == logLines {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, line)
}

// String is the last lines of the log.
func (l *Log) String() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
