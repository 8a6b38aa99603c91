package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Kinds of intents that only tests have.
const (
	suiteKind   store.IntentKind = 30_001
	foreignKind store.IntentKind = 30_002
)

// intending is a store that lets the suite apply a kind of its own: with SQL that
// runs in the transaction which removes the intents.
type intending interface {
	store.Intents
	HandleIntents(kind store.IntentKind, apply func(exec func(text string, args ...any) error, list []store.Intent) error)
}

// effects is a table of the user's own in which each applied intent is a row, and
// its place among those of its subject.
type effects struct {
	d      *database
	broken atomic.Bool // payloads "bad" and "panic" are what they say
	mu     sync.Mutex
	calls  [][]store.Intent
}

func (d *database) effects() *effects {
	d.Helper()
	d.inTx(func(tx store.Tx) error {
		_, err := tx.Exec(d.ctx, "CREATE TABLE pawl_effect (id TEXT NOT NULL, subject TEXT NOT NULL, place INTEGER NOT NULL)")
		return err
	})
	return &effects{d: d}
}

// inTx commits what f does.
func (d *database) inTx(f func(tx store.Tx) error) {
	d.Helper()
	tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	if err := f(tx); err != nil {
		_ = tx.Rollback(d.ctx)
		d.Fatal(err)
	}
	if err := tx.Commit(d.ctx); err != nil {
		d.Fatalf("commit: %v", err)
	}
}

// on has a store apply the suite's kind.
func (e *effects) on(s store.Store) intending {
	e.d.Helper()
	in, ok := s.(intending)
	if !ok {
		e.d.Fatalf("%T is no store.Intents, or has no HandleIntents", s)
	}
	in.HandleIntents(suiteKind, e.apply)
	return in
}

func (e *effects) apply(exec func(text string, args ...any) error, list []store.Intent) error {
	e.mu.Lock()
	e.calls = append(e.calls, slices.Clone(list))
	e.mu.Unlock()
	for _, i := range list {
		err := exec(`INSERT INTO pawl_effect (id, subject, place)
	SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), count(*)
	FROM pawl_effect
	WHERE subject = CAST($2 AS TEXT)`, i.ID.String(), i.Subject)
		if err != nil {
			return err
		}
		if e.broken.Load() {
			switch string(i.Payload) {
			case "bad":
				return errors.New("a bad intent")
			case "panic":
				panic("a worse intent")
			}
		}
	}
	return nil
}

// rows reads what was applied: ids by subject, in their order.
func (e *effects) rows() map[string][]string {
	e.d.Helper()
	found := map[string][]string{}
	e.d.inTx(func(tx store.Tx) error {
		rows, err := tx.Query(e.d.ctx, "SELECT id, subject, place FROM pawl_effect ORDER BY subject, place")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, subject string
			var place int
			if err := rows.Scan(&id, &subject, &place); err != nil {
				return err
			}
			if place != len(found[subject]) {
				e.d.Errorf("subject %s: place %d at %d: two transactions were at it", subject, place, len(found[subject]))
			}
			found[subject] = append(found[subject], id)
		}
		return rows.Err()
	})
	return found
}

// intents makes n of them, of so many subjects.
func intents(n, subjects int) []store.Intent {
	list := make([]store.Intent, n)
	for i := range list {
		list[i] = store.Intent{ID: job.NewID(), Kind: suiteKind, Subject: fmt.Sprintf("s%d", i%subjects), Payload: []byte{1}}
	}
	return list
}

// bySubject is what rows finds when each was applied once, in order.
func bySubject(lists ...[]store.Intent) map[string][]string {
	want := map[string][]string{}
	for _, i := range slices.Concat(lists...) {
		want[i.Subject] = append(want[i.Subject], i.ID.String())
	}
	return want
}

// intend leaves intents in a transaction that commits.
func (d *database) intend(list ...store.Intent) {
	d.Helper()
	d.inTx(func(tx store.Tx) error { return d.intending(tx).Intend(d.ctx, list) })
}

func (d *database) intending(tx store.Tx) store.IntendingTx {
	d.Helper()
	in, ok := tx.(store.IntendingTx)
	if !ok {
		d.Fatalf("%T is no store.IntendingTx", tx)
	}
	return in
}

// settle sweeps until nothing waits, whoever applies it.
func (d *database) settle(s store.Intents) {
	d.Helper()
	for {
		must[store.IntentsReply](d, "apply")(s.ApplyIntents(d.ctx, 100))
		if len(d.waiting(s)) == 0 {
			return
		}
	}
}

func (d *database) waiting(s store.Intents) []store.IntentInfo {
	d.Helper()
	return must[[]store.IntentInfo](d, "waiting")(s.WaitingIntents(d.ctx, 1000))
}

// sweep applies until there is no more, and returns what was put off.
func (d *database) sweep(s store.Intents) (applied int, off []store.IntentInfo) {
	d.Helper()
	for more := true; more; {
		r := must[store.IntentsReply](d, "apply")(s.ApplyIntents(d.ctx, 100))
		applied, off, more = applied+r.Applied, append(off, r.PutOff...), r.More
	}
	return applied, off
}

// intent: what a user's transaction wants done to rows that others need is applied
// once, after its commit.
func intent() []testCase {
	return []testCase{
		{name: "P3_IntentsAreAppliedOnceAfterTheCommit", run: func(d *database) {
			e := d.effects()
			s := e.on(d.Store)
			first, second := intents(60, 7), intents(60, 7)
			tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
			for _, part := range [][]store.Intent{first[:25], nil, first[25:]} {
				if err := d.intending(tx).Intend(d.ctx, part); err != nil {
					d.Fatal(err)
				}
			}
			if err := tx.Commit(d.ctx); err != nil {
				d.Fatal(err)
			}
			d.intend(second...)
			d.settle(s)
			equal(d, "effects", e.rows(), bySubject(first, second))
			for _, call := range e.calls {
				for _, i := range call {
					equal(d, "intent", i, store.Intent{ID: i.ID, Kind: suiteKind, Subject: i.Subject, Payload: []byte{1}})
				}
			}
		}},
		{name: "P3_ARollbackLeavesNoIntent", run: func(d *database) {
			e := d.effects()
			s := e.on(d.Store)
			tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
			if err := d.intending(tx).Intend(d.ctx, intents(10, 2)); err != nil {
				d.Fatal(err)
			}
			if err := tx.Rollback(d.ctx); err != nil {
				d.Fatal(err)
			}
			equal(d, "waiting", d.waiting(s), nil)
			equal(d, "applied", must[store.IntentsReply](d, "apply")(s.ApplyIntents(d.ctx, 100)), store.IntentsReply{})
			equal(d, "effects", e.rows(), nil)
		}},
		{name: "P10_AnIntentOutOfBoundsIsRefused", run: func(d *database) {
			e := d.effects()
			s := e.on(d.Store)
			good := intents(1, 1)
			d.inTx(func(tx store.Tx) error {
				in := d.intending(tx)
				for _, bad := range []store.Intent{
					{ID: job.NewID(), Kind: 0}, {Kind: suiteKind}, {ID: job.NewID(), Kind: suiteKind, Subject: "a\x00"},
					{ID: job.NewID(), Kind: suiteKind, Payload: make([]byte, store.MaxIntentPayload+1)},
				} {
					if err := in.Intend(d.ctx, []store.Intent{good[0], bad}); !errors.Is(err, job.ErrInvalid) {
						d.Errorf("%v, want invalid", err)
					}
				}
				return in.Intend(d.ctx, good) // nothing was written, and the transaction goes on
			})
			d.settle(s)
			equal(d, "effects", e.rows(), bySubject(good))
		}},
		{name: "P8_AnUnknownKindIsLeftAlone", run: func(d *database) {
			e := d.effects()
			s := e.on(d.Store)
			foreign, mine := intents(3, 1), intents(3, 1)
			for i := range foreign {
				foreign[i].Kind = foreignKind
			}
			d.intend(slices.Concat(foreign, mine)...)
			for len(d.waiting(s)) > len(foreign) {
				d.sweep(s)
			}
			equal(d, "due", must[store.Due](d, "due")(d.Store.Due(d.ctx)), store.Due{})
			equal(d, "swept", must[store.IntentsReply](d, "apply")(s.ApplyIntents(d.ctx, 100)), store.IntentsReply{})
			for i, w := range d.waiting(s) {
				equal(d, "waiting", w.Intent, foreign[i])
				if w.Known || w.Failures > 0 || !w.Until.IsZero() || !strings.Contains(w.Why(), "kind 30002") {
					d.Errorf("of an unknown kind: %+v: %s", w, w.Why())
				}
			}
			equal(d, "effects", e.rows(), bySubject(mine))
			s.HandleIntents(foreignKind, e.apply) // a newer build comes
			d.settle(s)
			equal(d, "effects", e.rows(), bySubject(mine, foreign))
		}},
		{name: "P8_OneBadIntentHoldsUpNoOther", needs: Features{Shared: true}, run: func(d *database) {
			e := d.effects()
			e.broken.Store(true)
			sweeper := d.open(store.Settings{}) // another process, which nobody tells
			s := e.on(sweeper)
			list := intents(60, 20)
			list[7].Payload, list[31].Payload = []byte("bad"), []byte("panic") // subjects s7 and s11
			stuck := map[int]bool{7: true, 27: true, 47: true, 31: true, 51: true}
			var good []store.Intent
			for i := range list {
				if !stuck[i] {
					good = append(good, list[i])
				}
			}
			d.intend(list...)
			d.sweep(s)
			equal(d, "effects", e.rows(), bySubject(good))
			d.advance(time.Hour)
			for range 3 {
				_, off := d.sweep(s)
				equal(d, "put off", len(off), 2)
				var soonest time.Time
				for _, o := range off {
					if soonest.IsZero() || o.Until.Before(soonest) {
						soonest = o.Until
					}
					if !o.Until.After(d.now()) || o.Failures < 2 || o.Error == "" {
						d.Errorf("put off: %+v", o)
					}
				}
				applied, off := d.sweep(s)
				due := must[store.Due](d, "due")(sweeper.Due(d.ctx))
				if soonest.After(d.now()) { // a slow machine may have come to it
					equal(d, "before their time", [2]int{applied, len(off)}, [2]int{0, 0})
					equal(d, "due before their time", due, store.Due{})
				}
				d.advance(time.Hour)
			}
			for _, w := range d.waiting(s) {
				i := slices.IndexFunc(list, func(i store.Intent) bool { return i.ID == w.ID })
				want := "is behind one of subject"
				if i == 7 || i == 31 {
					want = "intent"
				}
				if !stuck[i] || !strings.Contains(w.Why(), want) {
					d.Errorf("intent %d waits: %s", i, w.Why())
				}
			}
			e.broken.Store(false)
			d.sweep(s)
			equal(d, "waiting", d.waiting(s), nil)
			equal(d, "effects", e.rows(), bySubject(list))
		}},
		{name: "P10_OneTransactionAppliesSoMany", run: func(d *database) {
			e := d.effects()
			large := intents(100, 3)
			for i := range large {
				large[i].Payload = make([]byte, store.MaxIntentPayload)
			}
			for part := range slices.Chunk(large, 50) {
				d.intend(part...) // of a kind that is not known yet
			}
			s := e.on(d.Store)
			d.settle(s)
			for _, call := range e.calls {
				bytes := 0
				for i := range call {
					bytes += call[i].Weight()
				}
				if bytes > store.IntentBytes {
					d.Errorf("%d intents of %d bytes in one transaction, want at most %d bytes", len(call), bytes, store.IntentBytes)
				}
			}
			equal(d, "effects", e.rows(), bySubject(large))
		}},
		{name: "J30_IntentsAreDue", needs: Features{Shared: true}, run: func(d *database) {
			e := d.effects()
			sweeper := d.open(store.Settings{}) // another process, which nobody tells
			s := e.on(sweeper)
			due := func() store.Due { return must[store.Due](d, "due")(sweeper.Due(d.ctx)) }
			equal(d, "due", due(), store.Due{})
			list := intents(25, 3)
			d.intend(list...)
			equal(d, "due after the commit", due(), store.Due{Intents: true})
			equal(d, "where nobody knows them", must[store.Due](d, "due")(d.Store.Due(d.ctx)), store.Due{})
			r := must[store.IntentsReply](d, "apply")(s.ApplyIntents(d.ctx, 10))
			equal(d, "one round", r, store.IntentsReply{Applied: 10, More: true})
			applied, off := d.sweep(s)
			equal(d, "the others", [2]int{applied, len(off)}, [2]int{15, 0})
			equal(d, "due after the sweep", due(), store.Due{})
			equal(d, "effects", e.rows(), bySubject(list))
		}},
		{name: "F14_SweepsOfManyApplyNothingTwice", needs: Features{Shared: true}, run: func(d *database) {
			e := d.effects()
			var lists [][]store.Intent
			for range 8 {
				list := intents(50, 9)
				d.intend(list...)
				lists = append(lists, list)
			}
			var sweeping sync.WaitGroup
			var applied atomic.Int64
			for range 3 {
				s := e.on(d.open(store.Settings{}))
				sweeping.Go(func() {
					for len(d.waiting(s)) > 0 {
						r, err := s.ApplyIntents(d.ctx, 20)
						if err != nil || len(r.PutOff) > 0 {
							d.Errorf("%+v, %v", r, err)
							return
						}
						applied.Add(int64(r.Applied))
					}
				})
			}
			sweeping.Wait()
			equal(d, "applied by all of them", applied.Load(), int64(400))
			equal(d, "effects", e.rows(), bySubject(lists...))
		}},
		{name: "P8_IntentsOfANamespaceAreItsOwn", needs: Features{Shared: true}, run: func(d *database) {
			e := d.effects()
			list := intents(5, 1)
			d.intend(list...)
			other := e.on(d.open(store.Settings{Namespace: "other"}))
			equal(d, "applied elsewhere", must[store.IntentsReply](d, "apply")(other.ApplyIntents(d.ctx, 100)), store.IntentsReply{})
			equal(d, "waiting elsewhere", d.waiting(other), nil)
			d.settle(e.on(d.Store))
			equal(d, "effects", e.rows(), bySubject(list))
		}},
	}
}
