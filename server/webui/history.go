package webui

import (
	"sync"
	"time"
)

// history is how some numbers stood while somebody looked: the store keeps none of them. It is of this process, and begins when the
// first page is opened.
type history struct {
	mu    sync.Mutex
	last  time.Time
	lines map[string][]float64
}

const (
	historyEvery = 3 * time.Second
	historyKept  = 60
)

// note adds a look, not more often than historyEvery.
func (h *history) note(l *look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.last) < historyEvery {
		return
	} else if now.Sub(h.last) > time.Minute {
		h.lines = map[string][]float64{} // nobody has looked: a line over the gap would lie
		h.last = now
	} else {
		h.last = now
	}
	oldest, _, _ := l.oldest()
	for name, v := range map[string]float64{
		"ready": float64(l.Ready.Jobs), "oldest": oldest.Seconds(), "running": float64(l.Running.Jobs), "workers": float64(l.Live()),
	} {
		line := append(h.lines[name], v)
		h.lines[name] = line[max(len(line)-historyKept, 0):]
	}
}

func (h *history) line(name string) []float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]float64(nil), h.lines[name]...)
}
