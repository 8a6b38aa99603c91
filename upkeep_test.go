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
	"github.com/pawlwork/pawl/store/sqlite"
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
		l, err := e.Audit(t.Context(), pawl.AuditFilter{}, pawl.AuditPage{})
		if err != nil || len(l.Entries) != 2 || l.Entries[1].Action != "run upkeep" || l.Entries[1].Target != "expire" || l.Entries[1].Detail != "1 jobs dead" || l.Entries[0].Detail != "nothing to do" {
			t.Errorf("the audit log has %+v, %v, want both rounds", l, err)
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

// Waiting jobs are put behind other gates when limits change, not with each pause.
func TestJ19_JobsAreGatedAnewWhenLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := pawl.New(sqlite.Memory(), pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}}, Logger: quiet,
			Limits: []pawl.Limit{{Name: "tenants", Queue: "default", PerKey: true, Concurrent: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ignore[Welcome](e)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		rounds := func() uint64 {
			t.Helper()
			time.Sleep(2 * time.Second) // virtual: a change is followed within one
			synctest.Wait()
			for _, s := range e.Services(t.Context()) {
				if s.Name == "keeper/gates" {
					return uint64(s.Cycles)
				}
			}
			t.Fatal("no such loop")
			return 0
		}
		if err := e.SetUpkeep(ctx, "gates", time.Hour); err != nil { // no round of its own comes in between
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // virtual: past the first
		before := rounds()
		for range 3 {
			if err := e.Queue("default").Pause(ctx); err != nil {
				t.Error(err)
			}
			if err := e.Queue("default").Resume(ctx); err != nil {
				t.Error(err)
			}
		}
		if n := rounds(); n != before {
			t.Errorf("%d rounds for three pauses", n-before)
		}
		if err := e.Limit("tenants").Set(ctx, pawl.LimitSettings{Concurrent: 2}); err != nil {
			t.Error(err)
		}
		if n := rounds(); n != before+1 {
			t.Errorf("%d rounds for a limit that has changed", n-before)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
