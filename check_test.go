package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A bug, a restored backup or a person with a shell has left a job that says it is done
// and is not in the archive. Check names it, and Repair lets it run.
func ExampleEngine_Check() {
	ctx := pawl.As(context.Background(), "ann", "after the restore")
	e := newEngine()
	defer e.Close()
	id, err := pawl.ParseID("0193c1a0-0000-7000-8000-000000000001")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := e.Enqueue(ctx, Ship{Order: 7}, pawl.WithID(id)); err != nil {
		log.Fatal(err)
	}
	if _, err := e.DB().ExecContext(ctx, "update pawl_job set state = 5"); err != nil {
		log.Fatal(err)
	}

	report, err := e.Check(ctx, pawl.CheckOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report)

	report, err = e.Check(ctx, pawl.CheckOptions{Repair: true, Totals: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report)

	audit, err := e.Audit(ctx, pawl.AuditFilter{Action: "repair"}, pawl.AuditPage{})
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range audit.Entries {
		fmt.Println(entry.By, entry.Detail, "("+entry.Note+")")
	}
	// Output:
	// looked at 1 live and 0 archived jobs
	// broken (1):
	//   live job in a final state: job 0193c1a0-0000-7000-8000-000000000001: state 5
	// looked at 1 live and 0 archived jobs
	//   default: 1 waiting
	// repaired (1):
	//   live job in a final state: job 0193c1a0-0000-7000-8000-000000000001: state 5 → waits again
	// nothing is broken any more
	// ann live job in a final state: state 5 → waits again (after the restore)
}

// What is mended runs, without anybody looking for it.
func TestJ27_AMendedJobRuns(t *testing.T) {
	register := func(e *pawl.Engine) {
		pawl.Handle(e, func(context.Context, *pawl.Job[Ship]) error { return nil })
	}
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Ship{Order: 7})
		if _, err := e.DB().ExecContext(t.Context(), "update pawl_job set state = 3, run = 1"); err != nil {
			t.Fatal(err)
		}
		e.RunUntilIdle()
		e.RequireState(r.ID, pawl.StateRunning) // nobody has it, so nobody loses it
		report, err := e.Engine.Check(t.Context(), pawl.CheckOptions{Repair: true})
		if err != nil || report.Repaired != 1 || report.Found != 0 {
			t.Fatalf("%s, %v", report, err)
		}
		e.RunUntilIdle()
		e.RequireState(r.ID, pawl.StateDone)
	})
}

// A call that may look at some rows only goes on where the last one ended, and mends
// on its way.
func TestJ27_BoundedCallsMendEverything(t *testing.T) {
	e := broken(t, 30)
	var next string
	repaired, calls := 0, 0
	for {
		report, err := e.Check(t.Context(), pawl.CheckOptions{Repair: true, Step: 4, Rows: 8, After: next})
		if err != nil {
			t.Fatal(err)
		}
		repaired += report.Repaired
		if len(report.Faults) > 0 || report.Live > 8 {
			t.Errorf("a call looked at %d jobs and left %v", report.Live, report.Faults)
		}
		calls++
		if next = report.Next; next == "" {
			break
		}
	}
	if repaired != 30 || calls < 4 {
		t.Errorf("%d repaired in %d calls, want 30 in several", repaired, calls)
	}
}

// More faults than a report lists are mended all the same, and counted.
func TestJ27_MoreFaultsThanAReportLists(t *testing.T) {
	const jobs = store.MaxFaults + 200
	e := broken(t, jobs)
	report, err := e.Check(t.Context(), pawl.CheckOptions{})
	if err != nil || report.Found < store.MaxFaults || len(report.Faults) != store.MaxFaults {
		t.Fatalf("%d found, %d listed, %v", report.Found, len(report.Faults), err)
	}
	report, err = e.Check(t.Context(), pawl.CheckOptions{Repair: true})
	if err != nil || report.Repaired != jobs || report.Found != 0 || len(report.Repairs) != store.MaxFaults {
		t.Fatalf("%d repaired, %d listed, %d left, %v", report.Repaired, len(report.Repairs), report.Found, err)
	}
	text := report.String()
	for _, want := range []string{fmt.Sprintf("repaired (%d):", jobs), fmt.Sprintf("and %d more", jobs-20), "nothing is broken any more"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

// Not: a repair that hides what it could not do.
func TestJ27_WhatCannotBeMendedIsSaid(t *testing.T) {
	e := broken(t, 1)
	if _, err := e.DB().ExecContext(t.Context(), "update pawl_job set state = 2, capabilities = 'no list'"); err != nil {
		t.Fatal(err)
	}
	report, err := e.Check(t.Context(), pawl.CheckOptions{Repair: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Repairs) != 1 || report.Repairs[0].Answer != pawl.RepairImpossible || report.Found != 1 || report.Repaired != 0 {
		t.Errorf("report %+v", report)
	}
	text := report.String()
	for _, want := range []string{"cannot be repaired (1):", "broken still (1):", "names cannot be read"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

func TestJ27_RulesAreTold(t *testing.T) {
	e := broken(t, 0)
	rules := e.Rules()
	if len(rules) < 25 {
		t.Errorf("%d rules", len(rules))
	}
	for _, r := range rules {
		if r.Name == "" || r.Says == "" {
			t.Errorf("rule %+v", r)
		}
	}
}

func TestJ27_AStoreThatCannotRepairSaysSo(t *testing.T) {
	e, err := pawl.New(plainOpener{sqlite.Memory()}, pawl.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if report, err := e.Check(t.Context(), pawl.CheckOptions{}); err != nil || report.Found != 0 {
		t.Errorf("check: %+v, %v", report, err)
	}
	if _, err := e.Check(t.Context(), pawl.CheckOptions{Repair: true}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("repair: %v, want ErrUnsupported", err)
	}
	if e.Rules() != nil {
		t.Error("it has rules")
	}
}

// plainOpener opens a store without its optional interfaces.
type plainOpener struct{ store.Opener }

func (o plainOpener) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	opened, err := o.Opener.Open(ctx, s)
	return struct{ store.Store }{opened}, err
}

// broken is an engine with jobs in a state that they cannot be in.
func broken(t *testing.T, jobs int) *pawl.Engine {
	t.Helper()
	e := newEngine()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	list := make([]pawl.Item, jobs)
	for i := range list {
		list[i] = pawl.NewItem(Ship{Order: i})
	}
	for len(list) > 0 {
		n := min(len(list), 500)
		if _, err := e.EnqueueMany(t.Context(), list[:n]...); err != nil {
			t.Fatal(err)
		}
		list = list[n:]
	}
	if _, err := e.DB().ExecContext(t.Context(), "update pawl_job set state = 99"); err != nil {
		t.Fatal(err)
	}
	return e
}
