package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

func unique(key string) func(*job.Draft) {
	return func(d *job.Draft) { d.Unique.Hash = []byte(key) }
}

// holds opens a user's transaction that enqueues drafts and stays open. xid is
// its number, by which those who wait for it are found.
func (b *bystanders) holds(drafts ...job.Draft) (tx pgx.Tx, xid string) {
	b.t.Helper()
	tx = b.begin(pgx.TxOptions{})
	_, err := b.s.Within(tx).Enqueue(b.t.Context(), drafts)
	b.must(err)
	b.must(tx.QueryRow(b.t.Context(), "SELECT pg_current_xact_id()::xid::text").Scan(&xid))
	return tx, xid
}

// waiters is how many sessions wait at the server for a transaction.
func (b *bystanders) waiters(xid string) (n int) {
	b.t.Helper()
	b.must(b.users.QueryRow(b.t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND transactionid::text = $1", xid).Scan(&n))
	return n
}

// lines are the calls that wait, by key.
func (b *bystanders) lines() map[jobs.LockKey]int {
	b.s.jobs.Lines.Mu.Lock()
	defer b.s.jobs.Lines.Mu.Unlock()
	m := map[jobs.LockKey]int{}
	for k, l := range b.s.jobs.Lines.All {
		m[k] = l.Callers
	}
	return m
}

// until waits for an event that only shows in the state of the store or the
// server. Each look asks the server something, so that looks are no busy loop.
func (b *bystanders) until(what string, is func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute) // of a test that hangs
	defer cancel()
	for !is() {
		if _, err := b.users.Exec(ctx, "SELECT 1"); err != nil {
			b.t.Fatalf("%s: %v", what, err)
		}
	}
}

// asks enqueues in the background; what is answered comes through the channel.
type asked struct {
	receipts []job.Receipt
	err      error
}

func (b *bystanders) asks(ctx context.Context, drafts ...job.Draft) <-chan asked {
	answered := make(chan asked, 1)
	go func() {
		receipts, err := b.s.Enqueue(ctx, drafts)
		answered <- asked{receipts, err}
	}()
	return answered
}

func (b *bystanders) answer(from <-chan asked, want job.Receipt) {
	b.t.Helper()
	if a := <-from; a.err != nil || a.receipts[len(a.receipts)-1] != want {
		b.t.Errorf("answered %+v, %v; want %+v", a.receipts, a.err, want)
	}
}

// A user's transaction is stuck and holds key A, and many callers wait for it.
// Whoever wants a key that was held for a moment is not behind them: hardly
// anything is asked for A before B is answered. At the server one of them waits.
func TestP8_WhoWaitsForOneKeyDoesNotStandBehindAnother(t *testing.T) {
	b := bystand(t)
	const callers = 40
	first := someDraft(unique("A"))
	stuck, xid := b.holds(first)
	var forA []<-chan asked
	for range callers {
		forA = append(forA, b.asks(t.Context(), someDraft(unique("A"))))
	}
	keyA, keyB := jobs.LockKey{Hash: "A"}, jobs.LockKey{Hash: "B"}
	b.until("all are in the line of A", func() bool { return b.lines()[keyA] == callers })

	second := someDraft(unique("B"))
	short, _ := b.holds(second)
	forB := b.asks(t.Context(), someDraft(unique("B")))
	b.until("one is in the line of B", func() bool { return b.lines()[keyB] == 1 })
	before := b.proxy.Refused(lockTimeout)
	b.must(short.Commit(t.Context()))
	b.answer(forB, job.Receipt{ID: second.ID, Duplicate: true})
	if n := b.proxy.Refused(lockTimeout) - before; n >= callers/2 {
		t.Errorf("the server was asked %d times for a held key before the caller of a free one was answered; it stood behind the %d that wait", n, callers)
	}
	if lines := b.lines(); len(lines) != 1 || lines[keyA] != callers {
		t.Errorf("lines %v, want the %d callers of A and nobody else", lines, callers)
	}
	for range 50 {
		if n := b.waiters(xid); n > 1 {
			t.Errorf("%d sessions wait at the server for one key", n)
		}
	}
	b.enqueue(someDraft(unique("C"))) // a key that nobody holds
	for _, answered := range forA {
		select {
		case a := <-answered:
			t.Errorf("answered %+v while the key is held", a)
		default:
		}
	}

	b.must(stuck.Commit(t.Context()))
	for _, answered := range forA {
		b.answer(answered, job.Receipt{ID: first.ID, Duplicate: true})
	}
	if lines := b.lines(); len(lines) != 0 || b.s.jobs.Lines.Waiting != 0 {
		t.Errorf("lines %v and %d calls are left, want none", lines, b.s.jobs.Lines.Waiting)
	}
}

// Who asks for several keys stands in the line of the one that is held, and
// keeps nobody from the others.
func TestP8_OfSeveralKeysTheHeldOneIsWaitedFor(t *testing.T) {
	b := bystand(t)
	for _, c := range []struct {
		name string
		held func(*job.Draft) // what the user's transaction holds
	}{
		{"unique", func(d *job.Draft) { d.Unique.Hash = []byte("held " + d.ID.String()) }},
		{"id", func(d *job.Draft) { d.Resend = true }},
	} {
		for _, n := range []int{3, 100, jobs.Bulk} {
			t.Run(fmt.Sprintf("%s of %d", c.name, n), func(t *testing.T) {
				b.t = t
				held := someDraft(c.held)
				tx, xid := b.holds(held)
				want, key := held, jobs.LockKey{ID: held.ID}
				if held.Unique.Hash != nil {
					want, key = someDraft(unique(string(held.Unique.Hash))), jobs.LockKey{Hash: string(held.Unique.Hash)}
				}
				list := []job.Draft{}
				for i := range n {
					list = append(list, someDraft(unique(fmt.Sprintf("%s %d %d", c.name, n, i))))
				}
				list = append(list, want)
				answered := b.asks(t.Context(), list...)
				b.until("it waits", func() bool { return b.lines()[key] == 1 })
				if lines := b.lines(); len(lines) != 1 {
					t.Errorf("lines %v, want one", lines)
				}
				// Each of its other keys is free, all the time.
				for _, i := range []int{0, n - 1} {
					other := someDraft(unique(fmt.Sprintf("%s %d %d", c.name, n, i)))
					tx := b.begin(pgx.TxOptions{})
					_, err := b.s.Within(tx).Enqueue(t.Context(), []job.Draft{other})
					b.must(err)
					b.must(tx.Rollback(t.Context()))
				}
				for range 20 {
					if n := b.waiters(xid); n > 1 {
						t.Errorf("%d sessions wait at the server for one key", n)
					}
				}
				b.must(tx.Commit(t.Context()))
				b.answer(answered, job.Receipt{ID: held.ID, Duplicate: true})
			})
		}
	}
}

// A caller that gives up leaves its line, and knows that nothing was done. The
// last one takes the line away.
func TestP8_ACallerCanLeaveTheLine(t *testing.T) {
	b := bystand(t)
	tx, _ := b.holds(someDraft(unique("A")))
	ctx, cancel := context.WithCancel(t.Context())
	var left []<-chan asked
	d := someDraft(unique("A"))
	left = append(left, b.asks(ctx, d), b.asks(ctx, someDraft(unique("A"))))
	b.until("they wait", func() bool { return b.lines()[jobs.LockKey{Hash: "A"}] == 2 })
	cancel()
	for _, answered := range left {
		if a := <-answered; !errors.Is(a.err, context.Canceled) || errors.Is(a.err, job.ErrOutcomeUnknown) {
			t.Errorf("%v, want that it was cancelled and nothing was done", a.err)
		}
	}
	if lines := b.lines(); len(lines) != 0 {
		t.Errorf("lines %v are left, want none", lines)
	}
	b.must(tx.Rollback(t.Context()))
	b.enqueue(d)
}

// However many want to wait, the lines have a bound, and whoever meets it is told.
func TestP10_LinesHaveABound(t *testing.T) {
	b := bystand(t)
	tx, _ := b.holds(someDraft(unique("A")))
	wait := func(by int) {
		b.s.jobs.Lines.Mu.Lock()
		defer b.s.jobs.Lines.Mu.Unlock()
		b.s.jobs.Lines.Waiting += by
	}
	wait(jobs.MostWaiting)
	if _, err := b.s.Enqueue(t.Context(), []job.Draft{someDraft(unique("A"))}); !errors.Is(err, store.ErrBusy) || !errors.Is(err, jobs.ErrManyWait) {
		t.Errorf("%v, want ErrBusy that names the bound", err)
	}
	b.enqueue(someDraft(unique("B")))
	wait(-jobs.MostWaiting)
	b.must(tx.Rollback(t.Context()))
	b.enqueue(someDraft(unique("A")))
}

// An operator retries many jobs, and the unique key of one is held by a user's
// open transaction: that one is named, the others wait again.
func TestP8_OperatorsRetryPassesByAHeldKey(t *testing.T) {
	b := bystand(t)
	ids := b.enqueue(other(unique("free")), other(unique("A")), other())
	op := store.Operator{Name: "ann"}
	_, err := b.s.Cancel(t.Context(), ids, op)
	b.must(err)
	tx, _ := b.holds(someDraft(unique("A")))
	changes, err := b.s.Retry(t.Context(), ids, op)
	if want := []store.Change{store.Changed, store.Busy, store.Changed}; err != nil || !slices.Equal(changes, want) {
		t.Errorf("%v, %v; want %v", changes, err, want)
	}
	b.must(tx.Rollback(t.Context()))
	changes, err = b.s.Retry(t.Context(), ids[1:2], op)
	if err != nil || changes[0] != store.Changed {
		t.Errorf("%v, %v; want it to wait again once its key is free", changes, err)
	}
}

// A look at a key that is held since long takes for ever (its server hangs, or a
// thousand others are looked at before it). Keys that are held since a moment do
// not wait for that.
func TestP8_ALookAtAStuckKeyHoldsUpNoOther(t *testing.T) {
	b := bystand(t)
	stuck, _ := b.holds(someDraft(unique("A")))
	forA := b.asks(t.Context(), someDraft(unique("A")))
	b.until("it waits", func() bool { return b.lines()[jobs.LockKey{Hash: "A"}] == 1 })
	b.s.jobs.Turns()
	b.s.jobs.Lines.Old <- struct{}{} // the look that does not end

	second := someDraft(unique("B"))
	short, _ := b.holds(second)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of a test that hangs
	defer cancel()
	forB := b.asks(ctx, someDraft(unique("B")))
	b.until("it waits", func() bool { return b.lines()[jobs.LockKey{Hash: "B"}] == 1 })
	b.must(short.Commit(t.Context()))
	b.answer(forB, job.Receipt{ID: second.ID, Duplicate: true})

	<-b.s.jobs.Lines.Old
	b.must(stuck.Rollback(t.Context()))
	if a := <-forA; a.err != nil || a.receipts[0].Duplicate {
		t.Errorf("answered %+v, want that it went in", a)
	}
}

// A shared commit asks for many keys that a user's transaction holds, and nobody
// knew: the caller of a free key among them is tried a few times, however many
// are held, and each held key costs one look and no more.
func TestP8_AFreeKeyAmongManyHeldOnes(t *testing.T) {
	for _, held := range []int{1, 50, 300} {
		for _, at := range []string{"first", "middle", "last"} {
			t.Run(fmt.Sprintf("%d held, %s", held, at), func(t *testing.T) {
				b := bystand(t)
				var mine []job.Draft
				var share []*jobs.EnqueueCall
				for i := range held {
					key := unique(fmt.Sprintf("held %d", i))
					mine = append(mine, someDraft(key))
					share = append(share, jobs.NewEnqueueCall([]job.Draft{someDraft(key)}, 1))
				}
				b.holds(mine...)
				free := jobs.NewEnqueueCall([]job.Draft{someDraft(unique("free"))}, 1)
				share = slices.Insert(share, map[string]int{"first": 0, "middle": held / 2, "last": held}[at], free)
				before := b.proxy.Refused(lockTimeout)
				b.s.jobs.CommitCareful(t.Context(), share)
				for _, c := range share {
					err := c.Wait()
					if c == free {
						if err != nil || c.Receipts[0].Duplicate {
							t.Errorf("the free key: %+v, %v", c.Receipts, err)
						}
					} else if h := jobs.HeldBy(err); h == nil || h.Key.Hash != string(c.Drafts[0].Unique.Hash) {
						t.Errorf("a held key: %+v, %v", c.Receipts, err)
					}
				}
				if most := jobs.MostTogether + 2; free.Tried > most { // with others, and alone
					t.Errorf("the caller of the free key was tried %d times, want at most %d", free.Tried, most)
				}
				// The shared commit, one look at each key, and one of each worker at every size
				// from the first down to two; at two once more, after the free one.
				workers, sizes := b.s.options.sorting(b.s.pg.Users.Config()), bits.Len(uint(held+1))
				if n, most := b.proxy.Refused(lockTimeout)-before, 1+held+workers*(sizes+1); n > most {
					t.Errorf("the server was asked %d times for %d held keys, want at most %d", n, held, most)
				}
			})
		}
	}
}
