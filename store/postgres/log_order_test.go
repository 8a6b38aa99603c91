package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// gates stop statements at points in their middle: whoever comes to one waits while it is shut.
type gates struct {
	t     *testing.T
	class int
	conn  *pgx.Conn
	look  *pgxpool.Pool
}

// The points.
const (
	beforeLocks = 1 // a reader has not looked at the marks yet
	afterLocks  = 2 // it has
	inInsert    = 3 // events of a transaction are numbered
)

// newGates puts them into the schema of a test: a view of pg_locks, which the address that it
// returns finds first, and a trigger for events that are called slow.
func newGates(t *testing.T, db need.Database) (*gates, string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	g := &gates{t: t, conn: conn, look: newPool(t, db.URL)}
	g.exec("SELECT hashtext($1)", &g.class, db.Schema)
	for _, text := range []string{
		`CREATE FUNCTION gate(point int) RETURNS void LANGUAGE sql SET lock_timeout = 0
			AS 'SELECT pg_advisory_lock_shared(%[1]d, point); SELECT pg_advisory_unlock_shared(%[1]d, point)'`,
		`CREATE FUNCTION seen_locks() RETURNS SETOF pg_catalog.pg_locks LANGUAGE plpgsql AS $$
			DECLARE seen pg_catalog.pg_locks[];
			BEGIN
				PERFORM %[2]s.gate(1);
				SELECT array_agg(l) INTO seen FROM pg_catalog.pg_locks AS l;
				PERFORM %[2]s.gate(2);
				RETURN QUERY SELECT * FROM unnest(seen);
			END $$`,
		`CREATE VIEW pg_locks AS SELECT * FROM seen_locks()`,
		`CREATE FUNCTION inserted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM %[2]s.gate(3); RETURN NULL; END'`,
		`CREATE TRIGGER slow AFTER INSERT ON event FOR EACH ROW WHEN (NEW.id = 'slow') EXECUTE FUNCTION inserted()`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(text+"/* %[1]d %[2]s */", g.class, pgx.Identifier{db.Schema}.Sanitize())); err != nil {
			t.Fatal(err)
		}
	}
	return g, with(t, db.Server, "search_path", db.Schema+",pg_catalog")
}

// exec runs a statement, and reads its answer.
func (g *gates) exec(text string, into any, args ...any) {
	g.t.Helper()
	if err := g.conn.QueryRow(g.t.Context(), text, args...).Scan(into); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gates) shut(point int) {
	g.t.Helper()
	g.exec("SELECT pg_advisory_lock($1, $2)::text", new(string), g.class, point)
}

func (g *gates) open(point int) {
	g.t.Helper()
	var was bool
	if g.exec("SELECT pg_advisory_unlock($1, $2)", &was, g.class, point); !was {
		g.t.Fatalf("gate %d was open", point)
	}
}

// stands reports whether somebody stands before a gate.
func (g *gates) stands(point int) (some bool) {
	g.t.Helper()
	err := g.look.QueryRow(g.t.Context(), `SELECT EXISTS (
		SELECT FROM pg_catalog.pg_locks
		WHERE locktype = 'advisory' AND NOT granted AND classid = $1::int::oid AND objid = $2::int::oid AND objsubid = 2
	)`, g.class, point).Scan(&some)
	if err != nil {
		g.t.Fatal(err)
	}
	return some
}

// reached waits until somebody stands before a gate, or has ended.
func (g *gates) reached(point int, ended <-chan struct{}) bool {
	g.t.Helper()
	for !g.stands(point) {
		select {
		case <-ended:
			return false
		default:
		}
	}
	return true
}

// ordered is a log with gates, and users that append to it.
type ordered struct {
	*gates
	s     *Store
	users *pgxpool.Pool
	at    stream.Position
	seen  []string
}

func newOrdered(t *testing.T) *ordered {
	t.Helper()
	db := need.Postgres(t)
	first := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{}) // makes the tables
	put(t, first, "orders", "before")
	g, address := newGates(t, db)
	o := &ordered{gates: g, s: openOn(t, address, Options{Schema: db.Schema}, store.Settings{}), users: newPool(t, with(t, db.URL, "pool_max_conns", "10"))}
	o.read(nil)
	o.want("before")
	return o
}

// append appends in a transaction that stays open.
func (o *ordered) append(id string) pgx.Tx {
	o.t.Helper()
	tx, err := o.users.Begin(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := o.s.Within(tx).(store.TxLog).Append(o.t.Context(), []stream.Publication{eventOf(id, "", "orders")}); err != nil {
		o.t.Fatal(err)
	}
	return tx
}

func (o *ordered) commit(tx pgx.Tx) {
	o.t.Helper()
	if err := tx.Commit(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

// read reads what comes next, once.
func (o *ordered) read(ended chan<- struct{}) {
	if ended != nil {
		defer close(ended)
	}
	page, err := o.s.Events(o.t.Context(), store.EventQuery{After: o.at})
	if err != nil {
		o.t.Error(err)
		return
	}
	for _, e := range page.Events {
		o.seen = append(o.seen, e.ID)
	}
	o.at = page.Next
}

func (o *ordered) want(ids ...string) {
	o.t.Helper()
	if !slices.Equal(o.seen, ids) {
		o.t.Errorf("%v were read, want %v", o.seen, ids)
	}
}

// What is appended between a look at the sequence and one at the marks is not read: it is above
// the number that was read first.
func TestE5_TheSequenceIsReadBeforeTheMarks(t *testing.T) {
	o := newOrdered(t)
	o.shut(afterLocks)
	ended := make(chan struct{})
	go o.read(ended)
	if !o.reached(afterLocks, ended) {
		t.Fatal("nobody looks at the marks")
	}
	late := o.append("late") // its mark is not among those that were seen
	o.commit(o.append("early"))
	o.open(afterLocks)
	<-ended
	o.commit(late)
	o.read(nil)
	o.want("before", "late", "early")
}

// What commits between the snapshot of a look at the head and the look at the marks is read: rows
// are read with a later snapshot.
func TestE5_RowsAreReadAfterTheHead(t *testing.T) {
	for n := range 4 {
		o := newOrdered(t)
		want := []string{"before"}
		var open []pgx.Tx // one commits at each look at the marks, however often one call looks
		for i := range n {
			want = append(want, fmt.Sprint(i))
			open = append(open, o.append(want[i+1]))
		}
		o.commit(o.append("last"))
		for !slices.Contains(o.seen, "last") && !t.Failed() {
			o.shut(beforeLocks)
			ended := make(chan struct{})
			go o.read(ended)
			for len(open) > 0 && o.reached(beforeLocks, ended) {
				o.commit(open[0])
				open = open[1:]
				o.open(beforeLocks)
				o.shut(beforeLocks)
			}
			o.open(beforeLocks)
			<-ended
		}
		o.want(append(want, "last")...)
	}
}

// Numbers that others take while a transaction has no mark yet are below its own.
func TestE5_NumbersAreTakenAfterTheMark(t *testing.T) {
	o := newOrdered(t)
	var class int32
	o.exec("SELECT mark FROM namespace", &class)
	for name, appends := range map[string]func() error{
		"in a user's transaction": func() error {
			return pgx.BeginFunc(t.Context(), o.users, func(tx pgx.Tx) error {
				_, err := o.s.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf("marked", "", "orders")})
				return err
			})
		},
		"in the store's own": func() error {
			_, err := o.s.Append(t.Context(), []stream.Publication{eventOf("marked", "", "orders")})
			return err
		},
	} {
		var last, passed, got int64
		for waited := false; !waited; { // one of the store's own gives up soon, and tries again with another mark
			o.exec("SELECT last_value FROM event_seq", &last)
			mark := int((last + 1) & (1<<31 - 1))
			o.exec("SELECT pg_advisory_lock($1, $2)::text", new(string), class, mark)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if err := appends(); err != nil {
					t.Error(err)
				}
			}()
			marks := &gates{t: t, class: int(class), look: o.look}
			if !marks.reached(mark, ended) {
				t.Fatalf("%s: it takes no mark", name)
			}
			o.exec("SELECT nextval('event_seq')", &passed)
			waited = marks.stands(mark)
			o.exec("SELECT pg_advisory_unlock($1, $2)::text", new(string), class, mark)
			<-ended
		}
		if o.exec("SELECT max(seq) FROM event WHERE id = 'marked'", &got); got <= passed {
			t.Errorf("%s: an event has the number %d, and %d was taken before it had its mark", name, got, passed)
		}
	}
}

// A transaction of the store's own that is slow to commit holds readers back as others do.
func TestE5_ASlowCommitHoldsReadersBack(t *testing.T) {
	o := newOrdered(t)
	for _, given := range []bool{false, true} {
		o.shut(inInsert)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			slow := eventOf("slow", "", fmt.Sprint("orders.", given)) // with an id of its own it goes another way
			slow.Given = given
			if _, err := o.s.Append(t.Context(), []stream.Publication{slow}); err != nil {
				t.Error(err)
			}
		}()
		if !o.reached(inInsert, ended) {
			t.Fatal("it is not slow")
		}
		o.seen = nil
		o.commit(o.append("quick"))
		o.read(nil)
		o.want()
		o.open(inInsert)
		<-ended
		o.read(nil)
		o.want("slow", "quick")
	}
}

// A rollback to a savepoint takes the mark along, and the next append of the same transaction
// takes another one.
func TestE5_ASavepointTakesTheMarkAlong(t *testing.T) {
	o := newOrdered(t)
	tx, err := o.users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	in := o.s.Within(tx).(store.TxLog)
	run := func(text string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	add := func(id string) {
		t.Helper()
		if _, err := in.Append(t.Context(), []stream.Publication{eventOf(id, "", "orders")}); err != nil {
			t.Fatal(err)
		}
	}
	run("SAVEPOINT a")
	add("undone")
	run("ROLLBACK TO SAVEPOINT a")
	o.commit(o.append("free"))
	o.read(nil)
	o.want("before", "free")
	add("kept")
	run("SAVEPOINT b")
	add("undone")
	run("ROLLBACK TO SAVEPOINT b") // not its mark
	o.commit(o.append("behind"))
	o.read(nil)
	o.want("before", "free")
	o.commit(tx)
	o.read(nil)
	o.want("before", "free", "kept", "behind")
}

// A log that nobody has appended to has been read to nothing, and one whose next number is set
// to that before it.
func TestE5_AFreshSequenceHasGivenNothing(t *testing.T) {
	o := newOrdered(t)
	for n, called := range map[int64]bool{1: false, 1000: false, 2000: true} {
		o.exec("SELECT setval('event_seq', $1, $2)", new(int64), n, called)
		head, err := o.s.Head(t.Context())
		want := n
		if !called {
			want--
		}
		if err != nil || head.Seq() != want {
			t.Errorf("the head is %s, %v, want %d", head.Debug(), err, want)
		}
	}
}
