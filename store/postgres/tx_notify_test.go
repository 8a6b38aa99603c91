package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// intoItsOwn does in a user's transaction all that Pawl has for one.
func intoItsOwn(b *bystanders, tx store.OperatingTx) {
	b.t.Helper()
	ctx := b.t.Context()
	ids := b.enqueue(other(), other(), other(), someDraft(), someDraft())
	runs := b.crew.claim(2)
	_, err := tx.Enqueue(ctx, []job.Draft{someDraft(func(d *job.Draft) { d.Queue = "mine" }), someDraft(b.key("u"))})
	b.must(err)
	verdicts, err := tx.Finish(ctx, b.crew.worker, []job.End{failed(&runs[0])})
	b.must(err)
	if verdicts[0] != job.Applied {
		b.t.Fatalf("finish: %v", verdicts)
	}
	for i, verb := range []func(context.Context, []job.ID, store.Operator) ([]store.Change, error){tx.Cancel, tx.Retry, tx.Delete} {
		_, err := verb(ctx, ids[i:i+1], store.Operator{Name: "ann"})
		b.must(err)
	}
	asked, err := tx.Cancel(ctx, []job.ID{runs[1].ID}, store.Operator{Name: "ann"})
	b.must(err)
	if asked[0] != store.Asked {
		b.t.Fatalf("cancel of a running job: %v", asked)
	}
	b.must(tx.(store.IntendingTx).Intend(ctx, counted(1)))
	later := eventOf("later", "", "orders")
	later.In = time.Hour
	for _, event := range []stream.Publication{eventOf("now", "", "orders"), later} {
		_, err := tx.(store.TxLog).Append(ctx, []stream.Publication{event})
		b.must(err)
	}
}

// NOTIFY takes a lock that all commits of the server which notify share, until they are on disk. None is ever sent in
// a transaction of a user, whatever is done there, and others hear of all of it.
func TestP8_NothingNotifiesInATransactionOfAUser(t *testing.T) {
	for kind, open := range asUser {
		t.Run(kind, func(t *testing.T) {
			b := bystand(t)
			b.users = newPool(t, b.proxy.URL())
			_, err := b.s.Append(t.Context(), []stream.Publication{eventOf("before", "", "orders")}) // the topic is there
			b.must(err)
			heard := make(chan store.Hint, 1000)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			elsewhere := openOn(t, b.proxy.URL(), Options{Schema: b.s.options.Schema}, store.Settings{})
			go func() { ended <- listening{elsewhere}.Listen(ctx, func(h store.Hint) { heard <- h }) }()
			defer func() {
				cancel()
				<-ended
			}()
			<-heard // it listens

			tx, query := open(b)
			intoItsOwn(b, tx)
			const mark = "of a user"
			query("SELECT '" + mark + "'::text")
			var mu sync.Mutex
			var commits []pgproxy.Commit
			b.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
				mu.Lock()
				defer mu.Unlock()
				commits = append(commits, c)
				return pgproxy.Deliver
			})
			switch tx := tx.(type) {
			case *ownTx:
				b.must(tx.Commit(t.Context()))
			case *within:
				if tx.tx != nil {
					b.must(tx.tx.Commit(t.Context()))
				} else {
					b.must(tx.sql.Commit())
				}
			}
			missing := map[store.Hint]bool{
				{Subject: store.SubjectQueue, Name: "mine"}: true, {Subject: store.SubjectJob}: true, {Subject: store.SubjectIntent}: true,
				{Subject: store.SubjectTopic}: true, {Subject: store.SubjectDelay}: true,
			}
			late := time.After(time.Minute)
			for len(missing) > 0 {
				select {
				case h := <-heard:
					delete(missing, store.Hint{Subject: h.Subject, Name: h.Name})
				case <-late:
					t.Fatalf("nobody was told of %v", missing)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			found := false
			for _, c := range commits {
				if !slices.ContainsFunc(c.Statements, func(text string) bool { return strings.Contains(text, mark) }) {
					continue
				}
				found = true
				for _, text := range c.Statements {
					if strings.Contains(strings.ToLower(text), "notify") {
						t.Errorf("in the user's transaction: %s", text)
					}
				}
				if len(c.Statements) < 8 {
					t.Errorf("of the user's transaction only %q are known", c.Statements)
				}
			}
			if !found {
				t.Errorf("the user's transaction is not among %d commits", len(commits))
			}
		})
	}
}

// While somebody's commit that notifies takes long, and whoever notifies waits for it, transactions with jobs commit,
// those of several processes.
func TestP8_CommitsWithJobsWaitForNobodysNotification(t *testing.T) {
	server := need.PostgresServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a commit that waits
	defer cancel()
	address := with(t, server.URL(), "synchronous_commit", "local") // the users' transactions wait for no standby
	a := openOn(t, address, Options{Schema: "pawl"}, store.Settings{})
	b := openOn(t, address, Options{Schema: "pawl"}, store.Settings{})
	conn := func() *pgx.Conn {
		c, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.WithoutCancel(ctx)) })
		return c
	}
	operator, slow := conn(), conn()
	execute := func(c *pgx.Conn, text string) {
		t.Helper()
		if _, err := c.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	execute(slow, "CREATE TABLE mine (n integer)")
	execute(operator, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	execute(operator, "SELECT pg_reload_conf()")
	over, committed := make(chan struct{}), make(chan error, 1)
	go func() { // until one of them waits: the server takes its settings over when it likes
		for {
			_, err := slow.Exec(ctx, "BEGIN; INSERT INTO mine VALUES (1); NOTIFY somebody; COMMIT", pgx.QueryExecModeSimpleProtocol)
			select {
			case <-over:
				committed <- err
				return
			default:
			}
		}
	}()
	defer func() {
		close(over)
		execute(operator, "ALTER SYSTEM RESET synchronous_standby_names")
		execute(operator, "SELECT pg_reload_conf()")
		if err := <-committed; err != nil {
			t.Errorf("the slow commit: %v", err)
		}
	}()
	for held := 0; held == 0; { // it waits for a standby, and has the lock of all that notify
		err := operator.QueryRow(ctx, `SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
			WHERE l.locktype = 'object' AND l.classid = 'pg_database'::regclass AND l.objid = 0 AND l.granted AND a.wait_event = 'SyncRep'`).Scan(&held)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*Store{a, b, a, b} {
		err := pgx.BeginFunc(ctx, s.pg.Users, func(tx pgx.Tx) error {
			_, err := s.Within(tx).Enqueue(ctx, []job.Draft{someDraft()})
			return err
		})
		if err != nil {
			t.Fatalf("a commit with a job, while another one notifies: %v", err)
		}
	}
}

// What a process enqueues in transactions of its user starts in another one that is idle within a few looks, also where
// the first of them came before the commit.
func TestP10_AJobOfAUsersTransactionStartsWithinAFewLooks(t *testing.T) {
	db := need.Postgres(t)
	a := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	e, err := pawl.New(Pool(newPool(t, db.URL), Options{Schema: db.Schema}), pawl.Config{Queues: pawl.Queues{"q": {Workers: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{}, 100)
	pawl.HandleRaw(e, "k", func(context.Context, *pawl.Job[pawl.Raw]) error { began <- struct{}{}; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	looks := func() uint64 { return e.Stats().Looks }
	for looks() < 2 || !e.Stats().Healthy { // the first, and the one when it listens
		time.Sleep(time.Millisecond) // stimulus: the next look whether it runs
	}
	for _, late := range []bool{false, false, true, true} {
		tx, err := a.pg.Users.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		before := looks()
		if _, err := a.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft()}); err != nil {
			t.Fatal(err)
		}
		for late && looks() == before { // the look that it was told to take
			time.Sleep(time.Millisecond) // stimulus: the next look at its counter
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-began:
		case <-time.After(time.Minute):
			t.Fatal("the job does not start")
		}
		if n := looks() - before; n > 6 { // of the job before, when told, three that follow, and one for the slot that is free again
			t.Errorf("a late commit: %t: it starts with look %d after it was enqueued, want 6 at most", late, n)
		}
	}
}
