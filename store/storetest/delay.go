package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// delayedEvents is every case about events that come later.
func delayedEvents() []testCase {
	return []testCase{
		{name: "E4_ADelayedEventComesWhenItIsDue", run: delayedComes},
		{name: "E4_TheBorderOfADelay", run: delayBorder},
		{name: "E4_ItsIDIsKnownFromItsAcceptance", run: delayedOnce},
		{name: "E4_ADelayIsDurable", needs: Features{Durable: true, Shared: true}, run: delayedDurable},
		{name: "E4_ATimeToLiveCountsFromTheAppend", run: delayedTTL},
		{name: "E4_ADelayedEventComesBackAsItWas", run: delayedAsItWas},
		{name: "E4_InATransaction", run: delayedInTx},
		{name: "E4_ManyAppendersAppendEachOnce", needs: Features{Shared: true}, run: delayedByMany},
		{name: "E4_ARoundIsBounded", run: delayedBounded},
		{name: "E3_ADelayedEventGetsItsVersionWhenItComes", run: delayedVersion},
		{name: "E4_AModelAgrees", run: delayModel},
	}
}

func comesIn(d time.Duration) func(*stream.Publication) {
	return func(e *stream.Publication) { e.In = d }
}

func (d *database) delays(s store.Store) store.Delays {
	d.Helper()
	l, ok := s.(store.Delays)
	if !ok {
		d.Fatalf("%T is no store.Delays", s)
	}
	return l
}

// appendDue has all appended that is due.
func (d *database) appendDue(limit int) store.AppendDueReply {
	d.Helper()
	return must[store.AppendDueReply](d, "append due")(d.delays(d.Store).AppendDue(d.ctx, limit))
}

func delayedComes(d *database) {
	noon := d.now().Add(time.Hour)
	list := d.publish(event("a", "3", comesIn(3*time.Hour)), event("a", "2", func(e *stream.Publication) { e.At = noon.Add(time.Hour) }),
		event("a", "0"), event("a", "1", func(e *stream.Publication) { e.At = noon }),
		event("a", "past", func(e *stream.Publication) { e.At = noon.Add(-2 * time.Hour) }))
	var delayed []bool
	for _, r := range list {
		delayed = append(delayed, r.Delayed && r.Position.IsZero())
	}
	equal(d, "delayed", delayed, []bool{true, true, false, true, false})
	c := d.cursor(d.Store, stream.Filter{})
	equal(d, "at once", c.all(10), []string{"0", "past"})
	equal(d, "nothing is due", d.appendDue(10).Appended, 0)
	within(d, "the next", d.appendDue(10).Next, noon, noon)
	d.advance(time.Hour + time.Minute)
	equal(d, "the first", d.appendDue(10).Appended, 1)
	equal(d, "read", c.all(10), []string{"1"})
	d.advance(5 * time.Hour)
	reply := d.appendDue(10)
	equal(d, "the others", []any{reply.Appended, reply.Next.IsZero()}, []any{2, true})
	equal(d, "in the order of their times", c.all(10), []string{"2", "3"})
	equal(d, "and no more", d.appendDue(10).Appended, 0)
}

// It is appended at its time, not a microsecond before.
func delayBorder(d *database) {
	due := d.now().Add(time.Hour)
	d.publish(event("a", "1", func(e *stream.Publication) { e.At = due }))
	for {
		reply := d.appendDue(10)
		if reply.Appended == 1 {
			break
		}
		if !reply.Now.Before(due) && reply.Next.After(reply.Now) {
			d.Fatalf("at %v it was not appended, due at %v", reply.Now, due)
		}
		d.advance(max(due.Sub(reply.Now)/2, 20*time.Microsecond))
	}
	if e := d.cursor(d.Store, stream.Filter{}).poll(10).Events[0]; e.Appended.Before(due) || e.Time.Before(due) {
		d.Errorf("it was appended at %v and is of %v, due at %v", e.Appended, e.Time, due)
	}
}

func delayedOnce(d *database) {
	first := d.publish(event("a", "x", given, keyed("k"), comesIn(time.Hour)))[0]
	equal(d, "first", first, stream.PublishReply{ID: "x", Delayed: true})
	waits := stream.PublishReply{ID: "x", Delayed: true, Duplicate: true}
	equal(d, "again", d.publish(event("a", "x", given, comesIn(time.Hour)))[0], waits)
	equal(d, "again, at once", d.publish(event("a", "x", given))[0], waits)
	equal(d, "by its key", d.publish(event("a", "y", keyed("k")))[0], waits)
	equal(d, "a key that came later", d.publish(event("a", "x", given, keyed("l")))[0], waits)
	equal(d, "in one call", d.publish(event("a", "z", given, comesIn(time.Hour)), event("a", "z", given))[1].Duplicate, true)
	d.advance(2 * time.Hour)
	equal(d, "due", d.appendDue(10).Appended, 2)
	at := d.cursor(d.Store, stream.Filter{}).poll(10).Events[0].Position
	there := stream.PublishReply{ID: "x", Position: at, Duplicate: true}
	equal(d, "when it is there", d.publish(event("a", "x", given))[0], there)
	equal(d, "by the later key", d.publish(event("a", "y", keyed("l")))[0], there)
	equal(d, "read", d.read(), []string{"x", "z"})
}

func delayedDurable(d *database) {
	d.publish(event("a", "x", given, comesIn(time.Hour)))
	if err := d.Store.Close(); err != nil {
		d.Fatal(err)
	}
	d.Store = d.open(store.Settings{})
	equal(d, "again", d.publish(event("a", "x", given))[0].Duplicate, true)
	d.advance(time.Hour + time.Second)
	equal(d, "due", d.appendDue(10).Appended, 1)
	equal(d, "read", d.read(), []string{"x"})
}

func delayedTTL(d *database) {
	d.publish(event("a", "x", comesIn(time.Hour), func(e *stream.Publication) { e.TTL = time.Minute }))
	d.advance(5 * time.Hour)
	d.appendDue(10)
	e := d.cursor(d.Store, stream.Filter{}).poll(10).Events[0]
	equal(d, "lives for", e.Expires.Sub(e.Appended), time.Minute)
}

func delayedAsItWas(d *database) {
	when := time.Date(2026, 11, 16, 12, 0, 0, 123_456_000, time.UTC)
	full := event("orders.größer", "id-1", comesIn(time.Hour), func(e *stream.Publication) {
		e.Key, e.Type, e.Source, e.ContentType, e.Schema = "ключ", "order", "/shop", "application/json", 3
		e.Time, e.Expires = when, when.AddDate(100, 0, 0)
		e.Headers, e.Correlation, e.Causation = map[string]string{"a": "b\nc"}, "c-1", "c-0"
		e.Trace, e.TraceState, e.Data = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x=1", []byte{0, 1, 255}
	})
	d.publish(full)
	d.advance(2 * time.Hour)
	d.appendDue(1)
	got := d.cursor(d.Store, stream.Filter{Topic: "orders.*"}).poll(10).Events[0]
	want := full.Event
	want.Position, want.Appended = got.Position, got.Appended
	equal(d, "event", got, want)
}

func delayedInTx(d *database) {
	d.inTx(func(tx store.Tx) error {
		list, err := tx.(store.TxLog).Append(d.ctx, []stream.Publication{event("a", "1", comesIn(time.Hour)), event("a", "2")})
		if err == nil {
			equal(d, "within", list, []stream.PublishReply{{ID: "1", Delayed: true}, {ID: "2"}})
		}
		return err
	})
	tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	must[[]stream.PublishReply](d, "append")(tx.(store.TxLog).Append(d.ctx, []stream.Publication{event("a", "3", comesIn(time.Hour))}))
	if err := tx.Rollback(d.ctx); err != nil {
		d.Error(err)
	}
	d.advance(2 * time.Hour)
	equal(d, "due", d.appendDue(10).Appended, 1)
	equal(d, "read", d.read(), []string{"2", "1"})
}

// All processes append at once: each event comes once, and those of a key in their order.
func delayedByMany(d *database) {
	stores := []store.Store{d.Store, d.open(store.Settings{}), d.open(store.Settings{})}
	const n = 120
	var drafts []stream.Publication
	for i := range n {
		drafts = append(drafts, event("a", fmt.Sprintf("%03d", i), given, ofKey("k"), comesIn(time.Hour+time.Duration(i)*time.Millisecond)))
	}
	d.publish(drafts...)
	d.advance(2 * time.Hour)
	var all sync.WaitGroup
	for range 2 {
		for _, s := range stores {
			all.Go(func() {
				for {
					reply, err := d.delays(s).AppendDue(d.ctx, 7)
					if err != nil {
						d.Error(err)
						return
					}
					if reply.Next.IsZero() {
						return
					}
				}
			})
		}
	}
	all.Wait()
	equal(d, "read", d.read(), idsOf(drafts))
}

func delayedBounded(d *database) {
	large := func(e *stream.Publication) { e.Data = make([]byte, 3<<20) }
	for i := range 5 {
		d.publish(event("a", fmt.Sprint(i), comesIn(time.Hour), large))
	}
	d.advance(2 * time.Hour)
	var took []int
	for reply := d.appendDue(100); reply.Appended > 0; reply = d.appendDue(100) {
		took = append(took, reply.Appended)
		if !reply.Next.IsZero() && reply.Next.After(reply.Now) {
			d.Errorf("the next is said to be due at %v, and it is %v", reply.Next, reply.Now)
		}
	}
	equal(d, "by bytes", took, []int{3, 2})
	for i := range 5 {
		d.publish(event("a", fmt.Sprint("b", i), comesIn(time.Hour)))
	}
	d.advance(2 * time.Hour)
	equal(d, "by rows", d.appendDue(2).Appended, 2)
}

func delayedVersion(d *database) {
	d.put(d.Store, "late", given, comesIn(time.Hour))
	equal(d, "before it", d.put(d.Store, "1", expecting(stream.NoStream())).Version, int64(1))
	d.advance(2 * time.Hour)
	d.appendDue(10)
	again := d.put(d.Store, "late", given)
	equal(d, "its version", []any{again.Version, again.Duplicate}, []any{int64(2), true})
	equal(d, "after it", d.put(d.Store, "3", expecting(stream.Version(2))).Version, int64(3))
}

// delayModel: whatever is accepted comes once, at its time, in the order of times.
func delayModel(d *database) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 4))
	d.Cleanup(func() {
		if d.Failed() {
			d.Logf("seed %d", seed)
		}
	})
	type waiting struct {
		id  string
		due time.Duration
	}
	var clock time.Duration // since the start
	var wait []waiting
	var want []string
	known := map[string]bool{}
	for i := range 80 {
		if random.IntN(3) == 0 {
			clock += time.Duration(random.IntN(5)) * time.Minute
			d.advance(time.Duration(int64(clock)) - d.offset)
			for d.appendDue(1+random.IntN(5)).Appended > 0 {
			}
			slices.SortStableFunc(wait, func(a, b waiting) int { return int(a.due - b.due) })
			for len(wait) > 0 && wait[0].due <= clock {
				want, wait = append(want, wait[0].id), wait[1:]
			}
			continue
		}
		// Thirty seconds beside the minutes: what the test itself takes decides nothing.
		e := event("a", fmt.Sprint("id-", random.IntN(40)), given)
		later := random.IntN(3) > 0
		if later {
			e.In = time.Duration(random.IntN(10))*time.Minute + 30*time.Second
		}
		reply := d.publish(e)[0]
		equal(d, fmt.Sprint(i, ": duplicate"), reply.Duplicate, known[e.ID])
		if known[e.ID] {
			continue
		}
		known[e.ID] = true
		if later {
			wait = append(wait, waiting{e.ID, clock + e.In})
		} else {
			want = append(want, e.ID)
		}
	}
	equal(d, "read", d.read(), want)
}
