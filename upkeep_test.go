package pawl_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ30_UpkeepRunsByHandAndReports(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) { ignore[Welcome](to) }, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Queue("elsewhere"), pawl.Deadline(time.Now().Add(time.Minute)))
		time.Sleep(2 * time.Minute) // virtual: past the deadline; nobody runs
		report, err := e.Upkeep(t.Context(), "expire")
		if want := []pawl.UpkeepDid{{What: "jobs dead", N: 1}}; err != nil || !slices.Equal(report.Did, want) || report.Round != "expire" {
			t.Errorf("%+v, %v, want %v", report, err, want)
		}
		e.RequireState(r.ID, job.Dead)
		if report, err := e.Upkeep(t.Context(), "expire"); err != nil || report.Total() != 0 {
			t.Errorf("again: %+v, %v", report, err)
		}
		if _, err := e.Upkeep(t.Context(), "tidy"); err == nil || !strings.Contains(err.Error(), "round") {
			t.Errorf("a round that is none: %v", err)
		}
	})
}

func TestJ30_ServicesShowsEveryLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		defer e.Close()
		ignore[Welcome](e)
		if list := e.Services(t.Context()); len(list) != 0 {
			t.Errorf("%d loops while nothing runs", len(list))
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(3 * time.Minute) // virtual: time for every loop
		synctest.Wait()
		byName := map[string]pawl.ServiceStatus{}
		for _, s := range e.Services(t.Context()) {
			byName[s.Name] = s
		}
		for _, name := range []string{
			"claim", "beat", "finish", "note", "watch", "listen", "keeper/rescue", "keeper/expire", "keeper/intents", "keeper/operations", "keeper/purge",
			"keeper/rollup", "keeper/unserved", "keeper/gates", "metrics",
		} {
			s, ok := byName[name]
			if !ok || s.Cycles == 0 || s.Errors != 0 {
				t.Errorf("%s: %+v, %v", name, s, ok)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
