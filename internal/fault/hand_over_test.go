//go:build fault || soak

package fault

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// own works on Effect jobs and hands them in, too, in bursts of which small ones begin in the commits that accept
// them and large ones do not.
func own(ctx context.Context, e *pawl.Engine) error {
	var sends sync.WaitGroup
	defer sends.Wait()
	sends.Go(func() {
		chance := rand.New(rand.NewPCG(uint64(os.Getpid()), 0))
		for n := os.Getpid() * 1_000_000; ctx.Err() == nil; {
			var last pawl.ID
			for range 1 + chance.IntN(3)*chance.IntN(2*slots) {
				n++
				receipt, err := e.Enqueue(ctx, Effect{n})
				if err != nil {
					return // it stops
				}
				last = receipt.ID
				say("accepted", n)
			}
			if _, err := e.Wait(ctx, last); err != nil {
				return
			}
		}
	})
	return work(ctx, e)
}

// TestFault_J34_KilledProcessesThatHandOverToThemselves kills processes that work on what they hand in, while others do
// the same: what was accepted is done, and has left one row, and no attempt is burned for what had not begun.
func TestFault_J34_KilledProcessesThatHandOverToThemselves(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killedOwn(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { killedOwn(t, onPostgres(t)) })
}

func killedOwn(t *testing.T, g *ground) {
	chance := seeded(t)
	kills, accepts := 8, 150
	if long() {
		kills, accepts = 80, 400
	}
	f := newFleet(t, g.address)
	workers := []*process{f.start("own"), f.start("own")}
	accepted := map[int]bool{}
	note := func(s saying) {
		switch {
		case s.words == nil || s.words[0] != "accepted":
			return
		case len(s.words) < 2:
			t.Fatalf("%s: %v", s.by.name, s.words)
		}
		n, err := strconv.Atoi(s.words[1])
		if err != nil {
			t.Fatal(err)
		}
		accepted[n] = true
	}
	for range kills {
		for until := len(accepted) + accepts/2 + chance.IntN(accepts); len(accepted) < until; {
			note(f.await())
		}
		i := chance.IntN(len(workers))
		f.kill(workers[i])
		workers[i] = f.start("own")
	}
	for until := len(accepted) + accepts; len(accepted) < until; {
		note(f.await())
	}
	var handed uint64
	for _, w := range workers {
		var c counters
		if err := json.Unmarshal([]byte(f.finish(w)), &c); err != nil {
			t.Fatal(err)
		}
		handed += c.HandedOver
	}
	last := f.start("worker")
	g.drained(2 * time.Minute)
	f.finish(last)
	rows := map[int]int{}
	for _, n := range g.rows() {
		rows[n]++
	}
	jobs := map[int]bool{}
	for _, j := range g.jobs() {
		var args Effect
		if err := json.Unmarshal(j.Args, &args); err != nil {
			t.Fatal(err)
		}
		n := args.N
		jobs[n] = true
		if j.State != job.Done || rows[n] != 1 || j.Used != 0 {
			t.Errorf("number %d: its job is %s after %d runs with %d attempts burned, and has left %d rows", n, j.State, j.Run, j.Used, rows[n])
		}
	}
	for n := range accepted {
		if !jobs[n] {
			t.Errorf("number %d was accepted, and there is no job", n)
		}
	}
	if handed == 0 {
		t.Error("nothing was handed over, the test proves nothing")
	}
	t.Logf("%d kills, %d accepted, %d jobs, %d handed over by the last two processes", kills, len(accepted), len(jobs), handed)
}
