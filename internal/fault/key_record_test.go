//go:build fault || soak

package fault

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// keyLine is one line of the record that runs of keyed jobs leave in a file. Everybody appends to it, each line in one
// write, so the order of the lines is one that the events had: a run is at work from its first line to its last, at least.
type keyLine struct {
	Word    string // begin, done and failed, of a run; doomed and reaped, of a process: before it is killed, and after
	Key     string
	N       int // of the job, as they were enqueued by key
	Run     int64
	Process int
}

// appendTo writes the line.
func (l keyLine) appendTo(file *os.File) error {
	_, err := fmt.Fprintf(file, "%s %s %d %d %d\n", l.Word, l.Key, l.N, l.Run, l.Process)
	return err
}

// openRecord opens a record to append to.
func openRecord(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// readRecord reads what all have appended.
func readRecord(t *testing.T, path string) (lines []keyLine) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(text)) {
		var l keyLine
		if _, err := fmt.Sscan(text, &l.Word, &l.Key, &l.N, &l.Run, &l.Process); err != nil {
			t.Fatalf("record: %q: %v", text, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// excerpt is what a record says of one key, and of processes.
func excerpt(lines []keyLine, key string) string {
	var b strings.Builder
	for i, l := range lines {
		if l.Key == key || l.Key == "-" {
			fmt.Fprintf(&b, "%d: %s %s %d, run %d, process %d\n", i+1, l.Word, l.Key, l.N, l.Run, l.Process)
		}
	}
	return b.String()
}

// keyBound is what a limit promises for each key.
type keyBound struct {
	Concurrent int
	Ordered    bool
}

// keyWatch holds a record against bounds, knowing nothing but the promise.
type keyWatch struct {
	bound  func(key string) keyBound
	open   map[string][]keyLine // by key: runs that are at work
	doomed map[string][]keyLine // by key: runs that may be: others of the machine may know sooner than the record that a process is dead
	most   map[string]int       // by key: of them at once
	last   map[string]keyLine   // by key: what was seen last
	begun  map[keyLine]bool
	done   map[string]map[int]bool // by key
	cut    int                     // runs that have no end: their process was killed
	failed int
	faults []string
	first  string // key of the first fault
}

// watchKeys reads a record from its beginning to its end.
func watchKeys(lines []keyLine, bound func(key string) keyBound) *keyWatch {
	w := &keyWatch{
		bound: bound, open: map[string][]keyLine{}, doomed: map[string][]keyLine{}, most: map[string]int{}, last: map[string]keyLine{},
		begun: map[keyLine]bool{}, done: map[string]map[int]bool{},
	}
	for i, l := range lines {
		switch l.Word {
		case "begin":
			w.begin(i, l)
		case "done", "failed":
			w.end(i, l)
		case "doomed":
			for key, open := range w.open {
				w.open[key] = slices.DeleteFunc(open, func(o keyLine) bool {
					if o.Process == l.Process {
						w.doomed[key] = append(w.doomed[key], o)
					}
					return o.Process == l.Process
				})
			}
		case "reaped": // nothing of it is at work any more
			for _, runs := range []map[string][]keyLine{w.open, w.doomed} {
				for key := range runs {
					before := len(runs[key])
					runs[key] = slices.DeleteFunc(runs[key], func(o keyLine) bool { return o.Process == l.Process })
					w.cut += before - len(runs[key])
				}
			}
		default:
			w.fault(i, l, "is no line of a record")
		}
	}
	for _, open := range w.open {
		for _, o := range open {
			w.fault(len(lines), o, "has no end")
		}
	}
	return w
}

func (w *keyWatch) fault(i int, l keyLine, format string, args ...any) {
	if len(w.faults) == 0 {
		w.first = l.Key
	}
	w.faults = append(w.faults, fmt.Sprintf("line %d, %+v: ", i+1, l)+fmt.Sprintf(format, args...))
}

// begin: no more than the bound are at work, and in an ordered key a job begins only after the one before it is done for
// good. That one may begin again, when its process was killed before the store knew, but never after the next one has.
func (w *keyWatch) begin(i int, l keyLine) {
	run := keyLine{Key: l.Key, N: l.N, Run: l.Run}
	if w.begun[run] {
		w.fault(i, l, "this run has begun before")
	}
	w.begun[run] = true
	bound := w.bound(l.Key)
	if len(w.open[l.Key]) >= bound.Concurrent {
		w.fault(i, l, "%d of the key are at work: %+v", len(w.open[l.Key]), w.open[l.Key])
	}
	w.open[l.Key] = append(w.open[l.Key], l)
	w.most[l.Key] = max(w.most[l.Key], len(w.open[l.Key]))
	before, seen := w.last[l.Key]
	switch {
	case !bound.Ordered:
	case !seen && l.N == 0, seen && l.N == before.N, seen && l.N == before.N+1 && before.Word == "done":
	default:
		w.fault(i, l, "comes out of order, after %+v", before)
	}
	w.last[l.Key] = l
}

// end: who ends has begun, in the same process.
func (w *keyWatch) end(i int, l keyLine) {
	begin := l
	begin.Word = "begin"
	runs := w.open
	if !slices.Contains(runs[l.Key], begin) {
		runs = w.doomed
	}
	at := slices.Index(runs[l.Key], begin)
	if at < 0 {
		w.fault(i, l, "is not at work")
		return
	}
	runs[l.Key] = slices.Delete(runs[l.Key], at, at+1)
	if w.last[l.Key] == begin || !w.bound(l.Key).Ordered {
		w.last[l.Key] = l
	}
	switch l.Word {
	case "failed":
		w.failed++
	case "done":
		if w.done[l.Key] == nil {
			w.done[l.Key] = map[int]bool{}
		}
		w.done[l.Key][l.N] = true
	}
}

// TestFault_J19_ARecordShowsEachFault shows that the reader of records is not blind: it sees what may not be, and only that.
func TestFault_J19_ARecordShowsEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		bound  keyBound
		faults int
	}{
		"retried":            {"begin a 0 1 7,failed a 0 1 7,begin a 0 2 8,done a 0 2 8,begin a 1 1 7,done a 1 1 7", keyBound{1, true}, 0},
		"rescued":            {"begin a 0 1 7,reaped - 0 0 7,begin a 0 2 8,done a 0 2 8", keyBound{1, true}, 0},
		"ends while doomed":  {"begin a 0 1 7,doomed - 0 0 7,done a 0 1 7,reaped - 0 0 7,begin a 1 1 8,done a 1 1 8", keyBound{1, true}, 0},
		"known dead sooner":  {"begin a 0 1 7,doomed - 0 0 7,begin a 0 2 8,reaped - 0 0 7,done a 0 2 8", keyBound{1, true}, 0},
		"doomed head passed": {"begin a 0 1 7,doomed - 0 0 7,begin a 1 1 8,reaped - 0 0 7,done a 1 1 8", keyBound{1, true}, 1},
		"done but unknown":   {"begin a 0 1 7,done a 0 1 7,reaped - 0 0 7,begin a 0 2 8,done a 0 2 8", keyBound{1, true}, 0},
		"two of two":         {"begin a 1 1 7,begin a 0 1 7,done a 0 1 7,done a 1 1 7", keyBound{2, false}, 0},
		"three of two":       {"begin a 0 1 7,begin a 1 1 7,begin a 2 1 8,done a 2 1 8,done a 0 1 7,done a 1 1 7", keyBound{2, false}, 1},
		"killed, not reaped": {"begin a 0 1 7,begin a 0 2 8,reaped - 0 0 7,done a 0 2 8", keyBound{1, true}, 1},
		"head passed":        {"begin a 0 1 7,failed a 0 1 7,begin a 1 1 7,done a 1 1 7", keyBound{1, true}, 1},
		"head lost":          {"begin a 0 1 7,reaped - 0 0 7,begin a 1 1 8,done a 1 1 8", keyBound{1, true}, 1},
		"one left out":       {"begin a 0 1 7,done a 0 1 7,begin a 2 1 7,done a 2 1 7", keyBound{1, true}, 1},
		"back again":         {"begin a 0 1 7,done a 0 1 7,begin a 1 1 7,done a 1 1 7,begin a 0 2 7,done a 0 2 7", keyBound{1, true}, 1},
		"not the first":      {"begin a 1 1 7,done a 1 1 7", keyBound{1, true}, 1},
		"a run twice":        {"begin a 0 1 7,reaped - 0 0 7,begin a 0 1 8,done a 0 1 8", keyBound{1, true}, 1},
		"no end":             {"begin a 0 1 7", keyBound{1, true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/record"
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(c.record, ",", "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w := watchKeys(readRecord(t, path), func(string) keyBound { return c.bound })
			if len(w.faults) != c.faults {
				t.Errorf("faults %q, want %d", w.faults, c.faults)
			}
		})
	}
}
