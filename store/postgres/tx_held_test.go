package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// A user's transaction stays open (P8). The store works behind a proxy that sees
// the errors of the server: whoever waits for a lock of that transaction waits in
// vain, until the server says 55P03, or for ever. So no such error, and calls that
// come to their end, prove that nobody has waited.

const lockTimeout = "55P03"

// bystanders are the callers beside an open transaction of a user.
type bystanders struct {
	t      *testing.T
	proxy  *pgproxy.Proxy
	s      *Store
	users  *pgxpool.Pool // past the proxy
	crew   *crew
	seen   int // lock timeouts so far
	rounds int
}

func bystand(t *testing.T, edit ...func(*Options)) *bystanders {
	t.Helper()
	db := need.Postgres(t)
	b := &bystanders{t: t, proxy: need.Proxy(t, db.URL), users: newPool(t, db.URL)}
	options := Options{Schema: db.Schema}
	for _, e := range edit {
		e(&options)
	}
	b.s = openOn(t, b.proxy.URL(), options, store.Settings{})
	b.crew = hire(t, b.s)
	if _, err := b.users.Exec(t.Context(), "CREATE TABLE mine (n integer); INSERT INTO mine VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	return b
}

// begin opens the user's transaction.
func (b *bystanders) begin(options pgx.TxOptions) pgx.Tx {
	b.t.Helper()
	tx, err := b.users.BeginTx(b.t.Context(), options)
	b.must(err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (b *bystanders) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// waited reports whether somebody has waited for a lock since the last time.
func (b *bystanders) waited() bool {
	n := b.proxy.Refused(lockTimeout)
	defer func() { b.seen = n }()
	return n != b.seen
}

func (b *bystanders) key(name string) func(*job.Draft) {
	return func(d *job.Draft) { d.Unique.Hash = fmt.Appendf(nil, "%s %d", name, b.rounds) }
}

func (b *bystanders) enqueue(drafts ...job.Draft) []job.ID {
	b.t.Helper()
	receipts, err := b.s.Enqueue(b.t.Context(), drafts)
	b.must(err)
	for i, r := range receipts {
		if r.Duplicate {
			b.t.Errorf("draft %d is called a duplicate", i)
		}
	}
	return draftIDs(drafts)
}

// other is a draft for a queue that is not claimed from.
func other(edit ...func(*job.Draft)) job.Draft {
	return someDraft(append([]func(*job.Draft){func(d *job.Draft) { d.Queue = "other" }}, edit...)...)
}

// step is one kind of call.
type heldStep struct {
	name string
	call func(b *bystanders)
}

// everything is what callers do while the transaction is open.
var everything = []heldStep{
	{"enqueue", func(b *bystanders) { b.enqueue(someDraft(), someDraft()) }},
	{"enqueue together", func(b *bystanders) {
		b.must(together(8, func(int) error {
			_, err := b.s.Enqueue(b.t.Context(), []job.Draft{someDraft()})
			return err
		}))
	}},
	{"enqueue unique", func(b *bystanders) { b.enqueue(someDraft(b.key("a")), someDraft(b.key("b"))) }},
	{"enqueue again", func(b *bystanders) { b.enqueue(someDraft(func(d *job.Draft) { d.Resend = true })) }},
	{"enqueue bulk", func(b *bystanders) {
		list := many(jobs.Bulk)
		if b.rounds > 1 {
			list = list[:100]
		}
		b.enqueue(list...)
	}},
	{"enqueue bulk unique", func(b *bystanders) { b.enqueue(append(many(100), someDraft(b.key("c")))...) }},
	{"enqueue in another transaction", func(b *bystanders) {
		tx, err := b.s.Begin(b.t.Context())
		b.must(err)
		_, err = tx.Enqueue(b.t.Context(), []job.Draft{someDraft(), someDraft(b.key("d"))})
		b.must(errors.Join(err, tx.Commit(b.t.Context())))
	}},
	{"claim and finish", func(b *bystanders) {
		if jobs := b.crew.claim(50); len(jobs) == 50 {
			b.crew.finish(jobs)
		} else {
			b.t.Errorf("%d jobs were claimed, want 50", len(jobs))
		}
	}},
	{"claim and fail", func(b *bystanders) {
		jobs := b.crew.claim(5)
		var ends []job.End
		for i := range jobs {
			ends = append(ends, []endFor{failed, dead, released, unkept, spoken}[i](&jobs[i]))
		}
		verdicts, err := b.s.Finish(b.t.Context(), b.crew.worker, ends)
		b.must(err)
		for _, v := range verdicts {
			if v != job.Applied {
				b.t.Errorf("verdict %v", v)
			}
		}
	}},
	{"finish in another transaction", func(b *bystanders) {
		jobs := b.crew.claim(1)
		tx, err := b.s.Begin(b.t.Context())
		b.must(err)
		_, err = tx.Finish(b.t.Context(), b.crew.worker, []job.End{done(&jobs[0])})
		b.must(errors.Join(err, tx.Commit(b.t.Context())))
	}},
	{"note", func(b *bystanders) {
		jobs := b.crew.claim(1)
		_, err := b.s.Note(b.t.Context(), b.crew.worker, []store.Note{{RunRef: store.RunRef{ID: jobs[0].ID, Run: 1}, Progress: &job.Progress{Done: 1}}})
		b.must(err)
		b.crew.finish(jobs)
	}},
	{"drain", func(b *bystanders) { b.crew.drain(1000) }},
	{"hold", func(b *bystanders) {
		b.enqueue(someDraft())
		b.crew.claim(1)
		held, err := b.s.ReportRuns(b.t.Context(), b.crew.worker, nil)
		b.must(err)
		if held.Returned != 1 {
			b.t.Errorf("%d jobs went back, want one", held.Returned)
		}
	}},
	{"beat", func(b *bystanders) {
		_, err := b.s.Beat(b.t.Context(), store.Beat{Worker: b.crew.worker})
		b.must(err)
	}},
	{"rescue", func(b *bystanders) {
		b.enqueue(someDraft())
		gone := hire(b.t, b.s)
		jobs := gone.claim(1)
		b.must(b.s.Deregister(b.t.Context(), gone.worker))
		_, err := b.s.MarkLost(b.t.Context(), store.MarkLostRequest{By: b.crew.worker, Beat: time.Now(), Steady: time.Hour, Machine: "m"})
		b.must(err)
		rescued, err := b.s.Rescue(b.t.Context(), 100)
		b.must(err)
		if rescued.Waiting != len(jobs) || len(jobs) != 1 {
			b.t.Errorf("%+v of %d jobs, want one", rescued, len(jobs))
		}
	}},
	{"expire", func(b *bystanders) {
		b.enqueue(other(func(d *job.Draft) { d.Deadline = time.Unix(1, 0) }))
		expired, err := b.s.Expire(b.t.Context(), 100)
		b.must(err)
		if expired.Total() != 1 {
			b.t.Errorf("%d jobs expired, want one", expired.Total())
		}
	}},
	{"purge", func(b *bystanders) {
		_, err := b.s.Purge(b.t.Context(), 100)
		b.must(err)
	}},
	{"operate", func(b *bystanders) {
		ids := b.enqueue(other(), other(b.key("e")))
		for _, act := range []verb{(*Store).Cancel, (*Store).Retry, (*Store).Delete} {
			changes, err := act(b.s, b.t.Context(), ids, store.Operator{Name: "somebody"})
			b.must(err)
			for _, c := range changes {
				if c != store.Changed {
					b.t.Errorf("answer %v", c)
				}
			}
		}
		b.must(b.s.SetPaused(b.t.Context(), store.OfQueue("other"), true, store.Operator{}))
		b.must(b.s.SetPaused(b.t.Context(), store.OfQueue("other"), false, store.Operator{}))
	}},
	{"read", func(b *bystanders) {
		_, err := b.s.List(b.t.Context(), store.Filter{}, store.Page{Limit: 10})
		b.must(err)
		report, err := b.s.Check(b.t.Context(), store.Check{})
		b.must(err)
		if len(report.Faults) > 0 {
			b.t.Errorf("check: %+v", report.Faults)
		}
	}},
	{"open", func(b *bystanders) {
		again, err := Pool(newPool(b.t, b.proxy.URL()), b.s.options).Open(b.t.Context(), store.Settings{})
		b.must(err)
		b.must(again.Close())
	}},
}

// all lets everybody go on for a few rounds, and demands that nobody waits.
func (b *bystanders) all() {
	b.t.Helper()
	for b.rounds = 1; b.rounds <= 3; b.rounds++ {
		for _, step := range everything {
			step.call(b)
			if b.waited() { // counts from before the first of them
				b.t.Errorf("%s: waited for a lock of the user's transaction", step.name)
			}
		}
	}
}

func TestP8_NobodyWaitsForAUsersTransaction(t *testing.T) {
	for _, end := range []string{"commit", "roll back"} {
		t.Run("that enqueues/"+end, func(t *testing.T) {
			b := bystand(t)
			b.enqueue(someDraft(b.key("of another")))
			another := hire(t, b.s)
			running := another.claim(1)
			tx := b.begin(pgx.TxOptions{})
			const jobs = 1000
			mine := append(many(jobs), someDraft(func(d *job.Draft) { d.Unique.Hash = []byte("mine") }))
			_, err := b.s.Within(tx).Enqueue(t.Context(), mine)
			b.must(err)
			receipts, err := b.s.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft(b.key("of another"))})
			b.must(err)
			if want := (job.Receipt{ID: running[0].ID, Duplicate: true}); receipts[0] != want {
				t.Errorf("receipt %+v, want %+v", receipts[0], want)
			}
			_, err = tx.Exec(t.Context(), "UPDATE mine SET n = 2")
			b.must(err)
			another.finish(running) // which gives the key back that the transaction has asked for
			b.all()
			want := jobs + 1
			if end == "commit" {
				b.must(tx.Commit(t.Context()))
			} else {
				want = 0
				b.must(tx.Rollback(t.Context()))
			}
			// Its jobs start with the next claims, although those had gone past them. What
			// was given back while it was open is there as well.
			ours := map[job.ID]bool{}
			for _, id := range draftIDs(mine) {
				ours[id] = true
			}
			started := 0
			for {
				claimed := b.crew.claim(100)
				if len(claimed) == 0 {
					break
				}
				for _, j := range claimed {
					if ours[j.ID] {
						started++
					}
				}
			}
			if started != want {
				t.Errorf("%d of its jobs started, want %d", started, want)
			}
		})
	}
	t.Run("that has finished its job", func(t *testing.T) {
		b := bystand(t)
		b.enqueue(someDraft(b.key("its own")))
		handler := hire(t, b.s)
		handler.seq++
		ahead, err := b.s.Claim(t.Context(), store.Claim{Worker: handler.worker, Seq: handler.seq, Offer: knowsK,
			Queues: []store.QueueClaim{{Queue: "q", Limit: 1}}}) // held ready, so that a beat says that it began
		b.must(err)
		claimed := ahead.Jobs
		tx := b.begin(pgx.TxOptions{})
		verdicts, err := b.s.Within(tx).Finish(t.Context(), handler.worker, []job.End{done(&claimed[0])})
		b.must(err)
		if verdicts[0] != job.Applied {
			t.Fatalf("verdict %v", verdicts[0])
		}
		ref := store.RunRef{ID: claimed[0].ID, Run: claimed[0].Run}
		lives := func() { // the process of the handler does what it always does
			_, err := b.s.Beat(t.Context(), store.Beat{Worker: handler.worker, Begun: []store.RunRef{ref}})
			b.must(err)
			for _, held := range [][]store.RunRef{{ref}, nil} {
				answer, err := b.s.ReportRuns(t.Context(), handler.worker, held)
				b.must(err)
				if answer.Returned != 0 || len(answer.Stale) != 0 {
					t.Errorf("%+v, want that the run is still its own", answer)
				}
			}
			b.enqueue(someDraft())
			handler.finish(handler.claim(1))
			if b.waited() {
				t.Error("the handler's process waited for its own transaction")
			}
		}
		lives()
		b.all()
		lives()
		b.must(tx.Commit(t.Context()))
		if jobs, err := b.s.Get(t.Context(), []job.ID{ref.ID}); err != nil || len(jobs) != 1 || jobs[0].State != job.Done {
			t.Errorf("%+v, %v; want it done", jobs, err)
		}
	})
	t.Run("that operates on jobs", func(t *testing.T) {
		b := bystand(t)
		cancelled, deleted := b.enqueue(someDraft(b.key("cancelled")))[0], b.enqueue(other())[0]
		scheduled := b.enqueue(someDraft(func(d *job.Draft) { d.In = time.Hour }))[0]
		running := b.enqueue(someDraft(func(d *job.Draft) { d.Priority = 1 }))[0]
		handler := hire(t, b.s)
		held := handler.claim(1)
		tx := b.begin(pgx.TxOptions{})
		within := b.s.Within(tx).(store.OperatingTx)
		for _, c := range []struct {
			verb func(context.Context, []job.ID, store.Operator) ([]store.Change, error)
			id   job.ID
			want store.Change
		}{
			{within.Cancel, cancelled, store.Changed},
			{within.Cancel, running, store.Asked},
			{within.Retry, scheduled, store.Changed},
			{within.Delete, deleted, store.Changed},
		} {
			if changes, err := c.verb(t.Context(), []job.ID{c.id}, store.Operator{Name: "ann"}); err != nil || changes[0] != c.want {
				t.Errorf("%v, %v, want %v", changes, err, c.want)
			}
		}
		_, err := b.s.Beat(t.Context(), store.Beat{Worker: handler.worker})
		b.must(err)
		if b.waited() {
			t.Error("the beat of the worker whose run was asked waited")
		}
		b.all()
		b.must(tx.Commit(t.Context()))
		refs, err := b.s.Cancels(t.Context(), handler.worker)
		b.must(err)
		if len(refs) != 1 || refs[0].ID != held[0].ID {
			t.Errorf("asked to cancel: %v, want %s", refs, held[0].ID)
		}
	})
	t.Run("that only reads", func(t *testing.T) {
		b := bystand(t)
		b.enqueue(many(10)...)
		tx := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		count := func() (n int) {
			b.must(tx.QueryRow(t.Context(), b.s.pg.SQL("SELECT count(*) FROM pawl.job, mine")).Scan(&n))
			return n
		}
		if n := count(); n != 10 {
			t.Errorf("it reads %d jobs, want 10", n)
		}
		b.all()
		if n := count(); n != 10 {
			t.Errorf("it reads %d jobs, want the 10 that it has read before", n)
		}
	})
}

// Whoever asks for the very key that the transaction holds waits alone: those who
// share its commit are answered, and so is everybody who comes later.
func TestP8_OnlyWhoAsksForTheSameKeyWaits(t *testing.T) {
	for _, end := range []string{"commit", "roll back"} {
		t.Run(end, func(t *testing.T) {
			b := bystand(t)
			tx := b.begin(pgx.TxOptions{})
			same := func(d *job.Draft) { d.Unique.Hash = []byte("same") }
			first := someDraft(same)
			_, err := b.s.Within(tx).Enqueue(t.Context(), []job.Draft{first})
			b.must(err)
			call := func(edit ...func(*job.Draft)) *jobs.EnqueueCall {
				return jobs.NewEnqueueCall([]job.Draft{someDraft(edit...)}, 1)
			}
			blocked := call(same)
			share := []*jobs.EnqueueCall{call(b.key("a")), blocked, call(b.key("b")), call()}
			b.s.jobs.CommitCareful(t.Context(), share)
			for _, c := range share {
				err := c.Wait()
				if c == blocked {
					if held := jobs.HeldBy(err); held == nil || held.Key != (jobs.LockKey{Hash: "same"}) {
						t.Errorf("answered %+v, %v; want that its key is held", c.Receipts, err)
					}
				} else if err != nil || c.Receipts[0].Duplicate {
					t.Errorf("a neighbour was answered %+v, %v", c.Receipts, err)
				}
			}
			waits := b.asks(t.Context(), blocked.Drafts...)
			b.until("it waits", func() bool { return len(b.lines()) == 1 })
			b.all0()
			select {
			case a := <-waits:
				t.Fatalf("answered %+v while the key is held", a)
			default:
			}
			want := job.Receipt{ID: first.ID, Duplicate: true}
			if end == "commit" {
				b.must(tx.Commit(t.Context()))
			} else {
				want = job.Receipt{ID: blocked.Drafts[0].ID}
				b.must(tx.Rollback(t.Context()))
			}
			b.answer(waits, want)
		})
	}
}

// all0 lets everybody go on while some call waits on its own: its timeouts are
// no news.
func (b *bystanders) all0() {
	b.t.Helper()
	b.rounds = 100
	for _, step := range everything {
		step.call(b)
	}
}

// The wait has a bound with a name, that of the store or the caller's own.
func TestP8_TheWaitForAHeldKeyHasABound(t *testing.T) {
	b := bystand(t, func(o *Options) { o.BusyLimit = 100 * time.Millisecond })
	tx := b.begin(pgx.TxOptions{})
	same := func(d *job.Draft) { d.Unique.Hash = []byte("same") }
	_, err := b.s.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft(same)})
	b.must(err)
	drafts := []job.Draft{someDraft(), someDraft(same)}
	if _, err := b.s.Enqueue(t.Context(), drafts); !errors.Is(err, store.ErrBusy) || errors.Is(err, job.ErrOutcomeUnknown) {
		t.Errorf("%v, want ErrBusy: nothing was done", err)
	}
	if jobs, err := b.s.Get(t.Context(), draftIDs(drafts)); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs, %v; want none", len(jobs), err)
	}
	b.must(tx.Rollback(t.Context()))
	b.enqueue(drafts...)
}

// An operator's verb over many jobs, of which a user's open transaction holds one,
// does the others and names that one.
func TestP8_OperatorsVerbPassesByAHeldJob(t *testing.T) {
	b := bystand(t)
	rest := b.enqueue(other(), other(), other())
	held := b.enqueue(someDraft())[0]
	claimed := b.crew.claim(1)
	tx := b.begin(pgx.TxOptions{})
	_, err := b.s.Within(tx).Finish(t.Context(), b.crew.worker, []job.End{done(&claimed[0])})
	b.must(err)
	op := store.Operator{Name: "ann"}
	nobody := job.NewID()
	for _, c := range []struct {
		name string
		verb func(context.Context, []job.ID, store.Operator) ([]store.Change, error)
		rest store.Change
	}{
		{"cancel", b.s.Cancel, store.Changed},
		{"retry", b.s.Retry, store.Changed},
		{"delete", b.s.Delete, store.Changed},
	} {
		changes, err := c.verb(t.Context(), []job.ID{rest[0], held, rest[1], nobody, rest[2]}, op)
		b.must(err)
		if want := []store.Change{c.rest, store.Busy, c.rest, store.NotFound, c.rest}; !slices.Equal(changes, want) {
			t.Errorf("%s: %v, want %v", c.name, changes, want)
		}
	}
	audit, err := b.s.Audit(t.Context(), store.AuditFilter{}, store.AuditPage{Limit: 100})
	b.must(err)
	if len(audit.Entries) != 3*len(rest) || slices.ContainsFunc(audit.Entries, func(e store.AuditEntry) bool { return e.Target == held.String() }) {
		t.Errorf("audit %+v, want three entries for each job but the held one", audit)
	}
	b.must(tx.Commit(t.Context()))
	if jobs, err := b.s.Get(t.Context(), []job.ID{held}); err != nil || len(jobs) != 1 || jobs[0].State != job.Done {
		t.Errorf("%+v, %v; want it done as its transaction said", jobs, err)
	}
	if changes, err := b.s.Delete(t.Context(), []job.ID{held}, op); err != nil || changes[0] != store.Changed {
		t.Errorf("%v, %v; want it deleted once it is free", changes, err)
	}
}
