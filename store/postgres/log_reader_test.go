package postgres

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// logReader is one who reads events while others write.
type logReader interface {
	// about is what it reads.
	about() stream.Matcher
	// next is what comes next; more says that there may be more now.
	next(t *testing.T) (events []stream.Event, more bool, err error)
}

// readersOf are four named cursors, and two that keep their positions themselves.
func readersOf(t *testing.T, s *Store) (list []logReader) {
	t.Helper()
	for _, topic := range []string{">", "orders.*", ">", "orders.1", ">", "orders.2"} {
		m, err := stream.Filter{Topic: topic}.Matcher()
		if err != nil {
			t.Fatal(err)
		}
		place := placeReader{s: s, match: m}
		if len(list) >= 4 {
			list = append(list, &place)
			continue
		}
		list = append(list, &cursorReader{placeReader: place, name: uuid.NewString(), filter: stream.Filter{Topic: topic}})
	}
	return list
}

// placeReader goes from position to position.
type placeReader struct {
	s     *Store
	match stream.Matcher
	at    stream.Position
}

func (f *placeReader) about() stream.Matcher { return f.match }

func (f *placeReader) next(t *testing.T) ([]stream.Event, bool, error) {
	page, err := f.s.Events(t.Context(), store.EventQuery{Match: f.match, After: f.at, Limit: 64})
	if err == nil {
		f.at = page.Next
	}
	return page.Events, page.More, err
}

// cursorReader keeps its place in a named cursor, which it opens again and again.
type cursorReader struct {
	placeReader
	name   string
	filter stream.Filter
	state  store.CursorState
	holder uuid.UUID
	moves  int
}

func (f *cursorReader) next(t *testing.T) ([]stream.Event, bool, error) {
	if f.moves%20 == 0 {
		f.holder = uuid.New()
		var err error
		if f.state, err = f.s.OpenCursor(t.Context(), store.CursorOpen{Name: f.name, Filter: f.filter, Holder: f.holder}); err != nil {
			return nil, false, err
		}
		f.at = f.state.At
	}
	events, more, err := f.placeReader.next(t)
	if err != nil || f.at.Equal(f.state.At) {
		return events, more, err
	}
	f.moves++
	f.state, err = f.s.MoveCursor(t.Context(), store.CursorMove{Name: f.name, Turn: f.state.Turn, Holder: f.holder, To: f.at})
	return events, more, err
}

// published is what writers have committed, with the event that each answers. It is the model:
// it knows nothing of positions.
type published struct {
	mu       sync.Mutex
	changed  *sync.Cond
	cause    map[string]string
	last     []string // some that can be seen
	over     bool     // nobody waits any more
	commits  int
	held     int
	prepared int
}

func newPublished() *published {
	p := &published{cause: map[string]string{}}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *published) add(made map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cause := range made {
		p.cause[id] = cause
		if p.last = append(p.last, id); len(p.last) > 20 {
			p.last = p.last[1:]
		}
	}
	p.commits++
	p.changed.Broadcast()
}

// some is an event that another writer has committed, or none.
func (p *published) some(r *rand.Rand) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == 0 {
		return ""
	}
	return p.last[r.IntN(len(p.last))]
}

// waitFor returns when so many more events have been committed.
func (p *published) waitFor(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held++
	for target := len(p.cause) + n; len(p.cause) < target && !p.over; {
		p.changed.Wait()
	}
}

// letAllGo ends all waits, those to come, too.
func (p *published) letAllGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.changed.Broadcast()
}

// follow reads until nobody writes any more, and compares with what was committed.
func (p *published) follow(t *testing.T, f logReader, ended <-chan struct{}) {
	about, seen, last, faults := f.about().Pattern.String(), map[string]bool{}, stream.Position{}, 0
	fault := func(format string, args ...any) {
		if faults++; faults < 10 {
			t.Errorf(about+": "+format, args...)
		}
	}
	for over := false; ; {
		select {
		case <-ended:
			over = true
		default:
		}
		events, more, err := f.next(t)
		if err != nil {
			fault("%v", err)
			return
		}
		for i := range events {
			e := &events[i]
			if seen[e.ID] {
				fault("event %s came twice", e.ID)
			}
			if order, ok := e.Position.Compare(last); !last.IsZero() && (!ok || order <= 0) {
				fault("%s came after %s", e.Position.Debug(), last.Debug())
			}
			if e.Causation != "" && about == ">" && !seen[e.Causation] {
				fault("event %s came before %s, which it answers", e.ID, e.Causation)
			}
			last, seen[e.ID] = e.Position, true
		}
		if over && !more {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.cause {
		if !seen[id] && f.about().Pattern.Match(topicOf(id)) {
			fault("event %s was skipped", id)
		}
	}
	for id := range seen {
		if _, ok := p.cause[id]; !ok {
			fault("event %s was never committed", id)
		}
	}
}
