package pawl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ35_OperatorsChangeManyJobsByAFilter(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) { ignore[Welcome](to) }, func(t *testing.T, e *pawltest.Engine) {
		const jobs = 1201 // more than two pages
		var mail, other pawl.Receipt
		for range jobs {
			mail = e.Enqueue(Welcome{1}, pawl.Queue("elsewhere"))
		}
		other = e.Enqueue(Welcome{1}, pawl.Queue("another"))
		ctx := pawl.As(t.Context(), "ann", "a bad deploy")
		elsewhere := pawl.Filter{Queue: "elsewhere"}
		want := func(what string, n int) func(int, error) {
			return func(got int, err error) {
				t.Helper()
				if err != nil || got != n {
					t.Errorf("%s: %d, %v, want %d", what, got, err, n)
				}
			}
		}
		want("a dry run", jobs)(e.CancelAll(ctx, elsewhere, pawl.DryRun()))
		e.RequireState(mail.ID, job.Waiting)
		want("the newest", 700)(e.CancelAll(ctx, elsewhere, pawl.Most(700)))
		e.RequireState(mail.ID, job.Cancelled)
		want("the rest", jobs-700)(e.CancelAll(ctx, elsewhere))
		want("again", 0)(e.CancelAll(ctx, elsewhere))
		e.RequireState(other.ID, job.Waiting)
		want("back", jobs)(e.RetryAll(ctx, elsewhere))
		e.RequireState(mail.ID, job.Waiting)
		want("removed", jobs)(e.DeleteAll(ctx, pawl.Filter{Queue: "elsewhere", States: []pawl.State{pawl.StateWaiting}}))
		if _, err := e.Get(ctx, mail.ID); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("after it was deleted: %v", err)
		}
		e.RequireState(other.ID, job.Waiting)
		audit, err := e.Audit(ctx, pawl.AuditFilter{}, pawl.AuditPage{Limit: 1})
		if err != nil || len(audit.Entries) != 1 || audit.Entries[0].By != "ann" || audit.Entries[0].Action != "delete" {
			t.Errorf("the audit log says %+v, %v", audit, err)
		}
	})
}

func TestJ35_WhatIsMeantForManyIsChecked(t *testing.T) {
	e := newEngine()
	defer e.Close()
	if _, err := e.DeleteAll(t.Context(), pawl.Filter{Queue: "mail"}); err == nil || !strings.Contains(err.Error(), "Filter.States") {
		t.Errorf("delete without states: %v", err)
	}
	for _, n := range []int{-1, 1_000_001} {
		if _, err := e.CancelAll(t.Context(), pawl.Filter{}, pawl.Most(n)); err == nil || !strings.Contains(err.Error(), "Most") {
			t.Errorf("at most %d: %v", n, err)
		}
	}
}

func TestP10_WhyOfManyIsBounded(t *testing.T) {
	e := newEngine()
	defer e.Close()
	if _, err := e.WhyAll(t.Context(), make([]pawl.ID, 1001)); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("of 1001 jobs: %v", err)
	}
	if groups, err := e.WhyAll(t.Context(), []pawl.ID{job.NewID()}); err != nil || len(groups) != 0 {
		t.Errorf("of nobody: %v, %v", groups, err)
	}
}
