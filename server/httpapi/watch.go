package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is kept for those who come back, of each subject.
const (
	keptEvents = 64
	keptBytes  = 256 << 10
)

// view is how a subject stands.
type view interface {
	// since is what changed after an older view; nil where nothing did.
	since(older view) view
}

// watch is one subject.
type watch struct {
	readers int
	idle    time.Time // when the last reader left
	first   *firstLook
	looked  time.Time
	now     view
	whole   []byte // now as an event, made when it is asked for
	epoch   string // of this watch: places of another one mean nothing here
	version int64
	ring    []event
	bytes   int
	changed chan struct{} // closed with the next event
	ended   bool          // the subject is gone, or the engine is closed
}

// event is one change, as it is sent.
type event struct {
	version int64
	frame   []byte
}

// place is what a reader has seen.
type place struct {
	epoch   string
	version int64
}

func (p place) String() string { return p.epoch + "-" + strconv.FormatInt(p.version, 10) }

// readPlace reads a Last-Event-ID. What is none is the place of nobody.
func readPlace(text string) place {
	epoch, version, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return place{}
	}
	return place{epoch, n}
}

// add makes an event for those who read.
func (w *watch) add(name string, data any) {
	w.version++
	w.whole = nil
	frame := frameOf(place{w.epoch, w.version}, name, data)
	w.ring, w.bytes = append(w.ring, event{w.version, frame}), w.bytes+len(frame)
	for len(w.ring) > keptEvents || w.bytes > keptBytes && len(w.ring) > 1 {
		w.bytes -= len(w.ring[0].frame)
		w.ring = slices.Delete(w.ring, 0, 1)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// end is that of a subject: its readers are sent away.
func (w *watch) end() {
	if !w.ended {
		w.ended = true
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// after is what a reader has to be sent who has seen so much: what changed since, or the whole
// view where that is not known any more.
func (w *watch) after(seen place) (frames [][]byte) {
	oldest := w.version + 1
	if len(w.ring) > 0 {
		oldest = w.ring[0].version
	}
	if seen.epoch != w.epoch || seen.version > w.version || seen.version < oldest-1 {
		if w.whole == nil {
			w.whole = frameOf(place{w.epoch, w.version}, "reset", w.now)
		}
		return [][]byte{w.whole}
	}
	for _, e := range w.ring {
		if e.version > seen.version {
			frames = append(frames, e.frame)
		}
	}
	return frames
}

// frameOf is an event as text. JSON has no line breaks.
func frameOf(id place, name string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}") // plain values
	}
	return fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, name, text)
}
