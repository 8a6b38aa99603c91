//go:build fault || soak

package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// recordVariable tells a process where the record is that it appends to.
const recordVariable = "PAWL_FAULT_RECORD" // file

// keyBounds are what a queue promises for each of its keys. Keys begin with the name of their queue.
var keyBounds = map[string]keyBound{
	"tenants": {Concurrent: 1, Ordered: true},
	"pairs":   {Concurrent: 2},
}

// boundOfKey is the bound of the queue that a key begins with.
func boundOfKey(key string) keyBound {
	queue, _, _ := strings.Cut(key, "-")
	return keyBounds[queue]
}

// byKey is config with a limit by key for each of two queues.
func byKey() pawl.Config {
	c := config()
	c.Queues = pawl.Queues{}
	for queue, b := range keyBounds {
		c.Queues[queue] = pawl.QueueConfig{Workers: slots}
		c.Limits = append(c.Limits, pawl.Limit{Name: queue, Queue: queue, PerKey: true, Concurrent: b.Concurrent, Ordered: b.Ordered})
	}
	return c
}

// Keyed is a job of a key. It takes a few milliseconds, and its first attempts fail.
type Keyed struct{ N, Fails, Milliseconds int }

// Kind names it.
func (Keyed) Kind() string { return "keyed" }

// inTurn runs Keyed jobs, and appends the beginning and the end of each run to the record.
func inTurn(ctx context.Context, e *pawl.Engine) error {
	record, err := openRecord(os.Getenv(recordVariable))
	if err != nil {
		return err
	}
	defer record.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Keyed]) error {
		l := keyLine{Word: "begin", Key: pawl.InfoFrom(ctx).Key, N: j.Args.N, Run: j.Run, Process: os.Getpid()}
		if err := l.appendTo(record); err != nil {
			say("failed", err)
			return err
		}
		say("began", l.Key, l.N)
		time.Sleep(time.Duration(j.Args.Milliseconds) * time.Millisecond) // stimulus: the work
		var failure error
		l.Word = "done"
		if j.Attempt <= j.Args.Fails {
			l.Word, failure = "failed", errors.New("not yet")
		}
		return errors.Join(failure, l.appendTo(record))
	})
	return e.Run(ctx)
}

// TestFault_J19_ConcurrencyOfAKeyHoldsUnderKills kills processes that run jobs of many keys, some of which fail at first.
// By the record of all runs there are never more of a key at work than its limit allows, and those of an ordered key begin
// one after the other as they were enqueued, each when the one before it is done for good.
func TestFault_J19_ConcurrencyOfAKeyHoldsUnderKills(t *testing.T) {
	for name, ground := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) { t.Parallel(); killedTurns(t, ground(t), seeded(t)) })
	}
}

// turns is one test: how much there is to do, and what has been done.
type turns struct {
	*fleet
	g       *ground
	chance  *rand.Rand
	path    string   // of the record
	record  *os.File // to which the test appends, too
	workers []*process

	keys, each, portion int   // in each queue; jobs of a key, how many of them are enqueued at once
	enqueued            int   // of each key
	runs                int   // that began
	kills               []int // after how many runs, in order
	killed              int
}

func killedTurns(t *testing.T, g *ground, chance *rand.Rand) {
	f := newFleet(t, g.address)
	n := &turns{fleet: f, g: g, chance: chance, path: filepath.Join(t.TempDir(), "record"), keys: 20, each: 15, portion: 5}
	kills := 10
	if long() {
		n.keys, n.each, kills = 40, 100, 200
	}
	var err error
	if n.record, err = openRecord(n.path); err != nil {
		t.Fatal(err)
	}
	defer n.record.Close()
	f.env = append(f.env, recordVariable+"="+n.path)
	sender, err := pawl.Open(t.Context(), g.address, byKey())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for range kills {
		n.kills = append(n.kills, 1+chance.IntN(len(keyBounds)*n.keys*n.each*9/10))
	}
	slices.Sort(n.kills)
	for range 3 {
		n.workers = append(n.workers, n.start("keyed"))
	}
	n.untilAllDone(sender)
	for _, w := range n.workers {
		if c := n.counted(n.finish(w)); c.LeasesLost > 0 {
			t.Logf("%s lost %d leases while it lived", w.name, c.LeasesLost)
		}
	}
	n.expectTurns()
}

// untilAllDone enqueues and kills while the workers work. What a killed process committed it could no longer say, so the
// end is seen in the store.
func (n *turns) untilAllDone(sender *pawl.Engine) {
	n.t.Helper()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for late := time.After(10 * time.Minute); ; {
		if n.enqueued < n.each && n.runs >= len(keyBounds)*n.keys*(n.enqueued-n.portion/2) { // most keys have none left, or few
			n.enqueuePortion(sender)
		}
		select {
		case s := <-n.said:
			n.note(s)
			n.take(s)
		case <-look.C:
			if n.enqueued == n.each && len(n.kills) == 0 && n.g.live() == 0 {
				return
			}
		case <-late:
			n.t.Fatalf("%d jobs have not ended, %d kills did not happen", n.g.live(), len(n.kills))
		}
	}
}

// enqueuePortion hands in the next jobs of each key, in order.
func (n *turns) enqueuePortion(sender *pawl.Engine) {
	n.t.Helper()
	var items []pawl.Item
	for range n.portion {
		for key := range n.keys {
			for _, queue := range []string{"tenants", "pairs"} {
				j := Keyed{N: n.enqueued, Milliseconds: 1 + n.chance.IntN(15)}
				if n.chance.IntN(10) == 0 {
					j.Fails = 1 + n.chance.IntN(2)
				}
				items = append(items, pawl.NewItem(j, pawl.Queue(queue), pawl.Key(fmt.Sprintf("%s-%d", queue, key))))
			}
		}
		n.enqueued++
	}
	if _, err := sender.EnqueueMany(n.t.Context(), items...); err != nil {
		n.t.Fatal(err)
	}
}

// take acts on one line.
func (n *turns) take(s saying) {
	n.t.Helper()
	alive := slices.Index(n.workers, s.by)
	switch {
	case s.words == nil && alive >= 0:
		n.t.Fatalf("%s ended by itself: %v", s.by.name, s.by.Wait())
	case s.words == nil:
	case s.words[0] == "failed":
		n.t.Errorf("%s: %v", s.by.name, s.words)
	case s.words[0] == "began":
		n.runs++
	}
	for len(n.kills) > 0 && n.runs >= n.kills[0] {
		n.kills = n.kills[1:]
		victim := alive // it is in the middle of a run
		if alive < 0 || n.chance.IntN(3) == 0 {
			victim = n.chance.IntN(len(n.workers))
		}
		n.killOne(victim)
		alive = slices.Index(n.workers, s.by)
	}
}

// killOne kills a worker, notes it in the record, and starts another.
func (n *turns) killOne(victim int) {
	n.t.Helper()
	w := n.workers[victim]
	doomed := keyLine{Word: "doomed", Key: "-", Process: w.PID()}.appendTo(n.record)
	n.kill(w)
	reaped := keyLine{Word: "reaped", Key: "-", Process: w.PID()}.appendTo(n.record)
	if err := errors.Join(doomed, reaped); err != nil {
		n.t.Fatal(err)
	}
	n.workers[victim] = n.start("keyed")
	n.killed++
}

// expectTurns holds the record against the limits, and demands that every job is done, by the record and by the store.
func (n *turns) expectTurns() {
	n.t.Helper()
	lines := readRecord(n.t, n.path)
	w := watchKeys(lines, boundOfKey)
	if len(w.faults) > 0 {
		n.t.Errorf("%d faults in the record; the first are\n%s", len(w.faults), strings.Join(w.faults[:min(10, len(w.faults))], "\n"))
		n.t.Logf("the record of %s:\n%s", w.first, excerpt(lines, w.first))
	}
	atBound := 0
	for queue, b := range keyBounds {
		for i := range n.keys {
			key := fmt.Sprintf("%s-%d", queue, i)
			if len(w.done[key]) != n.each {
				n.t.Errorf("%d jobs of %s are done by the record, want %d", len(w.done[key]), key, n.each)
			}
			if b.Concurrent > 1 && w.most[key] == b.Concurrent {
				atBound++
			}
		}
	}
	all := n.g.jobs()
	for _, j := range all {
		if j.State != job.Done {
			n.t.Errorf("job %s %s of %s is %s after %d runs (%d lost): %s", j.ID, j.Args, j.Key, j.State, j.Run, j.Lost, j.Reason)
		}
	}
	if want := len(keyBounds) * n.keys * n.each; len(all) != want {
		n.t.Errorf("there are %d jobs, want %d", len(all), want)
	}
	if w.cut == 0 || w.failed == 0 || atBound == 0 {
		n.t.Errorf("%d runs were cut short, %d failed, %d pairs were at their bound: nothing was tried", w.cut, w.failed, atBound)
	}
	n.t.Logf("%d jobs, %d kills, %d runs, of which %d were cut short and %d failed; %d of %d pairs were at their bound",
		len(all), n.killed, len(w.begun), w.cut, w.failed, atBound, n.keys)
}
