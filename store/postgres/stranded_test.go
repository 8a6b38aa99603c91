package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// crew is a store with one worker, for tests that claim.
type crew struct {
	t      testing.TB
	s      *Store
	worker job.WorkerID
	seq    int64
}

var knowsK = job.Offer{Kinds: map[string]int{"k": 0}}

func hire(t testing.TB, s *Store) *crew {
	t.Helper()
	w, err := s.Register(t.Context(), store.Worker{Label: "w", Queues: []string{"q"}, Offer: knowsK, LostAfter: 1000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return &crew{t: t, s: s, worker: w}
}

func (c *crew) claim(limit int) []store.LeasedJob {
	c.t.Helper()
	c.seq++
	claimed, err := c.s.Claim(context.Background(), store.Claim{Worker: c.worker, Seq: c.seq, Offer: knowsK, Queues: []store.QueueClaim{{Queue: "q", Limit: limit, Start: limit}}})
	if err != nil {
		c.t.Fatal(err)
	}
	return claimed.Jobs
}

// drain claims and finishes until nothing is ready.
func (c *crew) drain(limit int) int {
	c.t.Helper()
	n := 0
	for {
		jobs := c.claim(limit)
		if len(jobs) == 0 {
			return n
		}
		c.finish(jobs)
		n += len(jobs)
	}
}

func (c *crew) finish(jobs []store.LeasedJob) {
	c.t.Helper()
	ends := make([]job.End, len(jobs))
	for i := range jobs {
		ends[i] = job.End{ID: jobs[i].ID, Run: jobs[i].Run, To: job.Done}
	}
	verdicts, err := c.s.Finish(context.Background(), c.worker, ends)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, v := range verdicts {
		if v != job.Applied {
			c.t.Fatalf("finish of %s: %v", ends[i].ID, v)
		}
	}
}

func (c *crew) enqueue(drafts ...job.Draft) {
	c.t.Helper()
	if _, err := c.s.Enqueue(context.Background(), drafts); err != nil {
		c.t.Fatal(err)
	}
}

func many(n int) []job.Draft {
	list := make([]job.Draft, n)
	for i := range list {
		list[i] = someDraft()
	}
	return list
}

// A user's transaction stays open for a random time while others enqueue and
// claims move on. After its commit its jobs are found: by the next claim when
// its hints are there, within Stranded when every one of them was lost.
func TestFrontier_LateCommitsStartWithinTheBound(t *testing.T) {
	s := openInternal(t)
	users := newPool(t, s.pg.Users.Config().ConnString())
	// In every program time goes on from where the last one left it.
	var passed time.Duration
	rapid.Check(t, func(rt *rapid.T) {
		c := hire(t, s)
		type open struct {
			tx   pgx.Tx
			jobs []job.ID
		}
		var transactions []open
		late := map[job.ID]bool{}
		advance := func(d time.Duration) {
			passed += d
			s.SetClockOffset(passed)
		}
		defer func() {
			for _, o := range transactions {
				_ = o.tx.Rollback(context.Background())
			}
		}()
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"begin", "commit", "enqueue", "claim", "claim", "wait"}).Draw(rt, "step") {
			case "begin":
				if len(transactions) > 2 {
					continue
				}
				tx, err := users.Begin(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				drafts := []job.Draft{someDraft(func(d *job.Draft) { d.Priority = rapid.IntRange(1, 9).Draw(rt, "priority") }), someDraft()}
				o := open{tx: tx}
				for _, d := range drafts {
					o.jobs = append(o.jobs, d.ID)
				}
				transactions = append(transactions, o)
				if _, err := s.Within(tx).Enqueue(context.Background(), drafts); err != nil {
					t.Fatal(err)
				}
			case "commit":
				if len(transactions) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(transactions)-1).Draw(rt, "which")
				o := transactions[i]
				transactions = append(transactions[:i], transactions[i+1:]...)
				if rapid.Bool().Draw(rt, "its hints are lost") {
					if _, err := o.tx.Exec(context.Background(), s.pg.SQL("DELETE FROM pawl.hint WHERE transaction = pg_current_xact_id()")); err != nil {
						t.Fatal(err)
					}
					for _, id := range o.jobs {
						late[id] = true
					}
				}
				if err := o.tx.Commit(context.Background()); err != nil {
					t.Fatal(err)
				}
				if late[o.jobs[0]] {
					continue
				}
				missing := map[job.ID]bool{}
				for _, id := range o.jobs {
					missing[id] = true
				}
				// Others may be ahead of them; what is found is all that is ready.
				for range 20 {
					jobs := c.claim(3)
					c.finish(jobs)
					for _, j := range jobs {
						delete(missing, j.ID)
						delete(late, j.ID)
					}
					if len(jobs) == 0 {
						break
					}
				}
				if len(missing) > 0 {
					rt.Fatalf("jobs %v are committed with their hints, and the claims that followed did not find them", missing)
				}
			case "enqueue":
				c.enqueue(many(rapid.IntRange(1, 4).Draw(rt, "jobs"))...)
			case "claim":
				jobs := c.claim(rapid.IntRange(1, 4).Draw(rt, "limit"))
				c.finish(jobs)
				for _, j := range jobs {
					delete(late, j.ID)
				}
			case "wait":
				advance(time.Duration(rapid.IntRange(1, 4000).Draw(rt, "milliseconds")) * time.Millisecond)
			}
		}
		for waited := time.Duration(0); len(late) > 0; {
			for range 20 {
				jobs := c.claim(5)
				c.finish(jobs)
				for _, j := range jobs {
					delete(late, j.ID)
				}
				if len(jobs) == 0 {
					break
				}
			}
			if len(late) == 0 {
				break
			}
			if waited >= claims.Stranded {
				rt.Fatalf("jobs %v are ready and still not found %v after their commit", late, waited)
			}
			waited += claims.SweepEvery
			advance(claims.SweepEvery)
		}
	})
}

// A claim's rows that are given back, because it failed after it had locked
// them, are skipped by another claim meanwhile and found again within the bound.
func TestFrontier_SkippedForALockThatWasGivenBack(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	c.enqueue(many(3)...)
	tx, err := newPool(t, s.pg.Users.Config().ConnString()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), s.pg.SQL("SELECT FROM pawl.job ORDER BY id LIMIT 2 FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	if got := c.drain(5); got != 1 {
		t.Fatalf("%d jobs were claimed while two of three were locked, want 1", got)
	}
	s.SetClockOffset(claims.QuietLag * 2)
	if got := c.drain(5); got != 0 {
		t.Fatalf("%d jobs were claimed while they were locked", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetClockOffset(claims.QuietLag*2 + claims.SweepEvery)
	if got := c.drain(5); got != 2 {
		t.Errorf("%d jobs were found one sweep after their locks were given back, want 2", got)
	}
}

// With a snapshot held open the entries of claimed jobs cannot be removed. What
// a claim reads does not grow with them: not for claims, nor for the look when
// the next job falls due, nor for rescue.
func TestP10_AHeldSnapshotDoesNotMakeClaimsVisitMore(t *testing.T) {
	s := openInternal(t)
	holdSnapshot(t, s)
	c := hire(t, s)
	const jobs = 3000
	c.enqueue(many(jobs)...)
	if got := c.drain(100); got != jobs {
		t.Fatalf("drained %d, want %d", got, jobs)
	}
	// However quick the machine is: what was claimed within the lags is passed by the next claim that finds something.
	s.SetClockOffset(2 * claims.QuietLag)
	c.enqueue(many(1)...)
	c.drain(100)
	c.enqueue(many(10)...)
	behind, front := s.claims.Frontiers.View(claims.Lane("q", claims.NewOffer(knowsK).Print)), claims.View{}
	for p := range front.At {
		front.At[p] = claims.Start
	}
	from, whole := c.visits(behind), c.visits(front)
	t.Logf("index entries visited by a claim: %d from the frontier, %d from the start", from, whole)
	if from > 200 {
		t.Errorf("a claim visits %d index entries after %d jobs were claimed", from, jobs)
	}
	if whole < jobs {
		t.Errorf("a claim from the start visits %d index entries: the test does not hold what it is about", whole)
	}
	rescue := c.entries("job_held", workers.Suspects, s.pg.Namespace, 0)
	t.Logf("index entries visited by a look for lost workers: %d", rescue)
	if rescue > 50 {
		t.Errorf("a look for lost workers visits %d index entries after %d jobs were claimed and finished", rescue, jobs)
	}
}

// A claim that finds nothing reads: an idle worker costs the server no transaction
// number, and nothing is written to its disk, also where it is woken for what others
// were quicker to take.
func TestP10_AnEmptyClaimWritesNothing(t *testing.T) {
	server := need.PostgresServer(t, "autovacuum=off") // of its own: others would take numbers, too
	s := openOn(t, server.URL(), Options{Schema: "pawl"}, store.Settings{})
	c := hire(t, s)
	number := func() (n int64) {
		if err := s.pg.Users.QueryRow(t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for round := range 4 { // a lane that is new, one that was drained, one that was woken in vain, and one that always is
		if round > 0 {
			// By a store that is closed then: it tells others of its commits a moment later,
			// and that takes a number.
			other, err := Pool(newPool(t, server.URL()), Options{Schema: "pawl"}).Open(t.Context(), store.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = other.Enqueue(t.Context(), many(10))
			if err = errors.Join(err, other.Close()); err != nil {
				t.Fatal(err)
			}
			if got := c.drain(4); got != 10 {
				t.Fatalf("drained %d of 10", got)
			}
		}
		if round == 2 {
			s.claims.Frontiers.Lower("q", 5, time.Now())
		}
		c.claim(10) // finds out that there is nothing
		before := number()
		for range 5 {
			if round == 3 {
				s.claims.Frontiers.Lower("q", 5, time.Now())
			}
			c.claim(10)
		}
		if after := number(); after != before {
			t.Errorf("round %d: 5 empty claims took %d transaction numbers", round, after-before)
		}
	}
}

// A rescue is several transactions. The entries of what one of them took back stay
// while a snapshot is held, and the next does not pass them again.
func TestP10_ARescueDoesNotVisitWhatItTookBack(t *testing.T) {
	s := openInternal(t)
	holdSnapshot(t, s)
	c, died := hire(t, s), hire(t, s)
	const total = 40 * jobs.RescuedAtOnce
	c.enqueue(many(total)...)
	for held := 0; held < total; {
		held += len(died.claim(jobs.RescuedAtOnce))
	}
	if _, err := s.MarkDead(t.Context(), []job.WorkerID{died.worker}); err != nil {
		t.Fatal(err)
	}
	var visited int
	var at jobs.RescueMark
	for back := 0; back < total; back += jobs.RescuedAtOnce {
		if at.Claim.Valid {
			visited = c.entries("job_held", jobs.LockMoreOrphans, s.pg.Namespace, jobs.RescuedAtOnce, at.Worker, at.Gaps, at.Claim)
		}
		err := s.pg.Transact(t.Context(), s.pg.Reserved, pg.UpkeepLimits, func(tx *pg.Transaction) error {
			rescued, _, err := s.jobs.RescueIn(t.Context(), tx, nil, jobs.RescuedAtOnce, &at)
			if len(rescued) != jobs.RescuedAtOnce {
				t.Fatalf("%d came back with others, after %d: %v", len(rescued), back, err)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("index entries visited by the last transaction: %d", visited)
	if visited > 6*jobs.RescuedAtOnce {
		t.Errorf("the last transaction of a rescue visits %d index entries, %d jobs having come back before", visited, total)
	}
	again, err := s.Rescue(t.Context(), 10)
	if err != nil || again.Total() != 0 {
		t.Errorf("a rescue after that: %d, %v", again.Total(), err)
	}
}

// holdSnapshot keeps a snapshot open until the test ends: no dead row of the
// database can be removed meanwhile.
func holdSnapshot(t *testing.T, s *Store) {
	t.Helper()
	holder, err := newPool(t, s.pg.Users.Config().ConnString()).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Rollback(context.Background()) })
	if _, err := holder.Exec(t.Context(), s.pg.SQL("SELECT count(*) FROM pawl.job")); err != nil {
		t.Fatal(err)
	}
}

// visits counts the index entries that a claim of ten jobs steps over.
func (c *crew) visits(v claims.View) int {
	c.t.Helper()
	dues, ids := v.Arrays()
	o := claims.NewOffer(knowsK)
	return c.entries("job_ready", claims.ClaimStraight, c.s.pg.Namespace, c.worker, "q", jobs.Priorities, dues, ids, 10, o.Kinds, o.Newest, o.Capabilities, int64(1_000_000), 10, int64(1<<40))
}

// entries runs a statement, undoes it, and counts the entries of an index that it visited, dead ones included.
func (c *crew) entries(index, text string, args ...any) int {
	c.t.Helper()
	ctx := context.Background()
	tx, err := c.s.pg.Work.Begin(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, pg.SettingsText, pg.SharedLimits.Args()...); err != nil {
		c.t.Fatal(err)
	}
	count := func() (n int) {
		if err := tx.QueryRow(ctx, "SELECT pg_stat_get_xact_tuples_returned($1::regclass)", c.s.pg.Texts.Schema+"."+index).Scan(&n); err != nil {
			c.t.Fatal(err)
		}
		return n
	}
	before := count() // of statements whose counts the server has not passed on yet
	if _, err := tx.Exec(ctx, c.s.pg.SQL(text), args...); err != nil {
		c.t.Fatal(err)
	}
	return count() - before
}
