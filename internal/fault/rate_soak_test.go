//go:build soak

package fault

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// TestSoak_J17_ARateIsUsed has nine workers in three processes acquire as fast as they can: they get at least 90 % of
// what comes. Then the limit is drained: a second later nobody acquires any more, until the drain is over.
func TestSoak_J17_ARateIsUsed(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { usedRate(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { usedRate(t, onPostgres(t)) })
}

func usedRate(t *testing.T, g *ground) {
	const measured, drained = 30 * time.Second, 5 * time.Second
	f := newFleet(t, g.address)
	started := map[*process]bool{}
	processes := []*process{f.start("acquirer"), f.start("acquirer"), f.start("acquirer")}
	var spans []span
	next := func() (s span) {
		for {
			if said := f.await(); s.take(t, said) {
				started[said.by] = true
				spans = append(spans, s)
				return s
			}
		}
	}
	for len(started) < len(processes) {
		next()
	}
	begin, count := next().to, 0
	for next().to < begin+measured.Microseconds() {
		count++
	}
	if want := int(0.9 * ratePerSecond * measured.Seconds()); count < want {
		t.Errorf("%d tokens were acquired in %v, want %d or more", count, measured, want)
	}
	t.Logf("%d of %.0f tokens were acquired in %v", count, ratePerSecond*measured.Seconds(), measured)

	// Nobody runs, so nobody declares the limit: who drains it has it in its own configuration.
	e, err := pawl.Open(t.Context(), g.address, limited())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before := time.Now()
	if err := e.Limit("shared").Drain(t.Context(), drained); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	var last time.Duration // after the drain
	for s := next(); s.to < before.Add(drained).UnixMicro(); s = next() {
		last = time.UnixMicro(s.to).Sub(after)
		if last > time.Second {
			t.Errorf("a token was acquired %v after the drain", last)
		}
	}
	t.Logf("the last token was acquired %v after the drain, of %v", last, drained)
	for _, p := range processes {
		f.kill(p)
	}
	expectRate(t, spans)
}
