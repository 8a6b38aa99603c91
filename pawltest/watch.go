package pawltest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// watch knows what a test's engine does. It lives outside of the bubble of a
// test in virtual time, and is guarded by a plain mutex, so that both sides can
// use it.
type watch struct {
	mu        sync.Mutex
	moves     uint64 // grows with everything that happens
	running   []handling
	last      string // the handler that ended last
	errs      map[job.ID]error
	drafts    []job.Draft
	bubble    string // its number in a dump; "" without one
	abandoned bool
	never     chan struct{} // of no bubble and never closed

	seen    uint64 // moves, when last looked at
	since   time.Time
	blocked int // looks in a row at which no goroutine could run
}

// handling is one handler at work.
type handling struct {
	id   job.ID
	run  int64
	text string
}

func newWatch() *watch {
	return &watch{errs: make(map[job.ID]error), never: make(chan struct{}), since: time.Now()}
}

func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves++
}

// enter notes the bubble that this goroutine is in.
func (w *watch) enter() {
	buf := make([]byte, 256)
	g, _ := parseGoroutine(string(buf[:runtime.Stack(buf, false)]))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bubble, w.moves = g.bubble, w.moves+1
}

// abandon leaves a bubble to itself, and wait keeps it from going on: its test
// has failed and is over, whatever wakes its goroutines up later.
func (w *watch) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned = true
}

func (w *watch) wait() {
	w.mu.Lock()
	abandoned := w.abandoned
	w.mu.Unlock()
	if abandoned {
		<-w.never // made outside the bubble, so that its time stands still as well
	}
}

// watched is the outermost middleware: it notes which handlers run, and what
// they return.
func (e *Engine) watched(next pawl.Work) pawl.Work {
	return func(ctx context.Context, j *pawl.Info) (err error) {
		h := handling{j.ID, j.Run, fmt.Sprintf("%s (job %s, attempt %d of %d)", j.Kind, j.ID, j.Attempt, j.MaxAttempts)}
		e.watch.began(h)
		e.signal()
		returned := false
		defer func() {
			if returned {
				return
			}
			value := recover()
			switch cause, ok := value.(error); {
			case value == nil:
				err = errors.New("the handler ended its goroutine")
			case ok:
				err = fmt.Errorf("panic: %w", cause)
			default:
				err = fmt.Errorf("panic: %v", value)
			}
			e.watch.ended(h, err)
			e.signal()
			if value != nil {
				panic(value) // the engine's to handle; the stack below is still the handler's
			}
		}()
		err = next(ctx, j)
		returned = true
		e.watch.ended(h, err)
		e.signal()
		return err
	}
}

func (w *watch) began(h handling) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves++
	w.running = append(w.running, h)
}

func (w *watch) ended(h handling, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves++
	w.running = slices.DeleteFunc(w.running, func(o handling) bool { return o.id == h.id && o.run == h.run })
	w.last = h.text
	w.errs[h.id] = err
}

// outcome is what the newest run of a job returned.
func (w *watch) outcome(id job.ID) (err error, ran bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err, ran = w.errs[id]
	return err, ran
}

// handlers names what runs.
func (w *watch) handlers() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.running) > 0:
		names := make([]string, len(w.running))
		for i, h := range w.running {
			names[i] = h.text
		}
		return "running: " + strings.Join(names, "; ")
	case w.last != "":
		return "no handler is running; the last one was " + w.last
	default:
		return "no handler has run"
	}
}

// still is for how long nothing has moved, by the clock of the caller.
func (w *watch) still() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.moves != w.seen {
		w.seen, w.since = w.moves, time.Now()
	}
	return time.Since(w.since)
}

// stuck says what virtual time waits for when it has stood still for so long;
// "" when it has not. A goroutine that computes is no standstill, and one look
// is no proof: a machine that is busy with something else stops all goroutines.
// Only the goroutine that watches calls it.
func (w *watch) stuck(limit time.Duration) string {
	const looks = 5
	still := w.still()
	if still < limit/5 {
		w.blocked = 0
		return ""
	}
	all := w.goroutines()
	if slices.ContainsFunc(all, goroutine.busy) {
		w.blocked = 0
		w.moved()
		return ""
	}
	if w.blocked++; still < limit || w.blocked < looks {
		return ""
	}
	return fmt.Sprintf(`pawltest: virtual time has stood still for %v of real time: a goroutine of this test waits for something outside of it, as a network, another process, or a channel or lock made before pawltest.Run.
%s
Use pawltest.Real, which runs in real time on any store. If the goroutine is an idle connection, closing it before the handler returns also helps (http.Client.CloseIdleConnections). pawltest.Standstill sets the limit.

%s`, still.Round(time.Millisecond), w.handlers(), all.text())
}

// goroutine is one entry of a dump.
type goroutine struct {
	state  string
	bubble string
	stack  string
}

type goroutines []goroutine

func (all goroutines) which(is func(goroutine) bool) (some goroutines) {
	for _, g := range all {
		if is(g) {
			some = append(some, g)
		}
	}
	return some
}

// goroutines are those of the bubble, or all when there is none.
func (w *watch) goroutines() (all goroutines) {
	w.mu.Lock()
	bubble := w.bubble
	w.mu.Unlock()
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) > 64<<20 {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for entry := range strings.SplitSeq(string(buf), "\n\n") {
		if g, ok := parseGoroutine(entry); ok && (bubble == "" || g.bubble == bubble) {
			all = append(all, g)
		}
	}
	return all
}

// As in "goroutine 36 [IO wait, 2 minutes, synctest bubble 1]:".
var goroutineHead = regexp.MustCompile(`^goroutine \d+ [^\[]*\[([^,\]]+)[^\]]*?(?:synctest bubble (\d+))?\]:`)

func parseGoroutine(entry string) (g goroutine, ok bool) {
	m := goroutineHead.FindStringSubmatch(entry)
	if m == nil {
		return g, false
	}
	return goroutine{state: m[1], bubble: m[2], stack: entry}, true
}

func (g goroutine) busy() bool {
	return strings.HasPrefix(g.state, "run") || strings.HasPrefix(g.state, "preempted") // running, runnable
}

// handling reports whether a handler runs on it.
func (g goroutine) handling() bool {
	return g.bubble == "" && strings.Contains(g.stack, "pawltest.(*Engine).watched")
}

// outside reports whether it waits for something that is not of its bubble.
func (g goroutine) outside() bool {
	return g.bubble != "" && !strings.HasSuffix(g.state, "(durable)") && !strings.HasPrefix(g.state, "synctest.")
}

// text shows the goroutines that matter when there are any, otherwise all.
func (all goroutines) text() string {
	const most = 20
	title := "goroutines:"
	if outside := all.which(goroutine.outside); len(outside) > 0 {
		all, title = outside, "goroutines that wait for something outside:"
	} else if handlers := all.which(goroutine.handling); len(handlers) > 0 {
		all, title = handlers, "goroutines of handlers:"
	}
	lines := []string{title}
	for i, g := range all {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		lines = append(lines, g.stack)
	}
	return strings.Join(lines, "\n\n")
}
