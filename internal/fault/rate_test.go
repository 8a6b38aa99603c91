//go:build fault || soak

package fault

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

const (
	ratePerSecond = 200
	rateBurst     = 100
)

// limited declares the limit that acquirers share.
func limited() pawl.Config {
	c := config()
	c.Limits = []pawl.Limit{{Name: "shared", PerSecond: ratePerSecond, Burst: rateBurst}}
	return c
}

// acquire takes tokens in three goroutines and says of each when it asked and when it had it, in µs.
func acquire(ctx context.Context, e *pawl.Engine) error {
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for ctx.Err() == nil {
				asked := time.Now().UnixMicro()
				switch _, err := e.Acquire(ctx, "shared", 1); {
				case err == nil:
					say("acquired", asked, time.Now().UnixMicro())
				case !errors.Is(err, context.Canceled):
					say("failed", err)
				}
			}
		})
	}
	group.Wait()
	return nil
}

// span is a time within which a token was acquired.
type span struct{ from, to int64 }

// take adds what a process said.
func (s *span) take(t *testing.T, said saying) bool {
	t.Helper()
	if len(said.words) != 3 || said.words[0] != "acquired" {
		if said.words != nil && said.words[0] == "failed" {
			t.Errorf("%s: %v", said.by.name, said.words)
		}
		return false
	}
	var errs [2]error
	s.from, errs[0] = strconv.ParseInt(said.words[1], 10, 64)
	s.to, errs[1] = strconv.ParseInt(said.words[2], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return true
}

// expectRate demands of every time that no more tokens were certainly acquired within it than burst + rate × time.
func expectRate(t *testing.T, spans []span) {
	t.Helper()
	slices.SortFunc(spans, func(a, b span) int { return int(a.to - b.to) })
	for i := range spans {
		begin := spans[i].from
		used := int64(0)
		for _, s := range spans {
			if s.from < begin {
				continue
			}
			used++
			if over := (used-rateBurst)*1_000_000 - ratePerSecond*(s.to-begin); over > 0 {
				t.Fatalf("%d tokens were acquired within %d µs, want %d + %d a second at most", used, s.to-begin, rateBurst, ratePerSecond)
			}
		}
	}
}

// TestFault_J17_ProcessesShareARate has three processes acquire as fast as they can, and kills one after the other. Whatever
// they had taken with them is lost, and never more than the rate is acquired.
func TestFault_J17_ProcessesShareARate(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { sharedRate(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { sharedRate(t, onPostgres(t)) })
}

func sharedRate(t *testing.T, g *ground) {
	chance := seeded(t)
	kills := 2
	if long() {
		kills = 20
	}
	f := newFleet(t, g.address)
	processes := []*process{f.start("acquirer"), f.start("acquirer"), f.start("acquirer")}
	var spans []span
	for range kills {
		for n := 200 + chance.IntN(300); n > 0; {
			var s span
			if said := f.await(); s.take(t, said) {
				spans = append(spans, s)
				n--
			}
		}
		i := chance.IntN(len(processes))
		f.kill(processes[i])
		processes[i] = f.start("acquirer")
	}
	for running := len(processes); running > 0; {
		for _, p := range processes {
			_ = p.input.Close()
		}
		said := f.await()
		var s span
		switch {
		case s.take(t, said):
			spans = append(spans, s)
		case said.words != nil && said.words[0] == "over":
			running--
		}
	}
	expectRate(t, spans)
	t.Logf("%d tokens over %d kills", len(spans), kills)
}
