package batch

import (
	"maps"
	"slices"
	"time"
)

// model is the batcher written down as plainly as possible: one step at a time, no goroutines, no timers, no sharing
// of code with the real one. It says which batches exist and which answers have been given after each step.
type model struct {
	rules    modelRules
	now      time.Duration
	keys     map[string]*modelKey
	line     []string // keys that are ready and wait for a place, first come first served
	places   int      // free ones
	items    int
	bytes    int
	arrived  map[int]time.Duration
	answers  map[int]string
	finished map[int]bool // processed to the end, or failed with the acquisition
}

type modelRules struct {
	policy                                           string
	hint                                             int
	wait                                             time.Duration // 0: no batch waits to become ready
	maxBatch, concurrency, maxWaiting                int
	totalConcurrency, totalItems, totalBytes, weight int
	acquires                                         bool
}

type modelKey struct {
	waiting []int
	batches []*modelBatch // in the order in which they started
}

type modelBatch struct {
	key        string
	items      []int
	processing bool // otherwise it acquires and is open
}

func newModel(rules modelRules) *model {
	return &model{
		rules: rules, places: rules.totalConcurrency, keys: make(map[string]*modelKey),
		arrived: make(map[int]time.Duration), answers: make(map[int]string), finished: make(map[int]bool),
	}
}

func (m *model) weigh(item int) int { return item % m.rules.weight }

func (m *model) ready(k *modelKey) bool {
	switch {
	case len(k.waiting) == 0:
		return false
	case len(k.waiting) >= m.rules.maxBatch && m.rules.policy != "pace":
		return true
	case m.rules.wait > 0 && m.now >= m.arrived[k.waiting[0]]+m.rules.wait:
		return true
	}
	switch m.rules.policy {
	case "immediate":
		return true
	case "balanced":
		return len(k.batches) == 0 || len(k.waiting) >= m.rules.hint
	default:
		return false
	}
}

func (m *model) startable(k *modelKey) bool {
	return len(k.batches) < m.rules.concurrency && m.ready(k)
}

// try starts what the key may start, or puts it in the line.
func (m *model) try(key string) {
	k := m.keys[key]
	for k != nil && !slices.Contains(m.line, key) && m.startable(k) {
		if m.places == 0 || len(m.line) > 0 {
			m.line = append(m.line, key)
			return
		}
		m.places--
		m.start(key)
	}
}

func (m *model) start(key string) {
	k := m.keys[key]
	n := min(len(k.waiting), m.rules.maxBatch)
	k.batches = append(k.batches, &modelBatch{key: key, items: slices.Clone(k.waiting[:n])})
	k.waiting = slices.Clone(k.waiting[n:])
}

// arrive is one call of Do or DoMany. What does not fit is refused, and all that comes behind it.
func (m *model) arrive(key string, items []int) {
	fitting, refusal := 0, ""
	for _, item := range items {
		switch {
		case m.items+1 > m.rules.totalItems:
			refusal = "TotalItems"
		case m.bytes+m.weigh(item) > m.rules.totalBytes:
			refusal = "TotalBytes"
		}
		if refusal != "" {
			break
		}
		m.items++
		m.bytes += m.weigh(item)
		fitting++
	}
	admitted := 0
	for _, item := range items[:fitting] {
		if limit := m.admit(key, item); limit != "" {
			refusal = limit
			break
		}
		admitted++
	}
	for i, item := range items[admitted:] {
		m.answers[item] = refusal
		if admitted+i < fitting {
			m.items--
			m.bytes -= m.weigh(item)
		}
	}
	m.rest()
}

// admit says which limit refuses the item, if any.
func (m *model) admit(key string, item int) string {
	k := m.keys[key]
	if k == nil {
		k = &modelKey{}
		m.keys[key] = k
	}
	m.arrived[item] = m.now
	if len(k.waiting) == 0 {
		for _, b := range slices.Backward(k.batches) {
			if b.processing {
				continue
			}
			if len(b.items) < m.rules.maxBatch {
				b.items = append(b.items, item)
				return ""
			}
			break
		}
	}
	switch {
	case m.rules.policy == "pace" && len(k.waiting) == m.rules.maxBatch:
		return "MaxBatch"
	case len(k.waiting) >= m.rules.maxWaiting*m.rules.maxBatch:
		return "MaxWaiting"
	}
	k.waiting = append(k.waiting, item)
	m.try(key)
	return ""
}

// rest is what happens after each step without anyone's doing: without an acquisition, what started begins.
func (m *model) rest() {
	if m.rules.acquires {
		return
	}
	for _, b := range m.batches() {
		if !b.processing {
			m.begin(b)
		}
	}
}

func (m *model) begin(b *modelBatch) {
	k := m.keys[b.key]
	n := min(len(k.waiting), m.rules.maxBatch-len(b.items))
	b.items = append(b.items, k.waiting[:n]...)
	k.waiting = slices.Clone(k.waiting[n:])
	b.processing = true
	if len(b.items) == 0 {
		m.finish(b, nil)
	}
}

// finish ends a batch, in processing or not, and passes its place on.
func (m *model) finish(b *modelBatch, answer func(i, item int) string) {
	k := m.keys[b.key]
	k.batches = slices.DeleteFunc(k.batches, func(other *modelBatch) bool { return other == b })
	for i, item := range b.items {
		m.items--
		m.bytes -= m.weigh(item)
		m.finished[item] = true
		if m.answers[item] == "" {
			m.answers[item] = answer(i, item)
		}
	}
	if len(m.line) == 0 {
		m.places++
		m.try(b.key)
	} else {
		m.try(b.key) // behind those who wait
		m.drop(b.key)
		m.pass()
	}
	m.drop(b.key)
	m.rest()
}

// pass gives a place to the first key in the line that can use it.
func (m *model) pass() {
	for len(m.line) > 0 {
		key := m.line[0]
		m.line = m.line[1:]
		if m.startable(m.keys[key]) {
			m.start(key)
			m.try(key)
			return
		}
	}
	m.places++
}

func (m *model) drop(key string) {
	if k := m.keys[key]; k != nil && len(k.waiting) == 0 && len(k.batches) == 0 {
		delete(m.keys, key)
		m.line = slices.DeleteFunc(m.line, func(other string) bool { return other == key })
	}
}

// leave is a caller whose context ends.
func (m *model) leave(key string, items []int) {
	for _, item := range items {
		if m.answers[item] != "" {
			continue
		}
		m.answers[item] = "left"
		k := m.keys[key]
		for _, b := range k.batches {
			if b.processing && slices.Contains(b.items, item) {
				m.answers[item] = "unknown"
			}
		}
		if m.answers[item] == "left" {
			m.remove(k, item)
		}
	}
	m.try(key) // what is left may be overdue
	m.drop(key)
	m.rest()
}

func (m *model) remove(k *modelKey, item int) {
	is := func(other int) bool { return other == item }
	k.waiting = slices.DeleteFunc(k.waiting, is)
	for _, b := range k.batches {
		b.items = slices.DeleteFunc(b.items, is)
	}
	m.items--
	m.bytes -= m.weigh(item)
}

// advance lets time pass, and every wait end in its turn.
func (m *model) advance(d time.Duration) {
	for target := m.now + d; ; {
		due, at := "", target
		for key, k := range m.keys {
			if m.rules.wait > 0 && len(k.waiting) > 0 && !m.ready(k) && m.arrived[k.waiting[0]]+m.rules.wait <= at {
				due, at = key, m.arrived[k.waiting[0]]+m.rules.wait
			}
		}
		m.now = at
		if due == "" {
			return
		}
		m.try(due)
		m.rest()
	}
}

// abandon is a Close without patience: what is not in processing is refused.
func (m *model) abandon() {
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		k := m.keys[key]
		items := slices.Clone(k.waiting)
		for _, b := range k.batches {
			if !b.processing {
				items = append(items, b.items...)
			}
		}
		for _, item := range items {
			m.answers[item] = "closed"
			m.remove(k, item)
		}
	}
}

// batches lists all in a stable order.
func (m *model) batches() (all []*modelBatch) {
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		all = append(all, m.keys[key].batches...)
	}
	return all
}
