package pg

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/store/internal/meet"
)

// Together is where the namespaces of a process meet, to ask for all of them in
// one statement what each would ask in one of its own.
type Together struct {
	link *Link
	// Members is how many workers of this process are registered: as many are
	// expected at each meeting.
	Members atomic.Int64

	mu   sync.Mutex
	ends []func()
}

// NewTogether is for the namespaces on a link.
func NewTogether(l *Link) *Together { return &Together{link: l} }

// Close ends all meetings. What is under way is waited for.
func (t *Together) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, end := range t.ends {
		end()
	}
	t.ends = nil
}

const (
	// metMost bounds the namespaces of one statement.
	metMost = 500
	// metLimit ends a statement for all that does not come back.
	metLimit = 2 * time.Second
	// metSlow is what it may take. Beyond it each namespace asks alone for a while:
	// one of them may be slow, and the others must not feel it (P8).
	metSlow  = time.Second
	metApart = 30 * time.Second
)

// Meeting asks for several namespaces at once. A nil one is for a store that is
// alone.
type Meeting[Q, A any] struct {
	*meet.Meeting[Q, A]
	apart atomic.Pointer[func() time.Duration] // since when each asks alone
}

// MeetingKind says how a meeting asks.
type MeetingKind struct {
	Patience time.Duration // with those who are late
	Reserved bool          // over these connections, else over those of claims
	Limits   *Limits
}

// Meet makes a meeting. ask builds the statements that answer the asks: whoever
// has no answer in the end asks alone.
func Meet[Q, A any](t *Together, kind MeetingKind, ask func(asks []Q, answers []*A) []*Statement) *Meeting[Q, A] {
	if t == nil {
		return nil
	}
	m := &Meeting[Q, A]{}
	m.Meeting = meet.New(meet.Options[Q, A]{
		Patience: kind.Patience, Most: metMost, Expected: &t.Members,
		Run: func(ctx context.Context, asks []Q) []*A {
			pool := t.link.Claim
			if kind.Reserved {
				pool = t.link.Reserved
			}
			ctx, cancel := context.WithTimeout(ctx, metLimit)
			defer cancel()
			answers := make([]*A, len(asks))
			took := Stopwatch()
			err := t.link.Send(ctx, pool, kind.Limits, ask(asks, answers)...)
			if err != nil || took() > metSlow {
				apart := Stopwatch()
				m.apart.Store(&apart)
			}
			if err != nil {
				return nil
			}
			return answers
		},
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, m.Close)
	return m
}

// Do asks together with others; false means: ask alone.
func (m *Meeting[Q, A]) Do(ctx context.Context, ask Q) (answer A, ok bool) {
	if m == nil {
		return answer, false
	}
	if since := m.apart.Load(); since != nil {
		if (*since)() < metApart {
			return answer, false
		}
		m.apart.CompareAndSwap(since, nil)
	}
	return m.Meeting.Do(ctx, ask)
}

// LookFor asks of each namespace whether it has something. The statement takes their
// numbers and answers, by their places, yes or no.
func LookFor(text string) func(namespaces []int32, answers []*bool) []*Statement {
	return func(namespaces []int32, answers []*bool) []*Statement {
		return []*Statement{{Text: text, Args: []any{namespaces}, Each: func(scan Scan) error {
			var n int
			var some bool
			if err := scan(&n, &some); err != nil {
				return err
			}
			answers[n-1] = &some
			return nil
		}}}
	}
}
