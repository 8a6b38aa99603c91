package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The answer of any commit may be lost (J32). These tests lose each one: a call
// is made again and again, the answer of its first commit is lost, then that of
// its second, until it has no more. Each time it must have happened once.

// lostCase is one call of the seam.
type lostCase struct {
	name string
	// play prepares a round, in which nothing is lost yet. It returns the call and
	// what must hold after it, when every late commit has come in.
	play func(l *lossy) (call func(context.Context) error, after func(error))
	// wakes: the call makes jobs wait, so that others must be told of it, also when
	// its answer was lost.
	wakes bool
	// silent: it is also played with a connection that stays and says nothing,
	// which costs a store its patience.
	silent bool
}

// lossy is a store whose answers get lost, and the same namespace seen past the
// proxy.
type lossy struct {
	t      *testing.T
	proxy  *pgproxy.Proxy
	s      *Store // through the proxy
	hasty  *Store // the same, with little patience
	direct *Store
	pool   *pgxpool.Pool // past the proxy
	name   string        // of the connections through it
	round  int
	queue  string      // of this round
	linger int         // how often a call is seen to wait before a late commit comes in
	heard  chan string // queues that other processes were told of
}

// short is a limit for one try when the proxy is silent: nobody waits for 20 s here, and a slow disk is not silent.
const short = time.Second

var fates = []pgproxy.Fate{pgproxy.Cut, pgproxy.Drop, pgproxy.Late}

// loseEach plays the cases with every fate.
func loseEach(t *testing.T, cases ...lostCase) {
	t.Parallel()
	l := newLossy(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, fate := range fates {
				t.Run(fate.String(), func(t *testing.T) { l.play(t, c, fate, 0) })
			}
			if c.silent {
				t.Run("mute", func(t *testing.T) { l.play(t, c, pgproxy.Mute, 0) })
			}
			t.Run("later", func(t *testing.T) { l.play(t, c, pgproxy.Late, 20) })
		})
	}
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	db := need.Postgres(t)
	l := &lossy{t: t, proxy: need.Proxy(t, db.URL), pool: newPool(t, db.URL), name: db.Schema[len(db.Schema)-16:]}
	through := l.proxy.URL() + "&application_name=" + l.name
	l.direct = openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	l.s = openOn(t, through, Options{Schema: db.Schema}, store.Settings{})
	l.hasty = openOn(t, through, Options{Schema: db.Schema}, store.Settings{})
	l.hasty.pg.TryTimeout = short
	t.Cleanup(func() {
		report, err := l.direct.Check(context.Background(), store.Check{})
		if err != nil || len(report.Faults) > 0 {
			t.Errorf("check: %v %+v", err, report.Faults)
		}
	})
	l.listen()
	return l
}

// listen hears what other processes hear.
func (l *lossy) listen() {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	l.heard = make(chan string, 1000)
	ready, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- listening{l.direct}.Listen(ctx, func(h store.Hint) {
			select {
			case ready <- struct{}{}:
			default:
			}
			l.heard <- h.Name
		})
	}()
	l.t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-ready
}

// told demands that other processes hear of the round's queue.
func (l *lossy) told() {
	l.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case queue := <-l.heard:
			if queue == l.queue {
				return
			}
		case <-late:
			l.t.Error("nobody was told that the queue has work")
			return
		}
	}
}

func (l *lossy) play(t *testing.T, c lostCase, fate pgproxy.Fate, linger int) {
	t.Helper()
	l.t, l.linger = t, linger
	if fate == pgproxy.Mute {
		patient := l.s
		l.s = l.hasty
		defer func() { l.s = patient }()
	}
	for n := 1; ; n++ {
		l.round++
		l.queue = fmt.Sprintf("q%d", l.round)
		call, after := c.play(l)
		before := l.proxy.Lost(fate)
		lost := l.lose(n, fate)
		err := l.do(call)
		l.proxy.Judge(nil)
		after(err)
		if c.wakes {
			l.told()
		}
		if l.t.Failed() {
			l.t.Fatalf("commit %d met its fate, %s: %.60q", n, fate, *lost)
		}
		if *lost == nil {
			if n == 1 {
				l.t.Fatal("the call commits nothing")
			}
			return
		}
		if n := l.proxy.Lost(fate) - before; n != 1 {
			l.t.Fatalf("%d answers were lost, want one: %.80q", n, *lost)
		}
	}
}

// lose gives the nth commit from now its fate. Notifications do not count: they
// are hints, sent when there is time. Nor does what begins a connection: a pool may
// make one whenever it has lost one.
func (l *lossy) lose(n int, fate pgproxy.Fate) *[]string {
	aside := []string{"pg_notify", "SELECT set_config", "SELECT pg_backend_pid"}
	return l.loseWhere(fate, func(statements []string) bool {
		if len(statements) == 1 && slices.ContainsFunc(aside, func(s string) bool { return strings.Contains(statements[0], s) }) {
			return false
		}
		n--
		return n == 0
	})
}

// loseWhere gives the first commit that is meant its fate.
func (l *lossy) loseWhere(fate pgproxy.Fate, meant func(statements []string) bool) *[]string {
	lost := new([]string)
	l.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
		if *lost != nil || !meant(c.Statements) {
			return pgproxy.Deliver
		}
		*lost = c.Statements
		return fate
	})
	return lost
}

// leases reports whether one of the statements claims jobs.
func leases(statements []string) bool {
	return slices.ContainsFunc(statements, func(s string) bool { return strings.Contains(s, "SET state = 3, run = run + 1") })
}

// do makes the call. A late commit comes in when the call was seen to wait for
// it: at once in one round, and in the next so much later that the call has given
// up waiting and tried something else. At the latest it comes when the call is over.
func (l *lossy) do(call func(context.Context) error) error {
	l.t.Helper()
	done := make(chan error, 1)
	go func() { done <- call(l.t.Context()) }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for seen := 0; ; {
		select {
		case err := <-done:
			l.proxy.Release()
			return err
		case <-look.C:
		}
		if l.waits() {
			if seen++; seen > l.linger {
				l.proxy.Release()
			}
		}
	}
}

// waits reports whether a connection through the proxy waits for a lock.
func (l *lossy) waits() (some bool) {
	l.t.Helper()
	err := l.pool.QueryRow(l.t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock')", l.name).Scan(&some)
	if err != nil {
		l.t.Fatal(err)
	}
	return some
}

// draft is one of this round.
func (l *lossy) draft(edit ...func(*job.Draft)) job.Draft {
	return someDraft(append([]func(*job.Draft){func(d *job.Draft) { d.Queue = l.queue }}, edit...)...)
}

func (l *lossy) drafts(n int, edit ...func(*job.Draft)) []job.Draft {
	list := make([]job.Draft, n)
	for i := range list {
		list[i] = l.draft(edit...)
	}
	return list
}

// unique gives a draft a key of this round.
func (l *lossy) unique(key string) func(*job.Draft) {
	return func(d *job.Draft) { d.Unique.Hash = fmt.Appendf(nil, "%s %s", l.queue, key) }
}

// enqueued hands drafts in past the proxy.
func (l *lossy) enqueued(drafts ...job.Draft) []job.ID {
	l.t.Helper()
	if _, err := l.direct.Enqueue(l.t.Context(), drafts); err != nil {
		l.t.Fatal(err)
	}
	return draftIDs(drafts)
}

func draftIDs(drafts []job.Draft) []job.ID {
	ids := make([]job.ID, len(drafts))
	for i := range drafts {
		ids[i] = drafts[i].ID
	}
	return ids
}

// hired registers a worker through the lossy store, while nothing is lost.
func (l *lossy) hired() job.WorkerID {
	l.t.Helper()
	w, err := l.s.Register(l.t.Context(), store.Worker{Label: l.queue, Queues: []string{l.queue}, Offer: knowsK, LostAfter: 1000 * time.Hour})
	if err != nil {
		l.t.Fatal(err)
	}
	return w
}

func (l *lossy) asks(w job.WorkerID, seq int64, limit int, queues ...string) store.Claim {
	c := store.Claim{Worker: w, Seq: seq, Offer: knowsK}
	for _, q := range append([]string{l.queue}, queues...) {
		c.Queues = append(c.Queues, store.QueueClaim{Queue: q, Limit: limit, Start: limit})
	}
	return c
}

// running hands n jobs in and claims them.
func (l *lossy) running(n int, edit ...func(*job.Draft)) (job.WorkerID, []store.LeasedJob) {
	l.t.Helper()
	l.enqueued(l.drafts(n, edit...)...)
	w := l.hired()
	claimed, err := l.s.Claim(l.t.Context(), l.asks(w, 1, n))
	if err != nil || len(claimed.Jobs) != n {
		l.t.Fatalf("claim: %d jobs, %v; want %d", len(claimed.Jobs), err, n)
	}
	return w, claimed.Jobs
}

// get reads jobs past the proxy; every one must exist.
func (l *lossy) get(ids ...job.ID) []job.Job {
	l.t.Helper()
	jobs, err := l.direct.Get(l.t.Context(), ids)
	if err != nil || len(jobs) != len(ids) {
		l.t.Fatalf("%d of %d jobs exist, %v", len(jobs), len(ids), err)
	}
	return jobs
}

// count demands how many jobs the round's queue holds.
func (l *lossy) count(want int) {
	l.t.Helper()
	n, err := l.direct.Count(l.t.Context(), store.Filter{Queue: l.queue}, 0)
	if err != nil || n.Jobs != want {
		l.t.Errorf("the queue holds %d jobs, %v; want %d", n.Jobs, err, want)
	}
}

// held is what the database says a worker runs.
func (l *lossy) held(w job.WorkerID) map[job.ID]int64 {
	l.t.Helper()
	rows, err := l.pool.Query(l.t.Context(), l.direct.pg.SQL("SELECT id, run FROM pawl.job WHERE namespace = $1 AND state = 3 AND worker = $2"), l.direct.pg.Namespace, w)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	held := map[job.ID]int64{}
	for rows.Next() {
		var id job.ID
		var run int64
		if err := rows.Scan(&id, &run); err != nil {
			l.t.Fatal(err)
		}
		held[id] = run
	}
	if rows.Err() != nil {
		l.t.Fatal(rows.Err())
	}
	return held
}

// surely demands that a call has told its outcome.
func (l *lossy) surely(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%v, want the outcome", err)
	}
}

// unsure demands that a call has either told its outcome or said that it cannot.
func (l *lossy) unsure(err error) bool {
	l.t.Helper()
	if err != nil && !errors.Is(err, job.ErrOutcomeUnknown) {
		l.t.Fatalf("%v, want ErrOutcomeUnknown", err)
	}
	return err != nil
}
