package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// cursors is every case about named readers.
func cursors() []testCase {
	return []testCase{
		{name: "E6_ACursorIsWhereItWasMoved", run: cursorStays},
		{name: "E6_WhoOpensFencesTheOther", run: cursorFenced},
		{name: "E6_ABatchIsCommittedAsThatBatch", run: cursorTurns},
		{name: "E6_AnotherFilterIsRefused", run: cursorFilters},
		{name: "E6_ACursorOfAnotherLogIsRefused", run: cursorPositions},
		{name: "E6_SeekAndDeleteAreAudited", run: cursorOperated},
		{name: "E7_ALeaseKeepsOthersOut", run: cursorLeased},
		{name: "E7_OneThatIsFreedIsNotLost", run: cursorFreed},
		{name: "E5_CursorsAreListed", run: cursorsListed},
		{name: "P3_ACursorMovesWithTheTransaction", run: cursorInTx},
		{name: "J29_CursorsAreTheNamespacesOwn", needs: Features{Shared: true}, run: cursorsApart},
	}
}

// reader is one process with a cursor.
type reader struct {
	d     *database
	store store.Cursors
	open  store.CursorOpen
	state store.CursorState
}

// reader opens a cursor that must be free.
func (d *database) reader(name string, edit ...func(*store.CursorOpen)) *reader {
	d.Helper()
	r := d.wouldRead(name, edit...)
	if err := r.reopen(); err != nil {
		d.Fatal("open:", err)
	}
	return r
}

// wouldRead is one that has not opened it yet.
func (d *database) wouldRead(name string, edit ...func(*store.CursorOpen)) *reader {
	d.Helper()
	s, ok := d.Store.(store.Cursors)
	if !ok {
		d.Fatalf("%T is no store.Cursors", d.Store)
	}
	r := &reader{d: d, store: s, open: store.CursorOpen{Name: name, Holder: uuid.New()}}
	for _, f := range edit {
		f(&r.open)
	}
	return r
}

func underLease(d time.Duration) func(*store.CursorOpen) {
	return func(o *store.CursorOpen) { o.Lease = d }
}

func reading(topic string) func(*store.CursorOpen) {
	return func(o *store.CursorOpen) { o.Filter.Topic = topic }
}

func (r *reader) reopen() (err error) {
	r.state, err = r.store.OpenCursor(r.d.ctx, r.open)
	return err
}

func (r *reader) to(p stream.Position) store.CursorMove {
	return store.CursorMove{Name: r.open.Name, Turn: r.state.Turn, Holder: r.open.Holder, To: p, Lease: r.open.Lease}
}

func (r *reader) move(p stream.Position) error {
	s, err := r.store.MoveCursor(r.d.ctx, r.to(p))
	if err == nil {
		r.state = s
	}
	return err
}

// lost is whether the reader may commit nothing any more.
func (r *reader) lost(what string, p stream.Position) {
	r.d.Helper()
	if err := r.move(p); !errors.Is(err, store.ErrCursorLost) {
		r.d.Errorf("%s moves it: %v", what, err)
	}
}

// at is where the cursor is, as others see it.
func (r *reader) at() stream.Position {
	r.d.Helper()
	return must[store.CursorInfo](r.d, "cursor")(r.store.CursorNamed(r.d.ctx, r.open.Name)).At
}

func cursorStays(d *database) {
	at := d.publish(someEvents("a", 3)...)
	r := d.reader("c")
	equal(d, "a new one", r.state, store.CursorState{Turn: 1, Made: true})
	if err := r.move(at[1].Position); err != nil {
		d.Fatal(err)
	}
	again := d.reader("c")
	equal(d, "where it was", again.state.At, at[1].Position)
	equal(d, "made", again.state.Made, false)
	if err := again.move(stream.Position{}); err != nil { // back to before everything
		d.Fatal(err)
	}
	equal(d, "before everything", d.reader("c").state.At, stream.Position{})
	started := d.reader("d", func(o *store.CursorOpen) { o.Start = at[0].Position })
	equal(d, "its start", started.state.At, at[0].Position)
	equal(d, "a start of one that is there", d.reader("d", func(o *store.CursorOpen) { o.Start = at[2].Position }).state.At, at[0].Position)
}

func cursorFenced(d *database) {
	at := d.publish(someEvents("a", 3)...)
	first := d.reader("c")
	second := d.reader("c")
	first.lost("who was there before", at[0].Position)
	if err := second.move(at[1].Position); err != nil {
		d.Fatal(err)
	}
	first.lost("who was there before", at[2].Position)
	equal(d, "at", second.at(), at[1].Position)
	if err := first.reopen(); err != nil {
		d.Fatal(err)
	}
	equal(d, "goes on", first.state.At, at[1].Position)
	second.lost("the other, now", at[2].Position)
}

// A batch that was committed is not committed again, nor one that was read before it.
func cursorTurns(d *database) {
	at := d.publish(someEvents("a", 3)...)
	r := d.reader("c")
	stale := r.to(at[0].Position)
	if err := r.move(at[1].Position); err != nil {
		d.Fatal(err)
	}
	if _, err := r.store.MoveCursor(d.ctx, stale); !errors.Is(err, store.ErrCursorLost) {
		d.Errorf("a batch of before: %v", err)
	}
	equal(d, "at", r.at(), at[1].Position)
	gone := d.wouldRead("nobody has made it")
	gone.lost("a cursor that is not there", at[0].Position)
}

func cursorFilters(d *database) {
	d.reader("c", reading("orders.*"))
	d.reader("c", reading("orders.*"))
	for _, topic := range []string{"", "orders.>", "orders.a"} {
		err := d.wouldRead("c", reading(topic)).reopen()
		if !errors.Is(err, store.ErrCursorFilter) {
			d.Errorf("with the filter %q: %v", topic, err)
		}
	}
	d.reader("all", reading(""))
	d.reader("all", reading(">")) // the same, in other words
	for name, o := range map[string]func(*store.CursorOpen){
		"no name":      func(o *store.CursorOpen) { o.Name = "" },
		"a bad filter": reading("a..b"),
		"a lease":      underLease(-time.Second),
	} {
		if err := d.wouldRead("x", o).reopen(); !errors.Is(err, job.ErrInvalid) {
			d.Errorf("%s: %v", name, err)
		}
	}
}

func cursorPositions(d *database) {
	at := d.publish(someEvents("a", 3)...)
	r := d.reader("c")
	if err := r.move(at[0].Position); err != nil {
		d.Fatal(err)
	}
	head := at[2].Position
	for name, p := range map[string]stream.Position{
		"of another epoch": stream.At(head.Epoch()+1, 1),
		"behind the log":   stream.At(head.Epoch(), head.Seq()+1_000_000),
	} {
		if name == "of another epoch" { // a move trusts what its holder has read in this one
			if err := r.move(p); !errors.Is(err, store.ErrPosition) {
				d.Errorf("move to a position %s: %v", name, err)
			}
		}
		if err := r.store.SeekCursor(d.ctx, "c", p, store.Operator{}); !errors.Is(err, store.ErrPosition) {
			d.Errorf("seek to a position %s: %v", name, err)
		}
		if err := d.wouldRead("new", func(o *store.CursorOpen) { o.Start = p }).reopen(); !errors.Is(err, store.ErrPosition) {
			d.Errorf("start at a position %s: %v", name, err)
		}
	}
	equal(d, "at", r.at(), at[0].Position)
}

func cursorOperated(d *database) {
	at := d.publish(someEvents("a", 3)...)
	r := d.reader("c", underLease(time.Hour))
	by := store.Operator{Name: "ops", Note: "again"}
	if err := r.store.SeekCursor(d.ctx, "c", at[1].Position, by); err != nil {
		d.Fatal(err)
	}
	r.lost("its holder, after a seek,", at[2].Position)
	if err := r.reopen(); err != nil { // its own lease
		d.Fatal(err)
	}
	equal(d, "where it was put", r.state.At, at[1].Position)
	equal(d, "losses", r.state.Losses, 0)
	if err := r.store.DeleteCursor(d.ctx, "c", by); err != nil {
		d.Fatal(err)
	}
	r.lost("its holder, after it was deleted,", at[2].Position)
	for what, err := range map[string]error{
		"seek":   r.store.SeekCursor(d.ctx, "c", at[1].Position, by),
		"delete": r.store.DeleteCursor(d.ctx, "c", by),
	} {
		if !errors.Is(err, job.ErrNotFound) {
			d.Errorf("%s one that is not there: %v", what, err)
		}
	}
	var actions []string
	for _, e := range d.audit(store.AuditFilter{Target: "c"}, 10) {
		actions = append(actions, e.Action)
	}
	slices.Sort(actions)
	equal(d, "audited", actions, []string{"delete cursor", "seek cursor"})
	equal(d, "made anew", d.reader("c", reading("other")).state.Made, true)
}

func cursorLeased(d *database) {
	const lease = 10 * time.Second
	at := d.publish(someEvents("a", 3)...)
	first := d.reader("c", underLease(lease))
	second := d.wouldRead("c", underLease(lease))
	held := func(what string) {
		d.Helper()
		if err := second.reopen(); !errors.Is(err, store.ErrCursorHeld) {
			d.Errorf("%s: %v", what, err)
		}
		if err := d.wouldRead("c").reopen(); !errors.Is(err, store.ErrCursorHeld) {
			d.Errorf("%s, for one without lease: %v", what, err)
		}
	}
	held("it is held")
	d.advance(lease * 2 / 3)
	if err := first.store.RenewCursor(d.ctx, first.to(stream.Position{})); err != nil {
		d.Fatal(err)
	}
	d.advance(lease * 2 / 3)
	held("its lease is renewed")
	if err := first.move(at[0].Position); err != nil {
		d.Fatal(err)
	}
	d.advance(lease * 2 / 3)
	held("it was moved")
	d.advance(lease)
	if err := second.reopen(); err != nil {
		d.Fatal(err)
	}
	equal(d, "where the first was", second.state.At, at[0].Position)
	equal(d, "losses", second.state.Losses, 1)
	first.lost("who has lost its lease", at[1].Position)
	if err := first.store.RenewCursor(d.ctx, first.to(stream.Position{})); !errors.Is(err, store.ErrCursorLost) {
		d.Errorf("who has lost its lease renews it: %v", err)
	}
	d.advance(2 * lease)
	if err := first.reopen(); err != nil {
		d.Fatal(err)
	}
	equal(d, "losses in a row", first.state.Losses, 2)
	if err := first.move(at[1].Position); err != nil {
		d.Fatal(err)
	}
	d.advance(2 * lease)
	equal(d, "losses after a move", d.reader("c").state.Losses, 1)
}

func cursorFreed(d *database) {
	first := d.reader("c", underLease(time.Hour))
	if err := first.store.FreeCursor(d.ctx, first.to(stream.Position{})); err != nil {
		d.Fatal(err)
	}
	second := d.reader("c", underLease(time.Hour))
	equal(d, "losses", second.state.Losses, 0)
	if err := first.store.FreeCursor(d.ctx, first.to(stream.Position{})); !errors.Is(err, store.ErrCursorLost) {
		d.Errorf("free one that another holds: %v", err)
	}
	d.advance(2 * time.Hour)
	third := d.reader("c", underLease(time.Hour))
	if err := third.store.FreeCursor(d.ctx, third.to(stream.Position{})); err != nil {
		d.Fatal(err)
	}
	equal(d, "losses of before, which moved nothing", d.reader("c").state.Losses, 1)
}

func cursorsListed(d *database) {
	for i := range 5 {
		d.reader(fmt.Sprint("c", i), reading("a.*"))
	}
	leasedOne := d.reader("d", underLease(time.Hour))
	at := d.publish(someEvents("a", 1)...)
	if err := leasedOne.move(at[0].Position); err != nil {
		d.Fatal(err)
	}
	names := func(after string, n int) (list []string) {
		for _, c := range must[[]store.CursorInfo](d, "cursors")(leasedOne.store.ListCursors(d.ctx, after, n)) {
			list = append(list, c.Name)
		}
		return list
	}
	equal(d, "first", names("", 3), []string{"c0", "c1", "c2"})
	equal(d, "then", names("c2", 30), []string{"c3", "c4", "d"})
	c := must[store.CursorInfo](d, "cursor")(leasedOne.store.CursorNamed(d.ctx, "d"))
	equal(d, "at", c.At, at[0].Position)
	if c.Moved.IsZero() || c.Made.After(c.Moved) || !c.Until.After(c.Moved) {
		d.Errorf("made %v, moved %v, until %v", c.Made, c.Moved, c.Until)
	}
	c = must[store.CursorInfo](d, "cursor")(leasedOne.store.CursorNamed(d.ctx, "c1"))
	equal(d, "filter", c.Filter, stream.Filter{Topic: "a.*"})
	if !c.Moved.IsZero() || !c.Until.IsZero() {
		d.Errorf("moved %v, until %v", c.Moved, c.Until)
	}
	if _, err := leasedOne.store.CursorNamed(d.ctx, "none"); !errors.Is(err, job.ErrNotFound) {
		d.Error("none:", err)
	}
}

func cursorInTx(d *database) {
	at := d.publish(someEvents("a", 3)...)
	r := d.reader("c", underLease(time.Hour))
	tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	if _, err := tx.(store.TxCursors).MoveCursor(d.ctx, r.to(at[0].Position)); err != nil {
		d.Fatal(err)
	}
	if err := tx.Rollback(d.ctx); err != nil {
		d.Fatal(err)
	}
	equal(d, "rolled back", r.at(), stream.Position{})
	d.inTx(func(tx store.Tx) (err error) {
		if _, err := tx.(store.TxLog).Append(d.ctx, someEvents("b", 1)); err != nil {
			return err
		}
		r.state, err = tx.(store.TxCursors).MoveCursor(d.ctx, r.to(at[1].Position))
		return err
	})
	equal(d, "committed", r.at(), at[1].Position)
	if err := r.move(at[2].Position); err != nil {
		d.Error("goes on:", err)
	}
	stale := r.to(at[0].Position)
	stale.Turn--
	tx = must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	if _, err := tx.(store.TxCursors).MoveCursor(d.ctx, stale); !errors.Is(err, store.ErrCursorLost) {
		d.Errorf("who has lost it moves it in a transaction: %v", err)
	}
	if err := tx.Rollback(d.ctx); err != nil {
		d.Error(err)
	}
}

func cursorsApart(d *database) {
	other := d.open(store.Settings{Namespace: "other"})
	at := d.publish(someEvents("a", 3)...)
	r := d.reader("c")
	theirs := &reader{d: d, store: other.(store.Cursors), open: store.CursorOpen{Name: "c", Holder: uuid.New(), Filter: stream.Filter{Topic: "x"}}}
	if err := theirs.reopen(); err != nil {
		d.Fatal(err)
	}
	if err := r.move(at[2].Position); err != nil {
		d.Fatal(err)
	}
	equal(d, "theirs", theirs.at(), stream.Position{})
	equal(d, "listed", len(must[[]store.CursorInfo](d, "cursors")(theirs.store.ListCursors(d.ctx, "", 10))), 1)
}
