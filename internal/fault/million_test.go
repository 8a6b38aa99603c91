//go:build soak

package fault

import (
	"strconv"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// TestSoak_MillionJobs hands in and drains a million jobs in one process with 100 slots: its memory stays small, and its
// goroutines are back to what they were (perform sees to that).
func TestSoak_MillionJobs(t *testing.T) {
	const most = 150_000 // KiB
	g := onSQLite(t)
	f := newFleet(t, g.address)
	f.limit = 10 * time.Minute
	p := f.start("million")
	peak, err := strconv.Atoi(f.hear(p, "peak"))
	if err != nil {
		t.Fatal(err)
	}
	f.hear(p, "over")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	done := 0
	for page := (pawl.Page{Limit: 1000}); ; {
		listed, err := g.List(t.Context(), pawl.Filter{States: []job.State{job.Done}}, page)
		if err != nil {
			t.Fatal(err)
		}
		if done += len(listed.Jobs); !listed.More {
			break
		}
		page.After = listed.Next
	}
	if done != 1_000_000 {
		t.Errorf("%d jobs are done, want a million", done)
	}
	if peak > most {
		t.Errorf("peak memory %d KiB, want at most %d", peak, most)
	}
	t.Logf("1,000,000 jobs, 100 slots: peak memory %d KiB", peak)
}
