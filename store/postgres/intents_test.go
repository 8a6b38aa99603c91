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
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// countedKind is a kind of intents that only these tests have: each that is applied
// adds a row to a table of the user's, in the same transaction, and one to a row that
// all of a subject share.
const countedKind store.IntentKind = 30_003

func makeCounted(t *testing.T, users *pgxpool.Pool) {
	t.Helper()
	if _, err := users.Exec(t.Context(), `CREATE TABLE effect (id text NOT NULL);
		CREATE TABLE shared (subject text PRIMARY KEY, n int NOT NULL)`); err != nil {
		t.Fatal(err)
	}
}

func countIntents(s *Store) {
	s.HandleIntents(countedKind, func(exec func(text string, args ...any) error, list []store.Intent) error {
		for _, i := range list {
			err := exec("INSERT INTO shared VALUES ($1, 1) ON CONFLICT (subject) DO UPDATE SET n = shared.n + 1", i.Subject)
			if err == nil {
				err = exec("INSERT INTO effect VALUES ($1)", i.ID.String())
			}
			if err == nil && string(i.Payload) == "bad" {
				err = errors.New("a bad intent")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// counted makes intents of a few subjects, which all callers share.
func counted(n int) []store.Intent {
	list := make([]store.Intent, n)
	for i := range list {
		list[i] = store.Intent{ID: job.NewID(), Kind: countedKind, Subject: fmt.Sprintf("s%d", i%10)}
	}
	return list
}

// applied counts how often each was applied.
func applied(t *testing.T, users *pgxpool.Pool) map[string]int {
	t.Helper()
	rows, err := users.Query(t.Context(), "SELECT id, count(*) FROM effect GROUP BY id")
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	var id string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { times[id] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return times
}

// untilApplied waits until so many are applied, without a sweep.
func untilApplied(t *testing.T, s *Store, n int) {
	t.Helper()
	late := time.After(30 * time.Second)
	for len(applied(t, s.pg.Users)) < n {
		select {
		case <-late:
			t.Fatalf("%d of %d intents are applied, and nobody looks", len(applied(t, s.pg.Users)), n)
		default:
		}
	}
}

// settleIntents waits until what is committed is applied, whoever does it.
func settleIntents(t *testing.T, s *Store) {
	t.Helper()
	for {
		if _, err := s.ApplyIntents(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		list, err := s.WaitingIntents(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return
		}
	}
}

// holdIntents has a user's transaction leave a thousand intents and stay open while others do everything there is, and
// leave intents of the same subjects that are applied meanwhile, for as long as on says.
func holdIntents(t *testing.T, b *bystanders, on func() bool) {
	t.Helper()
	makeCounted(t, b.users)
	countIntents(b.s)
	held := counted(1000)
	tx := b.begin(pgx.TxOptions{})
	b.must(b.s.Within(tx).(store.IntendingTx).Intend(t.Context(), held))
	var others []store.Intent
	for b.rounds = 1; on(); b.rounds++ {
		for _, step := range everything {
			step.call(b)
			mine := counted(3)
			with, err := b.s.Begin(t.Context())
			b.must(err)
			b.must(errors.Join(with.(store.IntendingTx).Intend(t.Context(), mine), with.Commit(t.Context())))
			others = append(others, mine...)
			if b.waited() {
				t.Errorf("after %s: somebody has waited for a lock", step.name)
			}
		}
		settleIntents(t, b.s)
		if times := applied(t, b.users); len(times) != len(others) {
			t.Fatalf("round %d: %d of %d are applied beside the open transaction", b.rounds, len(times), len(others))
		}
	}
	b.must(tx.Commit(t.Context()))
	settleIntents(t, b.s)
	times := applied(t, b.users)
	for _, i := range append(held, others...) {
		if times[i.ID.String()] != 1 {
			t.Errorf("intent %s was applied %d times", i.ID, times[i.ID.String()])
		}
	}
}

// A user's transaction that holds a thousand intents delays nobody: not who works, and not the intents of others.
func TestP8_HeldIntentsDelayNobody(t *testing.T) {
	t.Parallel()
	b := bystand(t)
	holdIntents(t, b, func() bool { return b.rounds <= 2 })
}

// The end of a caller's own transaction is not seen. The process that made it looks, so nobody sweeps here.
func TestP5_IntentsOfACallersOwnTransactionAreFound(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	makeCounted(t, s.pg.Users)
	countIntents(s)
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := counted(20)
	if err := errors.Join(s.Within(tx).(store.IntendingTx).Intend(t.Context(), list), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	untilApplied(t, s, len(list))
}

// Intents of a kind that this process does not know are told to the others, who listen.
func TestP5_AnotherProcessHearsOfIntents(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	makeCounted(t, s.pg.Users)
	newer := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	countIntents(newer)
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan store.Hint, 100), make(chan error, 1)
	go func() { ended <- listening{newer}.Listen(ctx, func(h store.Hint) { heard <- h }) }()
	defer func() { cancel(); <-ended }()
	<-heard // it listens
	list := counted(20)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.(store.IntendingTx).Intend(t.Context(), list), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	select {
	case h := <-heard:
		if h.Subject != store.SubjectIntent {
			t.Errorf("heard of %+v", h)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was told")
	}
	untilApplied(t, newer, len(list))
}

// An intent whose rows somebody's open transaction holds is put off alone, and applied later.
func TestP8_AnIntentWhoseRowIsHeldIsPutOffAlone(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	makeCounted(t, s.pg.Users)
	if _, err := s.pg.Users.Exec(t.Context(), "INSERT INTO shared VALUES ('s3', 0)"); err != nil {
		t.Fatal(err)
	}
	holder, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "UPDATE shared SET n = n WHERE subject = 's3'"); err != nil {
		t.Fatal(err)
	}
	list := counted(30)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.(store.IntendingTx).Intend(t.Context(), list), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	sweeper := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	countIntents(sweeper)
	for more := true; more; {
		reply, err := sweeper.ApplyIntents(t.Context(), 500)
		if err != nil {
			t.Fatal(err)
		}
		more = reply.More
	}
	if n := len(applied(t, s.pg.Users)); n != 27 {
		t.Errorf("%d intents were applied beside those of the held row, want 27", n)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	settleIntents(t, sweeper)
	for id, n := range applied(t, s.pg.Users) {
		if n != 1 {
			t.Errorf("intent %s was applied %d times", id, n)
		}
	}
}

// Looks begin where the last one ended, and miss nothing: a transaction that began before others may commit after them.
func TestP5_IntentsOfALateCommitAreFound(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	makeCounted(t, s.pg.Users)
	countIntents(s)
	begin := func(list []store.Intent) store.Tx {
		t.Helper()
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.(store.IntendingTx).Intend(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	commit := func(tx store.Tx) {
		t.Helper()
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	late := begin(counted(1))
	for n := 1; n <= 20; n++ {
		commit(begin(counted(1)))
		untilApplied(t, s, n)
	}
	commit(late)
	untilApplied(t, s, 21)
}

// noted is an applier that notes what it is asked.
type noted struct {
	name string
	asks *[]string
}

func (n noted) Lock(_ context.Context, _ pg.Session, list []store.Intent) error {
	*n.asks = append(*n.asks, fmt.Sprintf("lock %s %d", n.name, len(list)))
	return nil
}

func (n noted) Apply(_ context.Context, _ pg.Session, list []store.Intent) error {
	*n.asks = append(*n.asks, fmt.Sprintf("apply %s %d", n.name, len(list)))
	return nil
}

// Every kind locks before any applies, in the order of the kinds, which is the lock order of transitions.
func TestP8_KindsLockInOrderBeforeAnyApplies(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []store.Intent
	for i := range 5 {
		list = append(list, store.Intent{ID: job.NewID(), Kind: 30_010 - store.IntentKind(i%2)})
	}
	if err := errors.Join(tx.(store.IntendingTx).Intend(t.Context(), list), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	sweeper := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	var asks []string
	sweeper.intents.Register(30_010, noted{"nodes", &asks})
	sweeper.intents.Register(30_009, noted{"jobs", &asks})
	settleIntents(t, sweeper)
	if want := []string{"lock nodes 3", "lock jobs 2", "apply nodes 3", "apply jobs 2"}; !slices.Equal(asks, want) {
		t.Errorf("%q, want %q", asks, want)
	}
}
