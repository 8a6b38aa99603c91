package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// with adds parameters to an address.
func with(t *testing.T, address string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}

// live leads jobs through every way in and out of a store.
func live(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	fancy := func(d *job.Draft) {
		d.Tags, d.Key, d.Deadline, d.HeaderBytes = []string{"a", `"\{}`}, "größe", time.Now().Add(time.Hour), []byte("{}")
		d.Unique = job.Unique{Hash: []byte(d.ID.String()), Period: time.Hour}
	}
	in := func(queue string) func(*job.Draft) { return func(d *job.Draft) { d.Queue = queue } }
	resent := someDraft(func(d *job.Draft) { d.Resend = true })
	for range 2 {
		_, err := s.Enqueue(ctx, []job.Draft{someDraft()})
		must("enqueue", err)
		_, err = s.Enqueue(ctx, []job.Draft{resent, someDraft(fancy)})
		must("enqueue with keys", err)
	}
	many := make([]job.Draft, jobs.Bulk)
	for i := range many {
		many[i] = someDraft(in("many"))
	}
	_, err := s.Enqueue(ctx, many)
	must("enqueue many", err)

	own, err := s.Begin(ctx)
	must("begin", err)
	inPgx, err := s.pg.Users.Begin(ctx)
	must("begin", err)
	defer func() { _ = inPgx.Rollback(context.WithoutCancel(ctx)) }()
	inSQL, err := s.DB().BeginTx(ctx, nil)
	must("begin", err)
	defer func() { _ = inSQL.Rollback() }()
	for what, tx := range map[string]store.Tx{"Begin": own, "Within": s.Within(inPgx), "WithinSQL": s.WithinSQL(inSQL)} {
		_, err := tx.Enqueue(ctx, []job.Draft{someDraft(), someDraft(fancy)})
		must("enqueue in a transaction of "+what, err)
	}
	must("commit", own.Commit(ctx))
	must("commit", inPgx.Commit(ctx))
	must("commit", inSQL.Commit())

	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	w, err := s.Register(ctx, store.Worker{Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Offer: offer})
	must("register", err)
	var claimed store.ClaimReply
	for seq := range int64(2) { // the first claim is given back
		claimed, err = s.Claim(ctx, store.Claim{Worker: w, Seq: seq + 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 100, Start: 100}}})
		must("claim", err)
		if len(claimed.Jobs) != 11 {
			t.Fatalf("claimed %d jobs, want 11", len(claimed.Jobs))
		}
		if seq == 0 {
			_, err = s.ReportRuns(ctx, w, nil)
			must("hold", err)
		}
	}
	var ends []job.End
	var ids []job.ID
	for _, j := range claimed.Jobs {
		ids = append(ids, j.ID)
		ends = append(ends, job.End{ID: j.ID, Run: j.Run, To: job.Dead, Burn: true, Reason: "größer", Failure: job.NewFailure(1, j.Run, "größer", "").Body(),
			Logs: []job.LogLine{{Text: "größer"}}, Progress: &job.Progress{Done: 1, Note: "größer"}})
	}
	tx, err := s.Begin(ctx)
	must("begin", err)
	_, err = tx.Finish(ctx, w, ends[:2])
	must("finish in a transaction", err)
	must("commit", tx.Commit(ctx))
	verdicts, err := s.Finish(ctx, w, append(ends[2:], job.End{ID: ids[0], Run: 1, To: job.Done}))
	must("finish", err)
	for i, v := range verdicts {
		if (v == job.Applied) != (i < len(ends)-2) {
			t.Errorf("verdict %d is %v", i, v)
		}
	}
	changes, err := s.Retry(ctx, ids, store.Operator{Name: "somebody"})
	must("retry", err)
	for i, c := range changes {
		if c != store.Changed {
			t.Errorf("retry of %d: %v", i, c)
		}
	}
	listed, err := s.List(ctx, store.Filter{Queue: "q", Key: "größe", Tag: `"\{}`}, store.Page{Limit: 100})
	must("list", err)
	if len(listed.Jobs) != 5 || listed.Jobs[0].Failures.List()[0].Message != "größer" || listed.Jobs[0].Run != 2 {
		t.Errorf("listed %d: %+v", len(listed.Jobs), listed.Jobs)
	}
	for what, upkeep := range map[string]func() (int, error){
		"lose": func() (int, error) {
			lost, err := s.MarkLost(ctx, store.MarkLostRequest{By: w, Beat: time.Now(), Steady: time.Hour, Machine: "m"})
			return lost.Workers, err
		},
		"mark dead": func() (int, error) { return s.MarkDead(ctx, []job.WorkerID{w + 1}) },

		"expire": func() (int, error) { e, err := s.Expire(ctx, 10); return e.Total(), err },
		"purge":  func() (int, error) { return s.Purge(ctx, 10) },
		"rescue": func() (int, error) { r, err := s.Rescue(ctx, 10); return r.Total(), err },
		"count":  func() (int, error) { _, err := s.Count(ctx, store.Filter{}, 0); return 0, err },
		"why":    func() (int, error) { _, err := s.Situations(ctx, ids); return 0, err },
		"delete": func() (int, error) { _, err := s.Delete(ctx, ids[:1], store.Operator{}); return 0, err },
	} {
		n, err := upkeep()
		must(what, err)
		if n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	_, err = s.Beat(ctx, store.Beat{Worker: w})
	must("beat", err)
	must("deregister", s.Deregister(ctx, w))
	report, err := s.Check(ctx, store.Check{})
	must("check", err)
	if len(report.Faults) > 0 {
		t.Errorf("check: %+v", report.Faults)
	}
}

// The pool is the user's: its mode, and what its role, database and server set by
// default, are whatever they are.
func TestP8_TheSurroundingsAreTheUsers(t *testing.T) {
	for name, pairs := range map[string][]string{
		"a mode that guesses":           {"default_query_exec_mode", "exec"},
		"the simple protocol":           {"default_query_exec_mode", "simple_protocol"},
		"a mode that describes":         {"default_query_exec_mode", "describe_exec"},
		"no caches":                     {"default_query_exec_mode", "exec", "statement_cache_capacity", "0", "description_cache_capacity", "0"},
		"no caches, simple protocol":    {"default_query_exec_mode", "simple_protocol", "statement_cache_capacity", "0", "description_cache_capacity", "0"},
		"serializable transactions":     {"default_transaction_isolation", "serializable"},
		"repeatable reads":              {"default_transaction_isolation", "repeatable read"},
		"other styles":                  {"datestyle", "SQL, DMY", "intervalstyle", "sql_standard", "bytea_output", "escape", "timezone", "Asia/Kathmandu", "extra_float_digits", "-15"},
		"other syntax":                  {"standard_conforming_strings", "off", "array_nulls", "off", "transform_null_equals", "on"},
		"no search path":                {"search_path", ""},
		"a planner that knows no index": {"enable_indexscan", "off", "enable_indexonlyscan", "off", "enable_bitmapscan", "off", "enable_tidscan", "off", "enable_nestloop", "off"},
	} {
		t.Run(name, func(t *testing.T) {
			db := need.Postgres(t)
			address, options := with(t, db.URL, pairs...), Options{Schema: db.Schema}
			live(t, openOn(t, address, options, store.Settings{}))
			if options.PollOnly = true; pairs[0] == "default_query_exec_mode" {
				live(t, openOn(t, address, options, store.Settings{Namespace: "polled"}))
			}
		})
	}
}

func TestJ3_TimesThatPostgresCannotHoldAreNamed(t *testing.T) {
	s := openInternal(t)
	for field, edit := range map[string]func(*job.Draft, time.Time){
		"at":       func(d *job.Draft, at time.Time) { d.At = at },
		"deadline": func(d *job.Draft, at time.Time) { d.Deadline = at },
	} {
		for _, year := range []int{-50_000, 10_000} {
			_, err := s.Enqueue(t.Context(), []job.Draft{someDraft(func(d *job.Draft) { edit(d, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)) })})
			if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s in the year %d: %v", field, year, err)
			}
		}
	}
}

// An address may hold what pgx and the server understand, spaces included.
func TestJ2_AnAddressMayHoldASpace(t *testing.T) {
	db := need.Postgres(t)
	opener, err := store.Parse(with(t, db.URL, "options", "-c default_transaction_isolation=serializable -c application_name=two\\ words", "pawl_schema", db.Schema))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := opener.Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, _ := of(opened)
	var application string
	if err := s.pg.Users.QueryRow(t.Context(), "SHOW application_name").Scan(&application); err != nil || application != "two words" {
		t.Errorf("application_name is %q, %v", application, err)
	}
}

// A role or database may have another default.
func TestP2_TransactionsAreReadCommitted(t *testing.T) {
	for _, pollOnly := range []bool{false, true} {
		db := need.Postgres(t)
		address := with(t, db.URL, "default_transaction_isolation", "serializable")
		var all sync.WaitGroup
		for range 4 { // with one snapshot for the whole transaction, all of them make the tables
			all.Go(func() {
				opened, err := Pool(newPool(t, address), Options{Schema: db.Schema, PollOnly: pollOnly}).Open(t.Context(), store.Settings{})
				if err != nil {
					t.Error(err)
				} else if err := opened.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s := openOn(t, address, Options{Schema: db.Schema, PollOnly: pollOnly}, store.Settings{})
		show := func(run func(*pg.Statement) error) (isolation string) {
			t.Helper()
			err := run(&pg.Statement{Text: "SHOW transaction_isolation", Each: func(scan pg.Scan) error { return scan(&isolation) }})
			if err != nil {
				t.Error(err)
			}
			return isolation
		}
		for name, got := range map[string]string{
			"a round trip": show(func(st *pg.Statement) error { return s.pg.Send(t.Context(), s.pg.Work, pg.SharedLimits, st) }),
			"a read":       show(func(st *pg.Statement) error { return s.pg.Send(t.Context(), s.pg.Reserved, nil, st) }),
			"more round trip": show(func(st *pg.Statement) error {
				return s.pg.Transact(t.Context(), s.pg.Work, pg.UpkeepLimits, func(tr *pg.Transaction) error { return tr.Run(t.Context(), st) })
			}),
		} {
			if got != "read committed" {
				t.Errorf("poll-only %v: %s is %s", pollOnly, name, got)
			}
		}
		if _, err := s.Enqueue(t.Context(), []job.Draft{someDraft(func(d *job.Draft) { d.Key, d.Unique.Hash = "\x00", []byte("key") })}); err == nil {
			t.Error("a zero byte was accepted")
		}
		live(t, s) // a transaction that failed leaves its connection usable
	}
}

// A role's limit on statements is meant for its own: a call of the store waits for
// a lock as long as it says, and does not fail before.
func TestP8_ALimitOnStatementsIsNotForTheStore(t *testing.T) {
	db := need.Postgres(t)
	options := Options{Schema: db.Schema, BusyLimit: 500 * time.Millisecond}
	openOn(t, db.URL, options, store.Settings{}) // makes the tables
	s := openOn(t, with(t, db.URL, "statement_timeout", "100"), options, store.Settings{})
	unique := func(d *job.Draft) { d.Unique.Hash = []byte("held") }
	tx, err := newPool(t, db.URL).Begin(t.Context()) // not limited itself
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := s.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft(unique)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), []job.Draft{someDraft(unique)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a key is held: %v", err)
	}
}

// A role whose idle sessions are ended does not mean those of the store: one of
// them listens, which is idleness by nature, and the others would each time have
// an unknown outcome to tell of.
func TestP8_ALimitOnIdleSessionsIsNotForTheStore(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, with(t, db.URL, "idle_session_timeout", "1000"), Options{Schema: db.Schema}, store.Settings{})
	other := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan store.Hint, 10), make(chan error, 1)
	go func() { ended <- listening{s}.Listen(ctx, func(h store.Hint) { heard <- h }) }()
	select {
	case <-heard:
	case err := <-ended:
		t.Fatalf("the listener has ended: %v", err)
	}
	time.Sleep(2500 * time.Millisecond) // stimulus: sessions are idle for longer than the role allows
	if _, err := s.Cancel(ctx, []job.ID{job.NewID()}, store.Operator{}); err != nil {
		t.Errorf("after a pause: %v", err)
	}
	other.hints.Notifier.Look("q")
	select {
	case <-heard:
	case err := <-ended:
		t.Fatalf("the listener has ended: %v", err)
	}
	cancel()
	<-ended
}

// Text that a database cannot hold must not come up when a job ends.
func TestP8_ADatabaseThatCannotHoldAllTextIsRefused(t *testing.T) {
	db := need.Postgres(t)
	admin := newPool(t, db.Server)
	name := pgx.Identifier{db.Schema + "_j"}.Sanitize()
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	}()
	address, err := url.Parse(db.Server)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + db.Schema + "_j"
	_, err = Pool(newPool(t, address.String()), Options{}).Open(t.Context(), store.Settings{})
	if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "EUC_JP") {
		t.Errorf("opened: %v", err)
	}
}

// An index whose order the locale decides is broken by the next system library.
func TestP6_NoIndexDependsOnTheLocale(t *testing.T) {
	db := need.Postgres(t)
	openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	rows, err := newPool(t, db.URL).Query(t.Context(), `SELECT i.indexrelid::regclass::text FROM pg_index AS i
		JOIN pg_class AS c ON c.oid = i.indexrelid CROSS JOIN unnest(i.indcollation) AS used (collated)
		WHERE c.relnamespace = $1::regnamespace AND used.collated NOT IN (0, '"C"'::regcollation)`, pgx.Identifier{db.Schema}.Sanitize())
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) > 0 {
		t.Errorf("%q depend on the locale, %v", names, err)
	}
}
