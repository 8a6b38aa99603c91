package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// seenEvents is every case about ids and idempotency keys.
func seenEvents() []testCase {
	return []testCase{
		{name: "E2_AnIDIsAcceptedOnce", run: idOnce},
		{name: "E2_AcrossRestarts", needs: Features{Shared: true}, run: idAfterRestart},
		{name: "E2_AKeyWhoseIDDiffers", run: keyOnce},
		{name: "E2_WithinOneCall", run: onceInACall},
		{name: "E2_TheWindowEnds", run: windowEnds},
		{name: "E2_FromManyProcesses", needs: Features{Shared: true}, run: idFromMany},
		{name: "E2_InATransaction", run: idInTx},
	}
}

func given(e *stream.Publication) { e.Given = true }

func keyed(key string) func(*stream.Publication) {
	return func(e *stream.Publication) { e.Idempotency = key }
}

// read are the ids of all events.
func (d *database) read() []string { d.Helper(); return d.cursor(d.Store, stream.Filter{}).all(64) }

func idOnce(d *database) {
	first := d.publish(event("a", "x", given))[0]
	again := d.publish(event("a", "x", given))[0]
	equal(d, "first", first.Duplicate, false)
	equal(d, "again", again, stream.PublishReply{ID: "x", Position: first.Position, Duplicate: true})
	equal(d, "another topic", d.publish(event("b", "x", given))[0].Duplicate, false)
	equal(d, "made by nobody", d.publish(event("a", "x"))[0].Duplicate, false)
	equal(d, "read", d.read(), []string{"x", "x", "x"})
}

func idAfterRestart(d *database) {
	d.publish(event("a", "x", given))
	reopened := d.open(store.Settings{})
	list := must[[]stream.PublishReply](d, "append")(d.log(reopened).Append(d.ctx, []stream.Publication{event("a", "x", given)}))
	equal(d, "after a restart", list[0].Duplicate, true)
}

func keyOnce(d *database) {
	first := d.publish(event("a", "1", given, keyed("k")))[0]
	equal(d, "another id", d.publish(event("a", "2", given, keyed("k")))[0], stream.PublishReply{ID: "1", Position: first.Position, Duplicate: true})
	equal(d, "that id alone", d.publish(event("a", "2", given))[0].ID, "1")
	equal(d, "without id", d.publish(event("a", "made", keyed("k")))[0].ID, "1")
	equal(d, "the id, another key", d.publish(event("a", "1", given, keyed("l")))[0].Duplicate, true)
	equal(d, "that key", d.publish(event("a", "3", keyed("l")))[0].ID, "1")
	equal(d, "a key is no id", d.publish(event("a", "k", given))[0].Duplicate, false)
	equal(d, "read", d.read(), []string{"1", "k"})
}

func onceInACall(d *database) {
	d.publish(event("a", "old", given))
	list := d.publish(event("a", "1"), event("a", "x", given), event("a", "old", given), event("a", "x", given), event("a", "2"))
	var duplicates []bool
	for _, r := range list {
		duplicates = append(duplicates, r.Duplicate)
	}
	equal(d, "duplicates", duplicates, []bool{false, false, true, true, false})
	equal(d, "the same", list[3].Position, list[1].Position)
	equal(d, "read", d.read(), []string{"old", "1", "x", "2"})
}

func windowEnds(d *database) {
	first := d.publish(event("a", "x", given, keyed("k")))[0]
	d.advance(stream.Window - time.Minute)
	equal(d, "within it", d.publish(event("a", "x", given))[0].Duplicate, true)
	d.advance(2 * time.Minute)
	second := d.publish(event("a", "x", given))[0]
	equal(d, "after it", second.Duplicate, false)
	equal(d, "another place", second.Position.Equal(first.Position), false)
	equal(d, "and within the next", d.publish(event("a", "x", given))[0], stream.PublishReply{ID: "x", Position: second.Position, Duplicate: true})
	d.advance(2 * stream.Window)
	if n := must[int](d, "purge")(d.Store.Purge(d.ctx, 1000)); n < 2 {
		d.Errorf("%d rows were purged, of two names", n)
	}
	equal(d, "read", d.read(), []string{"x", "x"})
}

func idFromMany(d *database) {
	stores := []store.Store{d.Store, d.open(store.Settings{}), d.open(store.Settings{})}
	const ids, each = 20, 5
	var mu sync.Mutex
	fresh := map[string]int{}
	places := map[string][]stream.Position{}
	var all sync.WaitGroup
	for n := range each {
		for _, s := range stores {
			all.Go(func() {
				for i := range ids {
					id := fmt.Sprint("id-", (i+n)%ids)
					list, err := d.log(s).Append(d.ctx, []stream.Publication{event("a", id, given), event("a", "k"+id, keyed(id))})
					if err != nil {
						d.Error(err)
						return
					}
					mu.Lock()
					for _, r := range list {
						if !r.Duplicate {
							fresh[r.ID]++
						}
						places[r.ID] = append(places[r.ID], r.Position)
					}
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	equal(d, "ids", len(fresh), 2*ids)
	for id, n := range fresh {
		if slices.ContainsFunc(places[id], func(p stream.Position) bool { return !p.Equal(places[id][0]) }) || n != 1 {
			d.Errorf("%s was accepted %d times, at %v", id, n, places[id])
		}
	}
	equal(d, "read", len(d.read()), 2*ids)
}

func idInTx(d *database) {
	in := func(commit bool, want bool, drafts ...stream.Publication) {
		d.Helper()
		tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
		list := must[[]stream.PublishReply](d, "append")(tx.(store.TxLog).Append(d.ctx, drafts))
		equal(d, "duplicate", list[0].Duplicate, want)
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(d.ctx); err != nil {
			d.Fatal(err)
		}
	}
	in(false, false, event("a", "x", given))
	in(true, false, event("a", "x", given))
	in(true, true, event("a", "x", given))
	equal(d, "outside", d.publish(event("a", "x", given))[0].Duplicate, true)
	equal(d, "read", d.read(), []string{"x"})
}
