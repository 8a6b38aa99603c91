package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// versions is every case about versions of keys.
func versions() []testCase {
	return []testCase{
		{name: "E3_AnyNoStreamAndExact", run: expectations},
		{name: "E3_ARetryWithTheSameIDSucceeds", run: versionRetried},
		{name: "E3_AConflictAppendsNothing", run: versionConflict},
		{name: "E3_SeveralOfAKeyInOneCall", run: versionsOfACall},
		{name: "E3_InATransaction", run: versionsInTx},
		{name: "E3_ExactlyOneWinsEachVersion", run: versionRace},
		{name: "E3_FromTwoProcesses", needs: Features{Shared: true}, run: versionRaceOfTwo},
		{name: "E3_OnlyVersionedTopicsHaveVersions", run: unversioned},
		{name: "E3_OnceVersionedAlwaysVersioned", needs: Features{Shared: true}, run: staysVersioned},
		{name: "E3_AModelAgrees", run: versionModel},
	}
}

func versioned(e *stream.Publication) { e.Versioned = true }

func ofKey(key string) func(*stream.Publication) {
	return func(e *stream.Publication) { e.Key = key }
}

func expecting(x stream.Expect) func(*stream.Publication) {
	return func(e *stream.Publication) { e.Expect = x }
}

// put publishes one to a versioned topic, and answers its version, or 0 for a conflict.
func (d *database) put(s store.Store, id string, edit ...func(*stream.Publication)) stream.PublishReply {
	d.Helper()
	e := event("v", id, append([]func(*stream.Publication){versioned, ofKey("k")}, edit...)...)
	list, err := d.log(s).Append(d.ctx, []stream.Publication{e})
	switch {
	case errors.Is(err, stream.ErrVersion):
		return stream.PublishReply{}
	case err != nil:
		d.Fatal(err)
	}
	return list[0]
}

func expectations(d *database) {
	for i, c := range []struct {
		key  string
		x    stream.Expect
		want int64 // 0: refused
	}{
		{"a", stream.Version(1), 0}, {"a", stream.NoStream(), 1}, {"a", stream.NoStream(), 0}, {"a", stream.Version(1), 2},
		{"a", stream.Version(1), 0}, {"a", stream.Version(3), 0}, {"a", stream.AnyVersion(), 3}, {"a", stream.Version(3), 4},
		{"", stream.NoStream(), 1}, {"b", stream.AnyVersion(), 1}, {"", stream.Version(1), 2},
	} {
		got := d.put(d.Store, fmt.Sprint(i), ofKey(c.key), expecting(c.x))
		equal(d, fmt.Sprintf("%d: %q with %v", i, c.key, c.x), got.Version, c.want)
	}
	var read []string
	for _, e := range d.cursor(d.Store, stream.Filter{}).poll(100).Events {
		read = append(read, fmt.Sprint(e.Key, e.Version))
	}
	equal(d, "read", read, []string{"a1", "a2", "a3", "a4", "1", "b1", "2"})
	equal(d, "another topic has its own", d.publish(event("w", "x", versioned, ofKey("a"), expecting(stream.NoStream())))[0].Version, int64(1))
}

func versionRetried(d *database) {
	first := d.put(d.Store, "x", given, expecting(stream.NoStream()))
	d.put(d.Store, "y", given, expecting(stream.Version(1)))
	again := d.put(d.Store, "x", given, expecting(stream.NoStream()))
	equal(d, "again", again, stream.PublishReply{ID: "x", Position: first.Position, Version: 1, Duplicate: true})
	other := d.put(d.Store, "z", keyed("key"), expecting(stream.Version(2)))
	equal(d, "by its key", d.put(d.Store, "zz", keyed("key"), expecting(stream.Version(2))),
		stream.PublishReply{ID: "z", Position: other.Position, Version: 3, Duplicate: true})
	equal(d, "read", d.read(), []string{"x", "y", "z"})
}

// The error says what the key has; nothing of the call is there, and its id is free.
func versionConflict(d *database) {
	d.put(d.Store, "1")
	d.put(d.Store, "2")
	bad := []stream.Publication{
		event("v", "3", given, versioned, ofKey("other")), event("plain", "4"),
		event("v", "5", given, versioned, ofKey("k"), expecting(stream.Version(1))),
	}
	_, err := d.log(d.Store).Append(d.ctx, bad)
	if !errors.Is(err, stream.ErrVersion) || !strings.Contains(err.Error(), `key "k" of v has version 2, expected was version 1`) {
		d.Errorf("a conflict is %v", err)
	}
	equal(d, "read", d.read(), []string{"1", "2"})
	equal(d, "the other key", d.put(d.Store, "3", given, ofKey("other"), expecting(stream.NoStream())).Version, int64(1))
	equal(d, "the id", d.put(d.Store, "5", given, expecting(stream.Version(2))), stream.PublishReply{
		ID: "5", Version: 3, Position: d.cursor(d.Store, stream.Filter{}).poll(10).Events[3].Position,
	})
}

func versionsOfACall(d *database) {
	list := d.publish(
		event("v", "1", versioned, ofKey("b"), expecting(stream.NoStream())), event("v", "2", versioned, ofKey("a")),
		event("v", "3", versioned, ofKey("b"), expecting(stream.Version(1))), event("plain", "4", ofKey("b")),
		event("v", "5", versioned, ofKey("b"), given), event("v", "5", versioned, ofKey("b"), given, expecting(stream.Version(2))),
		event("v", "6", versioned, ofKey("b"), expecting(stream.Version(3))))
	var got []int64
	for _, r := range list {
		got = append(got, r.Version)
	}
	equal(d, "versions", got, []int64{1, 1, 2, 0, 3, 3, 4})
	_, err := d.log(d.Store).Append(d.ctx, []stream.Publication{
		event("v", "7", ofKey("c"), expecting(stream.NoStream())), event("v", "8", ofKey("c"), expecting(stream.NoStream())),
	})
	if !errors.Is(err, stream.ErrVersion) {
		d.Errorf("two that expect to be the first: %v", err)
	}
}

// A conflict in a transaction leaves the rest of it as it was.
func versionsInTx(d *database) {
	d.put(d.Store, "1")
	d.inTx(func(tx store.Tx) error {
		in := tx.(store.TxLog)
		list, err := in.Append(d.ctx, []stream.Publication{event("v", "2", ofKey("k"), expecting(stream.Version(1)))})
		if err != nil {
			return err
		}
		equal(d, "within", list[0], stream.PublishReply{ID: "2", Version: 2})
		_, err = in.Append(d.ctx, []stream.Publication{
			event("v", "3", given, ofKey("new")), event("v", "4", given, ofKey("k"), expecting(stream.Version(1))),
		})
		if !errors.Is(err, stream.ErrVersion) {
			d.Errorf("a conflict within is %v", err)
		}
		_, err = in.Append(d.ctx, []stream.Publication{event("v", "5", ofKey("k"), expecting(stream.Version(2)))})
		return err
	})
	equal(d, "read", d.read(), []string{"1", "2", "5"})
	tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	must[[]stream.PublishReply](d, "append")(tx.(store.TxLog).Append(d.ctx, []stream.Publication{event("v", "6", ofKey("k"))}))
	if err := tx.Rollback(d.ctx); err != nil {
		d.Error(err)
	}
	equal(d, "after a rollback", d.put(d.Store, "7", expecting(stream.Version(3))).Version, int64(4))
	equal(d, "the key of a conflict", d.put(d.Store, "8", ofKey("new"), expecting(stream.NoStream())).Version, int64(1))
}

func versionRace(d *database) { raceForVersions(d, d.Store) }

func versionRaceOfTwo(d *database) { raceForVersions(d, d.Store, d.open(store.Settings{})) }

// raceForVersions has eight goroutines compete for each of some versions: one of them has it.
func raceForVersions(d *database, stores ...store.Store) {
	const versions, racers = 15, 8
	won := make([]map[string]bool, versions)
	var mu sync.Mutex
	for v := range versions {
		won[v] = map[string]bool{}
		expect := stream.NoStream()
		if v > 0 {
			expect = stream.Version(int64(v))
		}
		var all sync.WaitGroup
		for r := range racers {
			s := stores[r%len(stores)]
			all.Go(func() {
				id := fmt.Sprintf("%d-%d", v, r)
				e := event("v", id, versioned, ofKey("k"), expecting(expect))
				e.Given = r%2 == 0
				list, err := d.log(s).Append(d.ctx, []stream.Publication{e})
				switch {
				case err == nil:
					mu.Lock()
					won[v][id] = true
					mu.Unlock()
					equal(d, "version", list[0].Version, int64(v+1))
				case !errors.Is(err, stream.ErrVersion):
					d.Error(err)
				}
			})
		}
		all.Wait()
		if len(won[v]) != 1 {
			d.Errorf("version %d was given to %v", v+1, won[v])
		}
	}
	for i, e := range d.cursor(d.Store, stream.Filter{}).poll(100).Events {
		if e.Version != int64(i+1) || !won[i][e.ID] {
			d.Errorf("event %d is %s with version %d", i, e.ID, e.Version)
		}
	}
}

func unversioned(d *database) {
	equal(d, "version", d.publish(event("plain", "1", ofKey("k")))[0].Version, int64(0))
	_, err := d.log(d.Store).Append(d.ctx, []stream.Publication{event("plain", "2", expecting(stream.NoStream()))})
	if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "expected version") || !strings.Contains(err.Error(), "plain is not") {
		d.Errorf("an expectation of a topic without versions: %v", err)
	}
	equal(d, "read", d.read(), []string{"1"})
}

// A topic that one process declares versioned is so for all, for good; those that were there
// before have none.
func staysVersioned(d *database) {
	other := d.open(store.Settings{})
	plain := func(s store.Store, id string) int64 {
		d.Helper()
		list := must[[]stream.PublishReply](d, "append")(d.log(s).Append(d.ctx, []stream.Publication{event("v", id, ofKey("k"))}))
		return list[0].Version
	}
	equal(d, "before", plain(other, "1"), int64(0))
	equal(d, "the first", d.put(d.Store, "2", expecting(stream.NoStream())).Version, int64(1))
	next := int64(2)
	if v := plain(other, "3"); v != 0 { // it may not have heard yet
		equal(d, "of another", v, next)
		next++
	}
	equal(d, "when it has heard", plain(other, "4"), next)
	equal(d, "without saying so", plain(d.Store, "5"), next+1)
	list := must[[]stream.PublishReply](d, "append")(d.log(d.open(store.Settings{})).Append(d.ctx,
		[]stream.Publication{event("v", "6", ofKey("k"), expecting(stream.Version(next+1)))}))
	equal(d, "after a restart", list[0].Version, next+2)
}

// keyModel is what versions are, without a store: of each key its last one, and what was
// accepted under which id.
type keyModel struct {
	last map[string]int64
	ids  map[string]int64
}

// publish says what becomes of a call: a version for each, or a conflict.
func (m *keyModel) publish(calls []modelEvent) (answer []int64, conflict bool) {
	last, ids := map[string]int64{}, map[string]int64{}
	for k, v := range m.last {
		last[k] = v
	}
	for k, v := range m.ids {
		ids[k] = v
	}
	for _, c := range calls {
		if v, before := ids[c.id]; before && c.id != "" {
			answer = append(answer, v)
			continue
		}
		if c.expect >= 0 && last[c.key] != c.expect {
			return nil, true
		}
		last[c.key]++
		if c.id != "" {
			ids[c.id] = last[c.key]
		}
		answer = append(answer, last[c.key])
	}
	m.last, m.ids = last, ids
	return answer, false
}

// modelEvent is one event of a call: expect is -1 for any, 0 for none yet.
type modelEvent struct {
	key, id string
	expect  int64
}

func versionModel(d *database) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 3))
	model := &keyModel{last: map[string]int64{}, ids: map[string]int64{}}
	d.Cleanup(func() {
		if d.Failed() {
			d.Logf("seed %d", seed)
		}
	})
	made := 0
	for range 60 {
		var calls []modelEvent
		var drafts []stream.Publication
		for range 1 + random.IntN(4) {
			c := modelEvent{key: string(rune('a' + random.IntN(3))), expect: int64(random.IntN(3) - 1)}
			if c.expect == 1 {
				c.expect = max(model.last[c.key]+int64(random.IntN(2)), 1)
			}
			if random.IntN(2) == 0 {
				c.id = fmt.Sprint("id-", random.IntN(30))
			}
			expect := []stream.Expect{stream.AnyVersion(), stream.NoStream(), stream.Version(c.expect)}[min(c.expect+1, 2)]
			made++
			e := event("v", fmt.Sprint("made-", made), versioned, ofKey(c.key), expecting(expect))
			if c.id != "" {
				e.ID, e.Given = c.id, true
			}
			calls, drafts = append(calls, c), append(drafts, e)
		}
		want, conflict := model.publish(calls)
		list, err := d.log(d.Store).Append(d.ctx, drafts)
		if errors.Is(err, stream.ErrVersion) != conflict || err != nil && !conflict {
			d.Fatalf("%+v: %v, and by the model a conflict: %v", calls, err, conflict)
		}
		var got []int64
		for _, r := range list {
			got = append(got, r.Version)
		}
		equal(d, fmt.Sprintf("%+v", calls), got, want)
	}
}
