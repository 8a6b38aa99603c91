package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A program is what happens to a committer, in slots of ten nanoseconds of virtual
// time. Within a slot each kind of event has a moment of its own, so that there is
// one right answer: calls arrive at 0, callers give up at 3, Begin ends at 5,
// calls are answered at 7, Close comes at 9.
type program struct {
	MaxRows  int
	Calls    []programCall
	Begins   []programBegin // taken in turn; none: there is no Begin
	Commits  []programCommit
	Close    int // slot
	Unknown  bool
	Reuse    bool
	YieldAll bool
}

type programCall struct {
	Arrives int // slot; each call has its own
	Rows    int
	Leaves  int // slot, or 0
}

type programBegin struct {
	Slots int
	Fails bool
}

type programCommit struct {
	Slots int
	Later bool // it returns at once, and another goroutine answers
}

const (
	leavesAt  = 3
	beginEnds = 5
	answersAt = 7
	closesAt  = 9
)

// after is the next time later than t at a moment of a slot.
func after(t, moment int) int {
	next := t - t%10 + moment
	if next <= t {
		next += 10
	}
	return next
}

func drawProgram(t *rapid.T) program {
	number := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	p := program{MaxRows: number("max rows", 1, 12), Unknown: yes("unknown"), Reuse: yes("reuse"), YieldAll: yes("yield all"), Close: number("close", 0, 80)}
	slot := 0
	for range number("calls", 1, 30) {
		slot += number("gap", 1, 3)
		c := programCall{Arrives: slot, Rows: number("rows", 0, 14)}
		if yes("leaves") {
			c.Leaves = max(1, slot+number("after", -2, 25))
		}
		p.Calls = append(p.Calls, c)
	}
	if yes("begins") {
		for range number("begins", 1, 4) {
			p.Begins = append(p.Begins, programBegin{number("begin", 0, 9), number("fails", 0, 4) == 0})
		}
	}
	for range number("commits", 1, 4) {
		p.Commits = append(p.Commits, programCommit{number("commit", 0, 20), number("later", 0, 3) == 0})
	}
	return p
}

// A history is what came of a program.
type history struct {
	Batches [][]int
	Answers []string // of each call: what, and when
	Closed  int      // when Close returned
}

// The committer and a plain model go through the same random program in virtual
// time: the same batches in the same order, the same answers at the same moment. A
// goroutine that is left over fails the bubble.
func TestJ2_AgreesWithThePlainModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProgram(rt)
		var got history
		var faults []error
		synctest.Test(t, func(*testing.T) { got, faults = p.run() })
		if err := errors.Join(faults...); err != nil {
			rt.Fatalf("%+v: %v", p, err)
		}
		want := newModel(p).run()
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			rt.Fatalf("%+v:\ngot  %+v\nwant %+v", p, got, want)
		}
	})
}

// run is the program with a real committer.
func (p program) run() (h history, faults []error) {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards faults and free
	fault := func(text string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, fmt.Errorf(text, args...))
	}
	start := time.Now()
	now := func() int { return int(time.Since(start)) }
	until := func(t int) { time.Sleep(time.Duration(t - now())) } // virtual: an event of the program comes at its time
	own := func(id int) error { return fmt.Errorf("answer %d", id) }
	errBegin := errors.New("begin")

	begins, commits, open := 0, 0, false
	o := Options[*someCall]{MaxRows: p.MaxRows, Reuse: p.Reuse, Closed: errClosed, Yield: UntilHalf}
	if p.YieldAll {
		o.Yield = UntilAll
	}
	if p.Unknown {
		o.Unknown = func(error) error { return errUnknown }
	}
	if len(p.Begins) > 0 {
		o.Begin = func() error {
			if open {
				fault("Begin before the End of the last")
			}
			open = true
			b := p.Begins[begins%len(p.Begins)]
			begins++
			until(after(now(), beginEnds) + 10*b.Slots)
			if b.Fails {
				return errBegin
			}
			return nil
		}
		o.End = func() {
			if !open {
				fault("End without a Begin")
			}
			open = false
		}
	}
	o.Commit = func(batch []*someCall) {
		ids := idsOf(batch)
		h.Batches = append(h.Batches, ids)
		c := p.Commits[commits%len(p.Commits)]
		commits++
		if c.Later && p.Reuse {
			batch = slices.Clone(batch)
		}
		answer := func() {
			until(after(now(), answersAt) + 10*c.Slots)
			if got := idsOf(batch); !slices.Equal(got, ids) {
				fault("a batch of %v has become %v", ids, got)
			}
			for _, i := range batch {
				i.Answer(own(i.id))
			}
		}
		if c.Later {
			wg.Go(answer)
		} else {
			answer()
		}
	}
	m := Start(o)

	h.Answers = make([]string, len(p.Calls))
	var free []*someCall
	for id, c := range p.Calls {
		wg.Go(func() {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if c.Leaves > 0 {
				defer time.AfterFunc(time.Duration(10*c.Leaves+leavesAt), func() { cancel(errTired) }).Stop()
			}
			until(10 * c.Arrives)
			var i *someCall
			mu.Lock()
			if n := len(free); n > 0 {
				i, free = free[n-1], free[:n-1]
			} else {
				i = newCall(0, 0)
			}
			mu.Unlock()
			i.id, i.rows = id, c.Rows
			err := m.Do(ctx, i)
			what := "its own"
			switch {
			case err == nil:
				what = "nothing"
			case errors.Is(err, errTired), errors.Is(err, errUnknown), errors.Is(err, errClosed), errors.Is(err, errBegin):
				what = err.Error()
			case err.Error() != own(id).Error():
				what = "another's"
			}
			h.Answers[id] = fmt.Sprintf("%s at %d", what, now())
			if i.Answered() {
				mu.Lock()
				free = append(free, i)
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		until(10*p.Close + closesAt)
		m.Close()
		h.Closed = now()
	})
	wg.Wait()
	return h, faults
}

// model is the program carried out by somebody who looks at the clock every
// nanosecond.
type model struct {
	program
	history
	waiting, batch  []int
	taken           map[int]bool
	answerAt        map[int]int // of those who are answered later
	idle, closed    bool
	beginAt         int // when the begin under way ends, or 0
	commitAt        int // when the commit under way ends, or 0
	fails           bool
	begins, commits int
}

func newModel(p program) *model {
	return &model{program: p, history: history{Answers: make([]string, len(p.Calls)), Closed: -1}, idle: true, taken: map[int]bool{}, answerAt: map[int]int{}}
}

func (m *model) run() history {
	for t := 0; m.Closed < 0 || slices.Contains(m.Answers, "") || len(m.answerAt) > 0; t++ {
		for id, c := range m.Calls {
			if t == 10*c.Arrives {
				m.arrive(t, id)
			}
			if t == 10*c.Leaves+leavesAt && c.Leaves >= c.Arrives && m.Answers[id] == "" {
				m.leave(t, id)
			}
			if m.answerAt[id] == t && t > 0 {
				m.answer(t, id, "its own")
				delete(m.answerAt, id)
			}
		}
		switch {
		case m.beginAt == t && t > 0:
			m.take(t)
		case m.commitAt == t && t > 0:
			for _, id := range m.batch {
				m.answer(t, id, "its own")
			}
			m.next(t)
		}
		m.closed = m.closed || t == 10*m.program.Close+closesAt
		if m.closed && m.idle && m.Closed < 0 {
			m.Closed = t
		}
	}
	return m.history
}

func (m *model) answer(t, id int, what string) {
	if m.Answers[id] == "" {
		m.Answers[id] = fmt.Sprintf("%s at %d", what, t)
	}
}

func (m *model) arrive(t, id int) {
	switch c := m.Calls[id]; {
	case c.Leaves > 0 && c.Leaves < c.Arrives:
		m.answer(t, id, errTired.Error())
	case m.closed:
		m.answer(t, id, errClosed.Error())
	default:
		m.waiting = append(m.waiting, id)
		if m.idle {
			m.next(t)
		}
	}
}

func (m *model) leave(t, id int) {
	if n := slices.Index(m.waiting, id); n >= 0 {
		m.waiting = slices.Delete(m.waiting, n, n+1)
		m.answer(t, id, errTired.Error())
	} else if m.taken[id] && m.Unknown {
		m.answer(t, id, errUnknown.Error())
	}
}

// next is what the committer does when it has nothing under way.
func (m *model) next(t int) {
	m.beginAt, m.commitAt = 0, 0
	m.idle = len(m.waiting) == 0
	switch {
	case m.idle:
	case len(m.Begins) == 0:
		m.take(t)
	default:
		b := m.Begins[m.begins%len(m.Begins)]
		m.begins++
		m.beginAt, m.fails = after(t, beginEnds)+10*b.Slots, b.Fails
	}
}

func (m *model) take(t int) {
	m.batch = nil
	rows := 0
	for _, id := range m.waiting {
		rows += m.Calls[id].Rows
		if len(m.batch) > 0 && rows > m.MaxRows {
			break
		}
		m.batch = append(m.batch, id)
	}
	m.waiting = m.waiting[len(m.batch):]
	if len(m.batch) == 0 || m.fails {
		for _, id := range m.batch {
			m.answer(t, id, "begin")
		}
		m.next(t)
		return
	}
	m.Batches = append(m.Batches, m.batch)
	c := m.Commits[m.commits%len(m.Commits)]
	m.commits++
	ends := after(t, answersAt) + 10*c.Slots
	for _, id := range m.batch {
		m.taken[id] = true
		if c.Later {
			m.answerAt[id] = ends
		}
	}
	if c.Later {
		m.next(t)
	} else {
		m.beginAt, m.commitAt = 0, ends
	}
}
