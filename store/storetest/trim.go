package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// trims is every case about expiry and retention.
func trims() []testCase {
	return []testCase{
		{name: "E4_AnExpiredEventIsPassedOver", run: expiredPassedOver},
		{name: "E4_TheBorderOfAnExpiry", run: expiryBorder},
		{name: "E4_ExpiredEventsAreRemoved", run: expiredRemoved},
		{name: "E18_ByAge", run: trimByAge},
		{name: "E18_ByCount", run: trimByCount},
		{name: "E18_EachTopicAsItSays", run: trimEachTopic},
		{name: "E18_PositionsSurvive", run: trimPositions},
		{name: "E18_WhoLagsBehindIsTold", run: trimTold},
		{name: "E18_ACursorRemembersWhatItLost", run: trimCursor},
		{name: "E18_ATopicSaysHowItStands", run: topicStands},
		{name: "E18_ARoundIsBounded", run: trimBounded},
		{name: "E18_ManyTrimmersAtOnce", needs: Features{Shared: true}, run: trimByMany},
		{name: "E18_AModelAgrees", run: trimModel},
	}
}

func (d *database) trimmer(s store.Store) store.Trimmer {
	d.Helper()
	t, ok := s.(store.Trimmer)
	if !ok {
		d.Fatalf("%T is no store.Trimmer", s)
	}
	return t
}

// keeping keeps of each topic what its settings say.
func keeping(of map[string]stream.TopicSettings) func(string) stream.TopicSettings {
	return func(topic string) stream.TopicSettings { return of[topic] }
}

// trim goes on until there is nothing left to remove, and answers how many went.
func (d *database) trim(keep func(string) stream.TopicSettings, limit int) (removed, expired int) {
	d.Helper()
	again := false
	for q := (store.TrimRequest{Keep: keep, Limit: limit}); ; {
		reply := must[store.TrimReply](d, "trim")(d.trimmer(d.Store).Trim(d.ctx, q))
		if n := reply.Removed + reply.Expired; n > limit {
			d.Errorf("%d events were removed, at most %d", n, limit)
		}
		removed, expired = removed+reply.Removed, expired+reply.Expired
		again = again || reply.More
		if q.After = reply.Next; q.After != "" {
			continue
		}
		if !again {
			return removed, expired
		}
		again = false
	}
}

func living(ttl time.Duration) func(*stream.Publication) {
	return func(e *stream.Publication) { e.TTL = ttl }
}

func (d *database) back(f stream.Filter) (ids []string) {
	d.Helper()
	match := must[stream.Matcher](d, "filter")(f.Matcher())
	for _, e := range must[store.EventPage](d, "back")(d.logBack().EventsBack(d.ctx, store.EventQuery{Match: match})).Events {
		ids = append(ids, e.ID)
	}
	return ids
}

func expiredPassedOver(d *database) {
	d.publish(event("a", "1"), event("a", "2", living(time.Minute)), event("b", "3", living(time.Hour)), event("a", "4"))
	equal(d, "at first", d.read(), []string{"1", "2", "3", "4"})
	d.advance(2 * time.Minute)
	c := d.cursor(d.Store, stream.Filter{})
	equal(d, "later", c.all(1), []string{"1", "3", "4"})
	equal(d, "of its topic", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(2), []string{"1", "4"})
	equal(d, "back", d.back(stream.Filter{}), []string{"4", "3", "1"})
	equal(d, "back of its topic", d.back(stream.Filter{Topic: "a"}), []string{"4", "1"})
	head := must[stream.Position](d, "head")(d.log(d.Store).Head(d.ctx))
	equal(d, "it is behind all", c.at.Equal(head) || c.at.Seq() <= head.Seq(), true)
}

// It can be read until its time, and not from its time on.
func expiryBorder(d *database) {
	ends := d.now().Add(time.Hour)
	d.publish(event("a", "1", func(e *stream.Publication) { e.Expires = ends }))
	seen := false
	for {
		before := d.now()
		n := len(d.read())
		after := d.now()
		switch {
		case n == 1 && !before.Before(ends):
			d.Fatalf("it was read at %v, and expired at %v", before, ends)
		case n == 0 && after.Before(ends):
			d.Fatalf("it was not read at %v, and expires at %v", after, ends)
		}
		seen = seen || n == 1
		if n == 0 {
			break
		}
		d.advance(max(ends.Sub(after)/2, 20*time.Microsecond))
	}
	equal(d, "it was read before", seen, true)
}

// Those that have expired go wherever they stand, also where all others are kept.
func expiredRemoved(d *database) {
	d.publish(event("a", "1"), event("a", "2", living(time.Minute)), event("a", "3"), event("b", "4", living(time.Minute)), event("a", "5", living(time.Hour)))
	due := func() bool { d.Helper(); return must[store.Due](d, "due")(d.Store.Due(d.ctx)).Trim }
	equal(d, "due at first", due(), false)
	d.advance(2 * time.Minute)
	equal(d, "due", due(), true)
	removed, expired := d.trim(nil, 10)
	equal(d, "removed", []int{removed, expired}, []int{0, 2})
	equal(d, "due afterwards", due(), false)
	c := d.cursor(d.Store, stream.Filter{})
	equal(d, "rows that are left", c.poll(10).Visited, 3)
	equal(d, "read", d.read(), []string{"1", "3", "5"})
}

func trimByAge(d *database) {
	keep := keeping(map[string]stream.TopicSettings{"a": {KeepFor: time.Hour}})
	d.publish(someEvents("a", 3)...)
	d.advance(30 * time.Minute)
	d.publish(event("a", "later"))
	d.advance(29 * time.Minute)
	removed, _ := d.trim(keep, 10)
	equal(d, "before their time", removed, 0)
	d.advance(2 * time.Minute)
	removed, _ = d.trim(keep, 10)
	equal(d, "after it", removed, 3)
	equal(d, "read", d.read(), []string{"later"})
	equal(d, "by topic", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10), []string{"later"})
	equal(d, "back", d.back(stream.Filter{Topic: "a"}), []string{"later"})
	d.advance(time.Hour)
	d.trim(keep, 10)
	equal(d, "in the end", d.read(), []string(nil))
}

func trimByCount(d *database) {
	keep := keeping(map[string]stream.TopicSettings{"a": {KeepCount: 4}})
	d.publish(append(someEvents("a", 10), someEvents("b", 10)...)...)
	removed, _ := d.trim(keep, 3)
	equal(d, "removed", removed, 6)
	equal(d, "kept", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10), idsOf(someEvents("a", 10))[6:])
	equal(d, "of another", len(d.cursor(d.Store, stream.Filter{Topic: "b"}).all(10)), 10)
	removed, _ = d.trim(keep, 3)
	equal(d, "again", removed, 0)
	d.publish(event("a", "x"), event("a", "y", living(time.Minute)))
	d.trim(keep, 3)
	equal(d, "later", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10), []string{"a-8", "a-9", "x", "y"})
	d.advance(2 * time.Minute)
	d.trim(keep, 3) // it has expired: the others are fewer than what is kept
	equal(d, "after one has expired", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10), []string{"a-8", "a-9", "x"})
	d.publish(event("a", "z"))
	d.trim(keep, 3)
	equal(d, "and another came", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10), []string{"a-8", "a-9", "x", "z"})
}

func trimEachTopic(d *database) {
	var drafts []stream.Publication
	of := map[string]stream.TopicSettings{}
	for i := range 30 {
		topic := fmt.Sprintf("t%02d", i)
		drafts = append(drafts, someEvents(topic, 5)...)
		if i%2 == 0 {
			of[topic] = stream.TopicSettings{KeepCount: i%5 + 1}
		}
	}
	d.publish(drafts...)
	d.trim(keeping(of), 7)
	for i := range 30 {
		topic := fmt.Sprintf("t%02d", i)
		want := 5
		if i%2 == 0 {
			want = i%5 + 1
		}
		equal(d, topic, len(d.cursor(d.Store, stream.Filter{Topic: topic}).all(10)), want)
	}
}

// What is trimmed leaves holes: positions of before are still places, and no number comes
// again.
func trimPositions(d *database) {
	keep := keeping(map[string]stream.TopicSettings{"a": {KeepFor: time.Hour}})
	before := d.publish(someEvents("a", 4)...)
	d.advance(2 * time.Hour)
	d.trim(keep, 10)
	after := d.publish(event("a", "x"))[0]
	if order, ok := before[3].Position.Compare(after.Position); !ok || order >= 0 {
		d.Errorf("%s comes after %s", after.Position.Debug(), before[3].Position.Debug())
	}
	c := d.cursor(d.Store, stream.Filter{})
	c.at = before[1].Position
	equal(d, "from a place that is trimmed", c.all(10), []string{"x"})
}

func trimTold(d *database) {
	keep := keeping(map[string]stream.TopicSettings{"a": {KeepFor: time.Hour}})
	list := d.publish(event("a", "1"), event("a", "2"), event("b", "3"), event("a", "4", living(time.Minute)))
	d.advance(2 * time.Hour)
	d.publish(event("a", "5"))
	told := func(what string, topic string, at stream.Position, want bool) {
		d.Helper()
		c := d.cursor(d.Store, stream.Filter{Topic: topic})
		c.at = at
		equal(d, what, c.poll(10).Trimmed, want)
	}
	told("before it was trimmed", "a", list[0].Position, false)
	d.trim(keep, 10)
	told("who has read the first", "a", list[0].Position, true)
	told("of all topics", ">", list[0].Position, true)
	told("of a pattern", "*", list[0].Position, true)
	told("who has read all that did not expire", "a", list[1].Position, false)
	told("of another topic", "b", list[0].Position, false)
	told("who begins", "a", stream.Position{}, false)
	equal(d, "who begins reads", d.cursor(d.Store, stream.Filter{}).all(2), []string{"3", "5"})
}

func trimCursor(d *database) {
	log := d.Store.(store.Cursors)
	list := d.publish(someEvents("a", 4)...)
	open := store.CursorOpen{Name: "c", Filter: stream.Filter{Topic: "a"}, Holder: uuid.New()}
	state := must[store.CursorState](d, "open")(log.OpenCursor(d.ctx, open))
	move := store.CursorMove{Name: "c", Turn: state.Turn, Holder: open.Holder, To: list[1].Position}
	state = must[store.CursorState](d, "move")(log.MoveCursor(d.ctx, move))
	equal(d, "at first", must[store.CursorInfo](d, "info")(log.CursorNamed(d.ctx, "c")).Trimmed.IsZero(), true)
	before := d.now()
	move.Turn, move.To, move.Trimmed = state.Turn, list[3].Position, true
	state = must[store.CursorState](d, "move")(log.MoveCursor(d.ctx, move))
	info := must[store.CursorInfo](d, "info")(log.CursorNamed(d.ctx, "c"))
	within(d, "trimmed", info.Trimmed, before, d.now())
	move.Turn, move.Trimmed = state.Turn, false
	must[store.CursorState](d, "move")(log.MoveCursor(d.ctx, move))
	listed := must[[]store.CursorInfo](d, "list")(log.ListCursors(d.ctx, "", 10))
	equal(d, "it stays", listed[0].Trimmed, info.Trimmed)
}

func topicStands(d *database) {
	reader := d.Store.(store.TopicReader)
	if _, err := reader.TopicNamed(d.ctx, "a"); !errors.Is(err, job.ErrNotFound) {
		d.Errorf("one that is none: %v", err)
	}
	list := d.publish(append(someEvents("a", 6), event("a", "x", comesIn(time.Hour)), event("b", "y", comesIn(time.Hour)))...)
	d.put(d.Store, "1")
	equal(d, "versioned", must[store.TopicState](d, "topic")(reader.TopicNamed(d.ctx, "v")).Versioned, true)
	d.trim(keeping(map[string]stream.TopicSettings{"a": {KeepCount: 2}}), 10)
	s := must[store.TopicState](d, "topic")(reader.TopicNamed(d.ctx, "a"))
	equal(d, "low", s.Low, list[3].Position)
	equal(d, "the rest", []any{s.Name, s.Kept, s.Delayed, s.Versioned, s.Newest.IsZero()}, []any{"a", int64(2), 1, false, false})
}

func trimBounded(d *database) {
	large := func(e *stream.Publication) { e.Data = make([]byte, 3<<20) }
	for i := range 5 {
		d.publish(event("a", fmt.Sprint(i), large))
	}
	d.publish(someEvents("b", 50)...)
	d.advance(2 * time.Hour)
	keep := func(string) stream.TopicSettings { return stream.TopicSettings{KeepFor: time.Hour} }
	first := must[store.TrimReply](d, "trim")(d.trimmer(d.Store).Trim(d.ctx, store.TrimRequest{Keep: keep, Limit: 100}))
	equal(d, "by bytes", []any{first.Removed, first.More}, []any{2, true})
	equal(d, "large ones that are left", d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10), []string{"2", "3", "4"})
	d.trim(keep, 100)
	reply := must[store.TrimReply](d, "trim")(d.trimmer(d.Store).Trim(d.ctx, store.TrimRequest{Keep: keep, Limit: 10, After: "a"}))
	equal(d, "nothing is left", reply.Removed, 0)
	d.publish(someEvents("b", 50)...)
	d.advance(2 * time.Hour)
	reply = must[store.TrimReply](d, "trim")(d.trimmer(d.Store).Trim(d.ctx, store.TrimRequest{Keep: keep, Limit: 10, After: "a"}))
	equal(d, "by rows", []any{reply.Removed, reply.More}, []any{10, true})
	counting := func(string) stream.TopicSettings { return stream.TopicSettings{KeepCount: 1000} }
	reply = must[store.TrimReply](d, "trim")(d.trimmer(d.Store).Trim(d.ctx, store.TrimRequest{Keep: counting, Limit: 1}))
	equal(d, "counted", []any{reply.Counted, reply.More}, []any{store.TrimCounts, true})
}

// Processes trim while others append and read: what is kept is kept, and nobody reads
// something twice or out of order.
func trimByMany(d *database) {
	stores := []store.Store{d.Store, d.open(store.Settings{})}
	keep := keeping(map[string]stream.TopicSettings{"a": {KeepCount: 20}})
	const each = 100
	var writing, trimming sync.WaitGroup
	done := make(chan struct{})
	for w, s := range stores {
		writing.Go(func() {
			for i := range each {
				e := event("a", fmt.Sprintf("%d-%03d", w, i))
				if i%10 == 0 {
					e.TTL = time.Microsecond
				}
				if _, err := d.log(s).Append(d.ctx, []stream.Publication{e}); err != nil {
					d.Error(err)
					return
				}
			}
		})
		trimming.Go(func() {
			for q := (store.TrimRequest{Keep: keep, Limit: 7}); ; {
				reply, err := d.trimmer(s).Trim(d.ctx, q)
				if err != nil {
					d.Error(err)
					return
				}
				q.After = reply.Next
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writing.Wait()
	close(done)
	trimming.Wait()
	d.trim(keep, 50)
	equal(d, "kept", len(d.cursor(d.Store, stream.Filter{Topic: "a"}).all(10)), 20)
}

// trimModel: of each topic the newest that are young enough, and have not expired, are there.
func trimModel(d *database) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 18))
	d.Cleanup(func() {
		if d.Failed() {
			d.Logf("seed %d", seed)
		}
	})
	type kept struct {
		id      string
		age     time.Duration // when it was appended, since the start
		expires time.Duration // 0: never
	}
	of := map[string]stream.TopicSettings{"a": {KeepCount: 5}, "b": {KeepFor: 10 * time.Minute}, "c": {KeepCount: 3, KeepFor: 20 * time.Minute}, "d": {}}
	there := map[string][]kept{}
	var clock time.Duration
	for i := range 120 {
		switch random.IntN(4) {
		case 0:
			clock += time.Duration(random.IntN(4)) * time.Minute
			d.advance(clock - d.offset)
		case 1:
			d.trim(keeping(of), 1+random.IntN(6))
			for topic, keep := range of {
				list := slices.DeleteFunc(there[topic], func(k kept) bool { return k.expires > 0 && clock >= k.expires })
				if keep.KeepFor > 0 { // from the oldest on
					for len(list) > 0 && clock-list[0].age >= keep.KeepFor {
						list = list[1:]
					}
				}
				if keep.KeepCount > 0 && len(list) > keep.KeepCount {
					list = list[len(list)-keep.KeepCount:]
				}
				there[topic] = list
				var want []string
				for _, k := range list {
					want = append(want, k.id)
				}
				equal(d, fmt.Sprint(i, ": ", topic), d.cursor(d.Store, stream.Filter{Topic: topic}).all(4), want)
			}
		default:
			topic := string(rune('a' + random.IntN(4)))
			k := kept{id: fmt.Sprint(i), age: clock}
			e := event(topic, k.id)
			if random.IntN(4) == 0 { // thirty seconds beside the minutes: what the test takes decides nothing
				e.TTL = time.Duration(random.IntN(15))*time.Minute + 30*time.Second
				k.expires = clock + e.TTL
			}
			d.publish(e)
			there[topic] = append(there[topic], k)
		}
	}
}
