//go:build fault || soak

package fault

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need/child"
)

// awaitLimit bounds the wait for a broken engine, not for a healthy one on a slow machine.
const awaitLimit = 3 * time.Minute

// What a failure shows of logs and sayings.
const (
	lastLogged = 40
	lastSaid   = 40
)

// fleet is the processes of one test.
type fleet struct {
	t       *testing.T
	address string
	said    chan saying   // by all of them
	over    chan struct{} // closed when nobody listens any more
	readers sync.WaitGroup
	started int
	heard   []string      // the last of what was said, for a failure
	limit   time.Duration // of silence
	env     []string      // what processes are told besides
}

// saying is one line that a process said, as words. None means that it has ended.
type saying struct {
	by    *process
	words []string
}

// process is this test binary once more, in a role.
type process struct {
	*child.Process
	name  string
	input io.WriteCloser
	log   string // file
}

func newFleet(t *testing.T, address string) *fleet {
	f := &fleet{t: t, address: address, said: make(chan saying, 1024), over: make(chan struct{}), limit: awaitLimit}
	t.Cleanup(func() {
		close(f.over)
		f.readers.Wait()
		if t.Failed() {
			t.Logf("what was said last:\n%s", strings.Join(f.heard, "\n"))
		}
	})
	return f
}

// start starts a process. It ends with the test, whatever happens.
func (f *fleet) start(role string) *process {
	f.t.Helper()
	f.started++
	p := &process{name: fmt.Sprintf("%s %d", role, f.started)}
	p.log = filepath.Join(f.t.TempDir(), "log")
	log, err := os.Create(p.log)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	output, writer, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	defer writer.Close()
	reader, input, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	defer reader.Close()
	p.input = input
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role, storeVariable+"="+f.address), f.env...)
	// Plain files, so that the end of the process is not waited for by a copier.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = reader, writer, log
	if p.Process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = p.Signal(syscall.SIGKILL)
		<-p.Done()
		_ = input.Close()
		if log := lastLines(p.log); f.t.Failed() && log != "" {
			f.t.Logf("log of %s (process %d):\n%s", p.name, p.PID(), log)
		}
	})
	f.readers.Add(1)
	go f.read(p, output)
	return p
}

// read passes on what a process says. What it wrote before it was killed is still read.
func (f *fleet) read(p *process, output *os.File) {
	defer f.readers.Done()
	defer output.Close()
	pass := func(words []string) bool {
		select {
		case f.said <- saying{p, words}:
			return true
		case <-f.over:
			return false
		}
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if !pass(strings.Fields(lines.Text())) {
			return
		}
	}
	pass(nil)
}

// await returns what is said next.
func (f *fleet) await() saying {
	f.t.Helper()
	select {
	case s := <-f.said:
		f.note(s)
		return s
	case <-time.After(f.limit):
		f.t.Fatalf("nothing was said for %v", f.limit)
		return saying{}
	}
}

// note remembers what was said, for a failure.
func (f *fleet) note(s saying) {
	if len(f.heard) == lastSaid {
		f.heard = append(f.heard[:0], f.heard[1:]...)
	}
	f.heard = append(f.heard, s.by.name+": "+strings.Join(s.words, " "))
}

// hear waits for a line of one process that begins with a word, and returns what follows. What others say meanwhile is
// passed over.
func (f *fleet) hear(p *process, word string) string {
	f.t.Helper()
	for {
		s := f.await()
		switch {
		case s.by != p:
		case s.words == nil:
			f.t.Fatalf("%s ended before it said %q: %v", p.name, word, p.Wait())
		case s.words[0] == word:
			return strings.Join(s.words[1:], " ")
		}
	}
}

// hearAll waits until a process has said lines that begin so, in any order.
func (f *fleet) hearAll(p *process, lines ...string) {
	f.t.Helper()
	for len(lines) > 0 {
		s := f.await()
		if s.by == p && s.words == nil {
			f.t.Fatalf("%s ended before it said %q: %v", p.name, lines, p.Wait())
		}
		if s.by != p {
			continue
		}
		line := strings.Join(s.words, " ")
		lines = slices.DeleteFunc(lines, func(begin string) bool { return line == begin || strings.HasPrefix(line, begin+" ") })
	}
}

// hearOf waits until as many jobs have said a word, and returns by number where.
func (f *fleet) hearOf(jobs int, word string) map[int]*process {
	f.t.Helper()
	numbers := map[int]*process{}
	for len(numbers) < jobs {
		s := f.await()
		if s.words == nil {
			f.t.Fatalf("%s ended: %v", s.by.name, s.by.Wait())
		}
		if s.words[0] != word {
			continue
		}
		var n int
		if _, err := fmt.Sscan(s.words[1], &n); err != nil {
			f.t.Fatal(err)
		}
		numbers[n] = s.by
	}
	return numbers
}

// tell writes a line to a process.
func (p *process) tell(line string) { _, _ = fmt.Fprintln(p.input, line) } // one that has ended will be missed otherwise

// kill ends a process as a crash does, and returns when nothing of it runs any more.
func (f *fleet) kill(p *process) {
	f.t.Helper()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	<-p.Done()
}

// finish lets a process stop gracefully and returns its last words.
func (f *fleet) finish(p *process) string {
	f.t.Helper()
	_ = p.input.Close()
	words := f.hear(p, "over")
	if err := p.Wait(); err != nil {
		f.t.Errorf("%s: %v", p.name, err)
	}
	return words
}

// lastLines is the end of a log.
func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-lastLogged):], "\n")
}
