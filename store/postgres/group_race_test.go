package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Members of two processes take turns on one shelf at the same time, and give half of what they
// get back once. Nobody gets what another has open, and each event is done once.
func TestE8_MembersRaceOnOneShelf(t *testing.T) {
	t.Parallel()
	const events, members = 600, 6
	g := newGroupLab(t)
	other := feedtest.New(t, g.open())
	for i := range events / 100 {
		var ids []string
		for j := range 100 {
			ids = append(ids, fmt.Sprint(i*100+j))
		}
		g.publish("a", ids...)
	}
	var mu sync.Mutex
	holder, done, failed := map[string]int{}, map[string]int{}, map[string]bool{}
	var all sync.WaitGroup
	for n := range members {
		p := joinOn(t, []*feedtest.Backend{g.b, other}[n%2], memberOf("g", "a", fmt.Sprint("m", n), stream.Competing))
		all.Go(func() {
			var settled []stream.Settlement
			for {
				mu.Lock()
				over := len(done) == events
				mu.Unlock()
				if over && len(settled) == 0 {
					return
				}
				mu.Lock() // before the turn: from then on others may have what it settles
				for _, s := range settled {
					for id, d := range p.open {
						if d.Ref == s.Ref {
							delete(holder, id)
							if s.Verdict == stream.Acked {
								done[id]++
							}
						}
					}
				}
				mu.Unlock()
				got, err := p.try(5, settled...)
				if err != nil {
					t.Error(err)
					return
				}
				settled = nil
				mu.Lock()
				for _, id := range got {
					if who, has := holder[id]; has || done[id] > 0 {
						t.Errorf("%s is given to %d; %d has it, and it was done %d times", id, n, who, done[id])
					}
					holder[id] = n
				}
				for id := range p.open {
					s := p.say(id, stream.Acked)
					if !failed[id] && len(id)%2 == 0 {
						failed[id], s.Verdict = true, stream.Retried
					}
					settled = append(settled, s)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("%s was done %d times", id, n)
		}
	}
}

// Two members look for what was given back at the same moment: one gets it.
func TestE11_ARetryIsPickedOnce(t *testing.T) {
	t.Parallel()
	g := newGroupLab(t)
	a, b := g.join("g", "a", "a", stream.Competing), g.join("g", "a", "b", stream.Competing)
	for i := range 20 {
		id := fmt.Sprint(i)
		g.publish("a", id)
		a.want(id)
		a.next(0, a.say(id, stream.Retried))
		lock := g.begin()
		g.run(lock, "SELECT pg_advisory_xact_lock($1)", g.s.groups.LockKey(a.feed.Hand().Shelf))
		one, two := later(func() ([]string, error) { return a.try(5) }), later(func() ([]string, error) { return b.try(5) })
		g.waiting(2)
		g.commit(lock)
		first, err := one()
		if err != nil {
			t.Fatal(err)
		}
		second, err := two()
		if err != nil {
			t.Fatal(err)
		}
		if len(first)+len(second) != 1 {
			t.Fatalf("one gets %v, the other %v", first, second)
		}
		a.next(0, a.all()...)
		b.next(0, b.all()...)
	}
}

// The number of a topic that is made slowly is lower than that of one made meanwhile. Who knows
// the topics up to the newest knows it too, so its events are not passed over.
func TestE8_ATopicThatWasMadeSlowlyIsNotSkipped(t *testing.T) {
	t.Parallel()
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			g := newGroupLab(t)
			third, reader := g.open(), g.open()
			m := joinOn(t, feedtest.New(t, reader), memberOf("g", "a.*", "m", mode))
			lock := g.begin() // holds a name, so that who makes it too waits
			g.run(lock, "INSERT INTO pawl.topic (namespace, name) VALUES ($1, 'a.y')", g.s.pg.Namespace)
			slow := later(func() ([]stream.PublishReply, error) {
				return g.s.Append(t.Context(), []stream.Publication{eventOf("1", "", "a.x"), eventOf("2", "", "a.y")})
			})
			g.waiting(1)
			ended := make(chan struct{})
			fast := later(func() ([]stream.PublishReply, error) {
				defer close(ended)
				return third.Append(t.Context(), []stream.Publication{eventOf("3", "", "a.z")})
			})
			seen := map[string]bool{}
			look := func() {
				for _, id := range m.drain() {
					seen[id] = true
				}
			}
			g.waiting(2, ended) // it waits for the other, or was not told to
			look()
			if err := lock.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, wait := range []func() ([]stream.PublishReply, error){fast, slow} {
				if _, err := wait(); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 { // each is as good as a poll
				if _, err := reader.Head(t.Context()); err != nil {
					t.Fatal(err)
				}
				look()
			}
			if len(seen) != 3 {
				t.Errorf("only %v came", seen)
			}
		})
	}
}

// A group that is deleted while somebody joins it leaves nothing behind that nobody can remove.
func TestE8_AJoinDuringADelete(t *testing.T) {
	t.Parallel()
	g := newGroupLab(t)
	g.join("g", "a", "first", stream.FanOut)
	hold := g.begin()
	g.run(hold, "SELECT FROM pawl.hand FOR KEY SHARE") // the delete waits for it
	removed := later(func() (struct{}, error) { return struct{}{}, g.s.DeleteGroup(t.Context(), "g", store.Operator{}) })
	g.waiting(1)
	ended := make(chan struct{})
	joined := later(func() (stream.Feed, error) {
		defer close(ended)
		return g.b.Backend.Join(t.Context(), memberOf("g", "a", "second", stream.FanOut))
	})
	g.waiting(2, ended) // it waits for the delete, or was not told to
	g.commit(hold)
	if _, err := removed(); err != nil {
		t.Fatal(err)
	}
	if _, err := joined(); err != nil {
		t.Fatal(err)
	}
	var orphans int
	err := g.pool.QueryRow(t.Context(), g.s.pg.SQL(`SELECT count(*)
FROM pawl.hand AS h
WHERE NOT EXISTS (SELECT FROM pawl.consumer_group AS g WHERE g.namespace = h.namespace AND g.id = h.consumer_group)`)).Scan(&orphans)
	if err != nil || orphans > 0 {
		t.Errorf("%d members have no group, %v", orphans, err)
	}
}
