//go:build fault

package fault

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// chorus hears everybody at once, for tests that look at the store meanwhile: a process whose pipe is full stands still.
type chorus struct {
	f *fleet

	mu       sync.Mutex
	changed  *sync.Cond
	times    map[*process]map[string]int // how often each has said a first word
	last     map[*process]string         // what each said after "over"
	failures []string                    // meanings of failed runs
	failed   int                         // how many there were
}

// chorus begins to listen, and ends with the test. Nobody else may listen from then on.
func (f *fleet) chorus() *chorus {
	c := &chorus{f: f, times: map[*process]map[string]int{}, last: map[*process]string{}}
	c.changed = sync.NewCond(&c.mu)
	f.readers.Go(func() {
		for {
			select {
			case s := <-f.said:
				c.take(s)
			case <-f.over:
				return
			}
		}
	})
	return c
}

func (c *chorus) take(s saying) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f.note(s)
	if s.words == nil {
		return
	}
	if c.times[s.by] == nil {
		c.times[s.by] = map[string]int{}
	}
	c.times[s.by][s.words[0]]++
	switch s.words[0] {
	case "over":
		c.last[s.by] = strings.Join(s.words[1:], " ")
	case "failed":
		c.failed++
		if meant := strings.Join(s.words[2:], " "); !slices.Contains(c.failures, meant) {
			c.failures = append(c.failures, meant)
		}
	}
	c.changed.Broadcast()
}

// await waits until a process has said a word.
func (c *chorus) await(p *process, word string) {
	c.f.t.Helper()
	c.awaitTimes(p, word, 1)
}

// awaitTimes waits until it has said it so often.
func (c *chorus) awaitTimes(p *process, word string, times int) {
	c.f.t.Helper()
	late := time.AfterFunc(awaitLimit, c.changed.Broadcast)
	defer late.Stop()
	begin := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.times[p][word] < times {
		if time.Since(begin) >= awaitLimit {
			c.f.t.Fatalf("%s has said %q %d times in %v, want %d", p.name, word, c.times[p][word], awaitLimit, times)
		}
		c.changed.Wait()
	}
}

// finish lets a process stop gracefully and returns what it counted.
func (c *chorus) finish(p *process) counters {
	c.f.t.Helper()
	_ = p.input.Close()
	c.await(p, "over")
	if err := p.Wait(); err != nil {
		c.f.t.Errorf("%s: %v", p.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.f.counted(c.last[p])
}
