package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/server/httpapi"
)

// screen is a terminal that tmux keeps, with the program in it.
type screen struct {
	t      *testing.T
	tmux   string
	socket string
	more   chan struct{} // something was drawn
}

func newScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	s := &screen{t: t, tmux: need.Tool(t, "tmux"), socket: filepath.Join(t.TempDir(), "tmux"), more: make(chan struct{}, 1)}
	drawn := filepath.Join(filepath.Dir(s.socket), "drawn")
	if err := syscall.Mkfifo(drawn, 0o600); err != nil {
		t.Fatal(err)
	}
	from, err := os.OpenFile(drawn, os.O_RDWR, 0) // also to write: it has no end that way
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := from.Read(b); err != nil {
				return
			}
			select {
			case s.more <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = exec.Command(s.tmux, "-S", s.socket, "kill-server").Run()
		_ = from.Close()
	})
	line := "'" + strings.Join(cmd.Args, "' '") + "'; echo ended with $?; read wait"
	s.run("-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "30", "-c", cmd.Dir, "sh", "-c", "read go; "+line)
	s.run("pipe-pane", "cat > "+drawn)
	s.keys("Enter") // only now, so that nothing is drawn unheard
	return s
}

func (s *screen) run(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(s.tmux, append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.run(append([]string{"send-keys"}, keys...)...)
}

// shows waits until all of the words are on the screen.
func (s *screen) shows(words ...string) string {
	s.t.Helper()
	timeout := time.After(patience)
	for {
		text := s.run("capture-pane", "-p")
		missing := false
		for _, word := range words {
			missing = missing || !strings.Contains(text, word)
		}
		if !missing {
			return text
		}
		select {
		case <-s.more:
		case <-timeout:
			s.t.Fatalf("the screen never shows %q:\n%s", words, text)
		}
	}
}

func TestU8_TopInARealTerminal(t *testing.T) {
	server := startServer(t, "--queues", "default,mail")
	var failed, later httpapi.Receipt
	server.call("POST", "/jobs", `{"kind":"pawl.demo.fail","args":{"dead":true,"message":"no such card"},"queue":"default"}`, &failed)
	server.call("POST", "/jobs", `{"kind":"welcome","queue":"mail","in":"1h"}`, &later)
	server.call("GET", "/jobs/"+failed.ID+"?wait=50s", "", &httpapi.Job{})

	s := newScreen(t, program(t, "--server", server.url, "top"))
	s.shows("pawl top", "queues", "QUEUE", "> default", "  mail", "q quit")
	s.keys("Down")
	s.shows("> mail", "  default")
	s.keys("p")
	s.shows("mail: paused", "paused since")
	var q httpapi.Queue
	if server.call("GET", "/queues/mail", "", &q); q.Pause == nil {
		t.Errorf("%+v", q)
	}
	s.keys("p")
	s.shows("mail: resumed")
	q = httpapi.Queue{}
	if server.call("GET", "/queues/mail", "", &q); q.Pause != nil {
		t.Errorf("%+v", q)
	}
	s.keys("Up")
	s.shows("> default")
	s.keys("Enter")
	s.shows("jobs of default", "> "+failed.ID, "dead", "pawl.demo.fail")
	s.keys("Enter")
	s.shows("job "+failed.ID, "no such card", "failure 1")
	s.keys("r")
	s.shows("retry: changed")
	s.keys("Escape")
	s.shows("jobs of default")
	s.keys("Escape")
	s.shows("pawl top", "> default")
	s.keys("q")
	s.shows("ended with 0")
}

func TestU8_TopNeedsATerminal(t *testing.T) {
	server := startServer(t)
	if out, problems, code := endOf(t, program(t, "--server", server.url, "top")); code != 2 || !strings.Contains(problems, "needs a terminal") || out != "" {
		t.Errorf("%d: %s%s", code, out, problems)
	}
}
