package pawl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

func TestJ17_LimitsAreDeclaredSetAndTakenBack(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		ctx := pawl.As(t.Context(), "ann", "they complained")
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}},
			Limits: []pawl.Limit{
				{Name: "github", Burst: 100, PerSecond: 1.4},
				{Name: "tenants", Queue: "imports", PerKey: true, Concurrent: 2, Weights: map[string]int{"acme": 3}},
			},
		}, ignoring)
		w.must(w.Limit("github").Set(ctx, pawl.LimitSettings{PerSecond: 0.5}))
		soon()
		limits, err := w.Limits(ctx)
		w.must(err)
		if len(limits) != 2 || limits[0].Name != "github" || limits[1].Holds.Weights["acme"] != 3 {
			t.Fatalf("the limits are %+v", limits)
		}
		github := limits[0]
		if github.Holds.PerSecond != 0.5 || github.Holds.Burst != 100 || github.Declared.PerSecond != 1.4 || github.By != "ann" ||
			!slices.Equal(github.Overridden, []string{"per_second"}) {
			t.Errorf("github is %+v", github)
		}
		w.must(w.Limit("github").Reset(ctx, "per_second"))
		limits, err = w.Limits(ctx)
		w.must(err)
		if limits[0].Holds.PerSecond != 1.4 || len(limits[0].Overridden) > 0 {
			t.Errorf("github is %+v after it was taken back", limits[0])
		}
		audit, err := w.Audit(ctx, pawl.AuditFilter{}, pawl.AuditPage{})
		w.must(err)
		if len(audit.Entries) != 2 || audit.Entries[0].By != "ann" || audit.Entries[0].Action != "reset limit" || audit.Entries[1].Action != "set limit" {
			t.Errorf("the audit log has %+v", audit.Entries)
		}
		for field, err := range map[string]error{
			"PerSecond -3":            w.Limit("github").Set(ctx, pawl.LimitSettings{PerSecond: -3}),
			`LimitSettings "nothing"`: w.Limit("github").Set(ctx, pawl.LimitSettings{}),
			`field "colour"`:          w.Limit("github").Reset(ctx, "colour"),
			`limit "a b"`:             w.Limit("a b").Reset(ctx),
		} {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("got %v, want %s", err, field)
			}
		}
	})
}

func TestJ17_DeclaredLimitsAreChecked(t *testing.T) {
	_, err := pawl.New(sqlite.Memory(), pawl.Config{Limits: []pawl.Limit{
		{Name: "a b", PerSecond: 1}, {Name: "two", PerSecond: 1}, {Name: "two", PerSecond: 1}, {Name: "none"},
	}})
	for _, want := range []string{`Config.Limits[0].Name "a b"`, `Config.Limits[2].Name "two": must be there once`, "Config.Limits[3].PerSecond 0: must be set"} {
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A process that runs hears of settings a little later; a limit that is new to it is
// looked for before it is refused.
func TestJ17_ANewLimitIsAcquiredAtOnce(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, ignoring)
		ops := at.settle(pawl.Config{})
		soon()
		ops.must(ops.Limit("new").Set(t.Context(), pawl.LimitSettings{PerSecond: 5}))
		if _, err := w.Acquire(t.Context(), "new", 1); err != nil {
			t.Error(err)
		}
		if _, err := w.Acquire(t.Context(), "nobody's", 1); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("of a limit that nobody knows: %v", err)
		}
	})
}

// Who operates need not know of a limit itself: what it sets goes with what is declared,
// and what does not go with it is refused.
func TestJ30_ALimitIsSetByWhoDoesNotDeclareIt(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		ops := at.settle(pawl.Config{}) // opened before anybody declares them
		at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}},
			Limits: []pawl.Limit{
				{Name: "github", Burst: 100, PerSecond: 1.4},
				{Name: "orders", Queue: "orders", PerKey: true, Concurrent: 1, Ordered: true},
			},
		}, ignoring)
		soon()
		ops.must(ops.Limit("github").Set(t.Context(), pawl.LimitSettings{Burst: 7}))
		if limits, err := ops.Limits(t.Context()); err != nil || limits[0].Holds.Burst != 7 || limits[0].Holds.PerSecond != 1.4 {
			t.Errorf("the limits are %+v, %v", limits, err)
		}
		err := ops.Limit("orders").Set(t.Context(), pawl.LimitSettings{Concurrent: 3})
		if err == nil || !strings.Contains(err.Error(), "limit orders.Ordered") {
			t.Errorf("three of an ordered key at once: %v", err)
		}
		if err := ops.Limit("nobody").Set(t.Context(), pawl.LimitSettings{Burst: 7}); err == nil {
			t.Error("a burst of no rate was set")
		}
	})
}
