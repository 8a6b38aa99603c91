package webui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl"
)

// Bounds of the log that is shown.
const (
	maxLogShown = 500
	maxLogRead  = 5000
)

// logLine is one line as it is shown.
type logLine struct {
	pawl.LogLine
	ID    string
	Level string
	First string // of a run: what stands before it
}

// levels are those of the filter, with their least.
var levels = []struct {
	Name, Text string
	least      int
}{{"", "All levels", -1000}, {"info", "Info and above", 0}, {"warn", "Warnings and above", 4}, {"error", "Errors", 8}}

func levelName(n int) string {
	switch {
	case n >= 8:
		return "ERROR"
	case n >= 4:
		return "WARN"
	case n >= 0:
		return "INFO"
	}
	return "DEBUG"
}

// logRead is what was read of the log.
type logRead struct {
	list []logLine
	all  int
	more bool
}

// lines are the newest lines that the filter lets through, and how many there are, read once for all parts of the page.
func (v *view) lines() (list []logLine, all int, more bool, err error) {
	d := v.data.(*jobData)
	if d.log == nil {
		list, all, more, err := v.readLines(d)
		if err != nil {
			return nil, 0, false, err
		}
		d.log = &logRead{list, all, more}
	}
	return d.log.list, d.log.all, d.log.more, nil
}

func (v *view) readLines(d *jobData) (list []logLine, all int, more bool, err error) {
	if d.Gone || v.Hidden() {
		return nil, 0, false, nil
	}
	least := -1000
	for _, l := range levels {
		if l.Name == d.Level {
			least = l.least
		}
	}
	attempts := map[int64]int{}
	for i := range d.Attempts {
		attempts[d.Attempts[i].Run] = d.Attempts[i].Number
	}
	run := int64(-1)
	for all < maxLogRead {
		some, err := v.app.e.Logs(v.ctx, d.Job.ID, all, 1000)
		if err != nil {
			return nil, 0, false, err
		}
		for i, l := range some {
			if l.Level < least || d.Attempt != "" && strconv.Itoa(attempts[l.Run]) != d.Attempt {
				continue
			}
			line := logLine{LogLine: l, ID: fmt.Sprintf("l-%d", all+i), Level: levelName(l.Level)}
			if l.Run != run {
				run = l.Run
				line.First = "Run " + count(run)
				if n := attempts[run]; n > 0 {
					line.First = fmt.Sprintf("Attempt %d, run %d", n, run)
				}
				for i := range d.Attempts {
					if d.Attempts[i].Run == run && d.Attempts[i].Worker != "" {
						line.First += " on " + d.Attempts[i].Worker
					}
				}
			}
			list = append(list, line)
		}
		all += len(some)
		if len(some) < 1000 {
			break
		}
		more = all >= maxLogRead
	}
	if len(list) > maxLogShown {
		list = list[len(list)-maxLogShown:]
	}
	return list, all, more, nil
}

func loadLog(v *view) ([]item, error) {
	list, _, _, err := v.lines()
	if err != nil {
		return nil, err
	}
	items := make([]item, len(list))
	for i := range list {
		items[i] = item{list[i].ID, list[i]}
	}
	return items, nil
}

// logHead is what stands over the log.
type logHead struct {
	Words  string
	Levels []orderLink
	Runs   []orderLink
	Follow bool
	Hidden bool
	None   bool
}

func loadLogHead(v *view) (any, error) {
	d := v.data.(*jobData)
	list, all, more, err := v.lines()
	if err != nil {
		return nil, err
	}
	h := logHead{Follow: d.Running(), Hidden: v.Hidden(), None: all == 0}
	h.Words = plural(pawl.Counted{Jobs: all, More: more}, "line", "lines")
	if len(list) < all {
		h.Words = count(len(list)) + " of " + h.Words
	}
	if d.Running() {
		h.Words += ", live"
	}
	for _, l := range levels {
		h.Levels = append(h.Levels, orderLink{l.Text, v.With("level", l.Name) + "#log", l.Name == d.Level})
	}
	h.Runs = append(h.Runs, orderLink{"All attempts", v.With("attempt", "") + "#log", d.Attempt == ""})
	for i := range d.Attempts {
		n := strconv.Itoa(d.Attempts[i].Number)
		h.Runs = append(h.Runs, orderLink{"Attempt " + n, v.With("attempt", n) + "#log", d.Attempt == n})
	}
	if len(h.Runs) < 3 {
		h.Runs = nil
	}
	return h, nil
}

// frames splits a stack: functions of users stay, those of Pawl and the runtime are folded.
type frame struct {
	Func, File string
	Own        bool
}

// stackLine is a frame, or how many were folded.
type stackLine struct {
	frame
	Folded int
}

func stackOf(text string, all bool) (list []stackLine) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 0 && strings.HasPrefix(lines[0], "goroutine ") {
		lines = lines[1:]
	}
	for i := 0; i < len(lines); i++ {
		f := frame{Func: strings.TrimSpace(lines[i])}
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\t") {
			f.File = strings.TrimSpace(lines[i+1])
			i++
		}
		name := strings.TrimPrefix(f.Func, "created by ")
		f.Own = !strings.HasPrefix(name, "github.com/pawlwork/pawl.") && !strings.HasPrefix(name, "github.com/pawlwork/pawl/internal/") &&
			!strings.HasPrefix(name, "runtime") && !strings.HasPrefix(name, "panic(")
		if all || f.Own {
			list = append(list, stackLine{frame: f})
			continue
		}
		if n := len(list); n > 0 && list[n-1].Folded > 0 {
			list[n-1].Folded++
		} else {
			list = append(list, stackLine{Folded: 1})
		}
	}
	return list
}

// StackLines are those of the attempt that is shown.
func (v *view) StackLines() []stackLine {
	d := v.data.(*jobData)
	if d.Chosen == nil || d.Chosen.Stack == "" {
		return nil
	}
	return stackOf(d.Chosen.Stack, v.query.Get("frames") == "all")
}

// AllFrames reports whether nothing is folded.
func (v *view) AllFrames() bool { return v.query.Get("frames") == "all" }
