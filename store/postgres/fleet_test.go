package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// fleet is a registry with workers that share a total, the first of which is this
// process's own, the leader.
type fleet struct {
	t       testing.TB
	s       *Store
	sent    *sentStatements
	own     job.WorkerID
	version int64
	beat    time.Time
}

// A machine has ten of them.
const onMachine = 10

// newFleet makes one of so many live workers, and rows of others that left an hour ago.
func newFleet(t testing.TB, live, gone int) *fleet {
	t.Helper()
	f := &fleet{t: t}
	f.s, f.sent = openTraced(t)
	var err error
	f.own, err = f.s.Register(t.Context(), store.Worker{
		Label: "own", Machine: "m0", Owner: "shop", Version: "v1", Queues: []string{"x"}, Slots: []int{2}, Offer: knowsK, LostAfter: time.Hour,
		Totals: []store.Total{{Queue: "x", Total: 5000, Workers: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // it begins to share
		f.beatOnce()
	}
	f.exec("UPDATE pawl.namespace SET registry = registry + 1")
	f.exec(`INSERT INTO pawl.worker
		SELECT (w).*
		FROM (
			SELECT jsonb_populate_record(w, jsonb_build_object(
				'id', w.id + n, 'machine', 'm' || n / $2::int, 'split', (SELECT registry FROM pawl.namespace))) AS w
			FROM pawl.worker AS w CROSS JOIN generate_series(1, $1::int - 1) AS n
		) AS copies`, live, onMachine)
	f.exec(`INSERT INTO pawl.worker
		SELECT (w).*
		FROM (
			SELECT jsonb_populate_record(w, jsonb_build_object(
				'id', w.id - n, 'lost', {now} - interval '1 hour', 'gone', true, 'drained', true)) AS w
			FROM pawl.worker AS w CROSS JOIN generate_series(1, $1::int) AS n
			WHERE w.id = $2
		) AS copies`, gone, f.own)
	f.exec(`INSERT INTO pawl.worker_beat (namespace, worker, at)
		SELECT namespace, id, {now} FROM pawl.worker WHERE lost IS NULL AND id <> $1`, f.own)
	f.exec("ANALYZE pawl.worker, pawl.worker_beat")
	for range 3 { // it hears of all, and stores that
		f.beatOnce()
	}
	return f
}

// beatOnce is a beat of its own worker.
func (f *fleet) beatOnce() store.BeatReply {
	f.t.Helper()
	reply, err := f.s.Beat(context.Background(), store.Beat{Worker: f.own, Splits: true, Version: f.version})
	if err != nil {
		f.t.Fatal(err)
	}
	f.version, f.beat = reply.Version, reply.Now
	return reply
}

// markLost is the look for those who are late.
func (f *fleet) markLost() store.MarkLostReply {
	f.t.Helper()
	reply, err := f.s.MarkLost(context.Background(), store.MarkLostRequest{By: f.own, Beat: f.beat, Steady: 2 * time.Hour, Machine: "m0"})
	if err != nil {
		f.t.Fatal(err)
	}
	return reply
}

func (f *fleet) exec(text string, args ...any) {
	f.t.Helper()
	if _, err := f.s.pg.Users.Exec(context.Background(), f.s.pg.SQL(text), args...); err != nil {
		f.t.Fatalf("%s: %v", text, err)
	}
}

// beatsOfAll lets every worker beat so often, as it does in five seconds each.
func (f *fleet) beatsOfAll(times int) {
	f.t.Helper()
	text := "UPDATE pawl.worker_beat AS b SET at = b.at + interval '1 microsecond' WHERE b.worker <> " + fmt.Sprint(f.own)
	f.exec(fmt.Sprintf("DO $$ BEGIN FOR n IN 1..%d LOOP %s; END LOOP; END $$", times, f.s.pg.SQL(text)))
	for range min(times, 300) {
		f.beatOnce()
	}
}

// work is what the leader does again and again, and how often in a second.
func (f *fleet) work() []upkeepWork {
	ask := func(_ any, err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	ctx := context.Background()
	return []upkeepWork{
		{beatWork, 5, func() { f.beatOnce() }},
		{"rescue", 1.5, func() {
			if reply := f.markLost(); reply.Workers > 0 || reply.Orphans {
				f.t.Fatalf("of a healthy fleet it says %+v", reply)
			}
		}},
		{"look", 5, func() { ask(f.s.Due(ctx)) }},
		{"purge", 60, func() { ask(f.s.Purge(ctx, 500)) }},
		{"unserved", 60, func() { ask(f.s.Unserved(ctx, f.own, time.Minute)) }},
	}
}

const beatWork = "beat, with its portion of a total"

type upkeepWork struct {
	name  string
	every float64 // seconds
	do    func()
}

// visits counts those of tables whose names begin so, with plans as the store has them.
func (f *fleet) visits(tables string, call func()) int {
	f.t.Helper()
	settings := strings.NewReplacer("$1", "'5s'", "$2", "'5s'").Replace(pg.SettingsText)
	return f.sent.During(f.s.pg.Texts.Schema, tables, call, settings)
}

// rows counts what all of it visits in a second, in every table.
func (f *fleet) rows() (sum float64) {
	f.t.Helper()
	for _, w := range f.work() {
		n := f.visits("", w.do)
		f.t.Logf("%-32s %5d rows and entries, every %v s", w.name, n, w.every)
		sum += float64(n) / w.every
	}
	return sum
}

// What a process does again and again visits about as much in a large registry as in a
// small one: those that left are visited by nobody, who shares a total is read when that
// has changed, and a look for who is late takes a part. Nor does it visit what earlier
// beats have left, while a snapshot keeps that.
func TestJ12_J18_AFleetCostsItsLeaderWhatTenWorkersDo(t *testing.T) {
	per := map[string]float64{}
	for _, size := range []struct {
		name       string
		live, gone int
		beats      int // of each worker, beside a snapshot
	}{
		{name: "10 live workers", live: 10},
		{name: "1,000 live and 9,000 gone workers", live: 1_000, gone: 9_000},
		{name: "100 live workers beside a snapshot", live: 100, beats: 300},
	} {
		t.Run(size.name, func(t *testing.T) {
			f := newFleet(t, size.live, size.gone)
			if size.beats > 0 {
				holdSnapshot(t, f.s)
				f.beatsOfAll(size.beats)
			}
			if reply := f.beatOnce(); !reply.Leader || !reply.Settled || len(reply.Crews["x"].Workers) != size.live {
				t.Fatalf("the beat says: leader %t, settled %t, %d share, want %d", reply.Leader, reply.Settled, len(reply.Crews["x"].Workers), size.live)
			}
			per[size.name] = f.rows()
			t.Logf("%s: %.0f rows and entries a second", size.name, per[size.name])
		})
	}
	base := per["10 live workers"]
	for name, n := range per {
		if n > 3*base {
			t.Errorf("%s cost their leader %.0f rows and entries a second, 10 workers %.0f", name, n, base)
		}
	}
}

// Nobody reads other workers to split a total until the registry has another version.
func TestJ18_CrewsAreReadWhenTheRegistryHasChanged(t *testing.T) {
	f := newFleet(t, 200, 0)
	beat := func() int { return f.visits("worker", func() { f.beatOnce() }) }
	before := f.beatOnce()
	if n := beat(); n > 20 {
		t.Errorf("a beat visits %d rows and entries of workers while nothing has changed", n)
	}
	if err := f.s.Deregister(t.Context(), f.own+7); err != nil {
		t.Fatal(err)
	}
	if n := beat(); n < 200 {
		t.Errorf("a beat visits %d rows and entries of workers after one has left: the test does not hold what it is about", n)
	}
	after := f.beatOnce()
	if len(after.Crews["x"].Workers) != len(before.Crews["x"].Workers)-1 || after.Version == before.Version || after.Settled {
		t.Errorf("after one has left: version %d after %d, settled %t, %d of %d share", after.Version, before.Version, after.Settled,
			len(after.Crews["x"].Workers), len(before.Crews["x"].Workers))
	}
	f.exec("UPDATE pawl.worker SET split = $1 WHERE lost IS NULL", after.Version) // the others have heard of it, too
	if reply := f.beatOnce(); !reply.Settled {
		t.Error("it is not settled when all have stored the version")
	}
	if n := beat(); n > 20 {
		t.Errorf("a beat visits %d rows and entries of workers when it is settled again", n)
	}
}

// A look takes a part, the next one goes on behind it: one that is late is found wherever
// it is, and where some are found, the others at once.
func TestJ12_WhoIsLateIsFoundInParts(t *testing.T) {
	f := newFleet(t, 200, 0)
	late := []job.WorkerID{f.own + 1, f.own + 100, f.own + 150, f.own + 199}
	f.exec("UPDATE pawl.worker_beat SET at = at - interval '2 hours' WHERE worker = ANY ($1)", late)
	for range 200/32 + 1 {
		f.markLost()
	}
	if n := count(t, f, "SELECT count(*) FROM pawl.worker WHERE lost IS NOT NULL"); n != 4 {
		t.Errorf("%d workers are lost, want the 4 that are late", n)
	}
	if n := count(t, f, "SELECT count(*) FROM pawl.worker_beat"); n != 196 {
		t.Errorf("%d workers have a beat, want the 196 that live", n)
	}
	f.exec("UPDATE pawl.worker_beat SET at = at - interval '2 hours' WHERE worker <> $1", f.own)
	f.beatOnce()
	lost, rounds := 0, 0
	for more := true; more; rounds++ {
		reply := f.markLost()
		lost, more = lost+reply.Workers, reply.More
	}
	if lost != 195 || rounds > 200/32+1 {
		t.Errorf("%d were lost in %d looks that said that there is more, want all 195", lost, rounds)
	}
}

// A run that names a number which was never registered is found, wherever that is among
// those who left.
func TestJ12_ARunOfNobodyIsFoundInParts(t *testing.T) {
	f := newFleet(t, 20, 60)
	drafts := many(3)
	if _, err := f.s.Enqueue(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	claimed, err := f.s.Claim(t.Context(), store.Claim{Worker: f.own, Seq: 1, Offer: knowsK, Queues: []store.QueueClaim{{Queue: "q", Limit: 3, Start: 3}}})
	if err != nil || len(claimed.Jobs) != 3 {
		t.Fatalf("%d jobs, %v", len(claimed.Jobs), err)
	}
	f.exec("DELETE FROM pawl.worker WHERE id = $1", f.own-30)
	for i, worker := range []job.WorkerID{f.own - 30, 7, f.own + 1_000} {
		f.exec("UPDATE pawl.job SET worker = $1 WHERE id = $2", worker, claimed.Jobs[i].ID)
	}
	rescued := 0
	for range 2 * (80/16 + 1) {
		reply, err := f.s.Rescue(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		rescued += reply.Total()
	}
	if rescued != 3 {
		t.Errorf("%d runs of nobody went back, want 3", rescued)
	}
}

// A beat that waits for the transaction which declares its worker lost is refused: its
// handlers must not go on. And who is beating at this moment is not declared lost.
func TestJ12_P2_ABeatAndItsLossMeet(t *testing.T) {
	f := newFleet(t, 3, 0)
	other := f.own + 1
	looks := f.sent.Statements(func() { f.markLost() })
	if len(looks) != 1 {
		t.Fatalf("a look is %d statements, want 1", len(looks))
	}
	f.exec("UPDATE pawl.worker_beat SET at = at - interval '2 hours' WHERE worker = $1", other)
	begin := func() pgx.Tx {
		tx, err := f.s.pg.Users.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx
	}
	tx := begin()
	if _, err := tx.Exec(t.Context(), f.s.pg.SQL("UPDATE pawl.worker_beat SET at = {now} WHERE worker = $1"), other); err != nil {
		t.Fatal(err)
	}
	if reply := f.markLost(); reply.Workers != 0 {
		t.Errorf("%d are lost, want none: it is beating", reply.Workers)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reply := f.markLost(); reply.Workers != 0 {
		t.Errorf("%d are lost, want none: it has beaten", reply.Workers)
	}
	f.exec("UPDATE pawl.worker_beat SET at = at - interval '2 hours' WHERE worker = $1", other)

	tx = begin()
	var pid int
	if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), pg.SettingsText, pg.SharedLimits.Args()...); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), looks[0].SQL, looks[0].Args...); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := f.s.Beat(context.Background(), store.Beat{Worker: other})
		answer <- err
	}()
	for waits := 0; waits == 0; {
		row := f.s.pg.Users.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", pid)
		if err := row.Scan(&waits); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-answer:
			t.Fatalf("the beat has not waited for its loss: %v", err)
		default:
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, job.ErrWorkerLost) {
		t.Errorf("the beat of a worker that was declared lost meanwhile is answered %v", err)
	}
}

// A look began before the clock was set back, and sees a beat from after that: the time of
// a statement is read before its snapshot is taken, and planning lies in between.
func TestJ32_TheClockIsSetBackWhileALookBegins(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	hire := func() job.WorkerID {
		w, err := s.Register(t.Context(), store.Worker{Queues: []string{"x"}, Slots: []int{1}, Offer: knowsK, LostAfter: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	own, other := hire(), hire()
	one := func(text string, args ...any) (at time.Time) {
		t.Helper()
		if err := s.pg.Users.QueryRow(t.Context(), s.pg.SQL(text), args...).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	begun := openOn(t, with(t, db.Server, "search_path", db.Schema+",pg_catalog"), Options{Schema: db.Schema}, store.Settings{})
	create := s.pg.SQL(`CREATE FUNCTION pawl.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
		AS $$ SELECT pg_catalog.clock_timestamp() + interval '10 minutes' $$`)
	if _, err := s.pg.Users.Exec(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	look := func() int {
		t.Helper()
		beat := one(`UPDATE pawl.worker_beat SET at = clock_timestamp() + interval '10 minutes' WHERE worker = $1 RETURNING at`, own)
		reply, err := begun.MarkLost(t.Context(), store.MarkLostRequest{By: own, Beat: beat, Steady: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Workers
	}
	if n := look(); n != 0 {
		t.Errorf("%d are lost, want none: it has beaten just now", n)
	}
	one("UPDATE pawl.worker_beat SET at = clock_timestamp() - interval '2 minutes' WHERE worker = $1 RETURNING at", other)
	if n := look(); n != 1 {
		t.Errorf("%d are lost, want the one that is silent", n)
	}
}

func count(t *testing.T, f *fleet, text string, args ...any) (n int) {
	t.Helper()
	if err := f.s.pg.Users.QueryRow(t.Context(), f.s.pg.SQL(text), args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
