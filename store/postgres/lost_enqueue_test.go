package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// enqueueing makes a case of one call. Every draft must be in once, and its
// receipt must say so: its own row is no duplicate of it.
func enqueueing(name string, make func(l *lossy) []job.Draft) lostCase {
	return lostCase{name: name, wakes: true, silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
		drafts := make(l)
		var receipts []job.Receipt
		call := func(ctx context.Context) (err error) {
			receipts, err = l.s.Enqueue(ctx, drafts)
			return err
		}
		return call, func(err error) {
			l.surely(err)
			for i, r := range receipts {
				if r.ID != drafts[i].ID || r.Duplicate && !drafts[i].Resend {
					l.t.Errorf("draft %d has receipt %+v, its id is %s", i, r, drafts[i].ID)
				}
			}
			l.get(draftIDs(drafts)...)
			l.count(len(drafts))
		}
	}}
}

func TestJ32_LostAnswers_Enqueue(t *testing.T) {
	loseEach(t,
		enqueueing("plain", func(l *lossy) []job.Draft { return l.drafts(3) }),
		enqueueing("unique", func(l *lossy) []job.Draft {
			return []job.Draft{l.draft(l.unique("b")), l.draft(), l.draft(l.unique("a"))}
		}),
		enqueueing("resend", func(l *lossy) []job.Draft {
			resend := func(d *job.Draft) { d.Resend = true }
			return []job.Draft{l.draft(resend), l.draft(resend, l.unique("a")), l.draft()}
		}),
		enqueueing("bulk", func(l *lossy) []job.Draft { return l.drafts(jobs.Bulk) }),
		enqueueing("bulk unique", func(l *lossy) []job.Draft { return append(l.drafts(jobs.Bulk), l.draft(l.unique("a"))) }),
		lostCase{name: "hand-over", wakes: true, silent: true, play: handedOver(1)},
		lostCase{name: "hand-over of callers", wakes: true, play: handedOver(4)},
		lostCase{name: "held key", wakes: true, play: heldKey},
		lostCase{name: "same key", wakes: true, play: sameKey},
		lostCase{name: "callers", wakes: true, play: callers},
	)
}

// handedOver asks that some drafts begin. What their process is told is what happened,
// by the first try or a later one; the others wait, and are told of.
func handedOver(callers int) func(l *lossy) (func(context.Context) error, func(error)) {
	return func(l *lossy) (func(context.Context) error, func(error)) {
		w := l.hired()
		settings, err := l.s.Settings(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		calls, takers := make([][]job.Draft, callers), make([]told, callers)
		for n := range calls {
			calls[n] = l.drafts(2) // the second one waits
			calls[n][0].HandOver = &job.HandOver{Worker: w, Revision: settings.Revision, Taker: &takers[n]}
		}
		call := func(ctx context.Context) error {
			return together(callers, func(n int) error {
				_, err := l.s.Enqueue(ctx, calls[n])
				return err
			})
		}
		return call, func(err error) {
			l.surely(err)
			held := l.held(w)
			for n := range calls {
				h := takers[n].first(l.t)
				if _, leased := held[calls[n][0].ID]; h.Unknown || h.Started.IsZero() == leased {
					l.t.Errorf("told %+v, and that it is leased to the worker is %v", h, leased)
				}
				if h.Started.IsZero() {
					l.t.Error("it does not begin, although nothing forbids it")
				}
			}
			if len(held) != callers {
				l.t.Errorf("%d runs are leased to the worker, want %d", len(held), callers)
			}
			l.count(2 * callers)
		}
	}
}

// told is a taker that keeps what it is told.
type told struct {
	mu    sync.Mutex
	calls []job.HandedOver
}

func (t *told) Settle(h job.HandedOver) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, h)
}

// first is the call that counts.
func (t *told) first(tb testing.TB) job.HandedOver {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.calls) == 0 {
		tb.Error("nobody was told what became of a hand-over")
		return job.HandedOver{}
	}
	return t.calls[0]
}

// heldKey asks for a key that another job has: a duplicate, however often it is asked.
func heldKey(l *lossy) (func(context.Context) error, func(error)) {
	holder := l.enqueued(l.draft(l.unique("a")))[0]
	drafts := []job.Draft{l.draft(l.unique("a")), l.draft(l.unique("b"))}
	var receipts []job.Receipt
	call := func(ctx context.Context) (err error) {
		receipts, err = l.s.Enqueue(ctx, drafts)
		return err
	}
	return call, func(err error) {
		l.surely(err)
		if want := (job.Receipt{ID: holder, Duplicate: true}); receipts[0] != want {
			l.t.Errorf("receipt %+v, want %+v", receipts[0], want)
		}
		if want := (job.Receipt{ID: drafts[1].ID}); receipts[1] != want {
			l.t.Errorf("receipt %+v, want %+v", receipts[1], want)
		}
		l.count(2)
	}
}

// sameKey lets callers race for one key: one job, and all are told which.
func sameKey(l *lossy) (func(context.Context) error, func(error)) {
	const many = 4
	drafts := l.drafts(many, l.unique("a"))
	receipts := make([]job.Receipt, many)
	call := func(ctx context.Context) error {
		return together(many, func(i int) error {
			r, err := l.s.Enqueue(ctx, drafts[i:i+1])
			if err == nil {
				receipts[i] = r[0]
			}
			return err
		})
	}
	return call, func(err error) {
		l.surely(err)
		l.count(1)
		winners := 0
		for i, r := range receipts {
			l.get(r.ID)
			if !r.Duplicate {
				winners++
			}
			if r.Duplicate == (r.ID == drafts[i].ID) {
				l.t.Errorf("receipt %+v for %s", r, drafts[i].ID)
			}
		}
		if winners != 1 {
			l.t.Errorf("%d of the receipts say that they were first: %+v", winners, receipts)
		}
	}
}

// callers share commits, plain ones and unique ones.
func callers(l *lossy) (func(context.Context) error, func(error)) {
	const many = 8
	var drafts [][]job.Draft
	for i := range many {
		calls := l.drafts(3)
		if i%2 == 0 {
			calls[1] = l.draft(l.unique(string(rune('a' + i))))
		}
		drafts = append(drafts, calls)
	}
	call := func(ctx context.Context) error {
		return together(many, func(i int) error {
			receipts, err := l.s.Enqueue(ctx, drafts[i])
			for n, r := range receipts {
				if want := (job.Receipt{ID: drafts[i][n].ID}); r != want {
					l.t.Errorf("receipt %+v, want %+v", r, want)
				}
			}
			return err
		})
	}
	return call, func(err error) {
		l.surely(err)
		for _, d := range drafts {
			l.get(draftIDs(d)...)
		}
		l.count(3 * many)
	}
}

// together runs f in n goroutines and returns all their errors.
func together(n int, f func(int) error) error {
	errs := make([]error, n)
	var going sync.WaitGroup
	for i := range n {
		going.Go(func() { errs[i] = f(i) })
	}
	going.Wait()
	return errors.Join(errs...)
}
