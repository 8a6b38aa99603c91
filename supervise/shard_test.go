package supervise_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

// cyclesOf runs a sharded tick of the shards a, bad and z for the given number of cycles and returns in which
// of them each shard ran. bad runs fail(n) on its n-th run, from 0.
func cyclesOf(t *testing.T, cycles int, fail func(n int) error) (map[string][]int, *supervise.Supervisor, *logbook) {
	t.Helper()
	var log logbook
	ran := make(map[string][]int)
	cycle, badRuns := -1, 0
	tree := startConfig(t, supervise.Config{Logger: log.logger(), Services: []supervise.Service{
		supervise.EveryShard("tick", time.Second, []string{"a", "bad", "z"}, func(_ context.Context, shard string) error {
			if shard == "a" {
				cycle++
			}
			ran[shard] = append(ran[shard], cycle)
			if shard == "bad" {
				badRuns++
				return fail(badRuns - 1)
			}
			return nil
		}, supervise.Restart(supervise.Bounded{Max: 1000, Window: time.Hour})),
	}})
	time.Sleep(time.Duration(cycles)*time.Second - time.Millisecond)
	synctest.Wait()
	return ran, tree, &log
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestS6_ShardThatFailsThreeTimesIsSkippedForTenCyclesThenTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, tree, log := cyclesOf(t, 40, func(int) error { return errBoom })
		// 0 1 2 fail; 3 to 12 are skipped; 13 is tried, fails, and the next ten are skipped.
		if want := []int{0, 1, 2, 13, 24, 35}; !slices.Equal(ran["bad"], want) {
			t.Errorf("the failing shard ran in cycles %v, want %v", ran["bad"], want)
		}
		for _, shard := range []string{"a", "z"} {
			if !slices.Equal(ran[shard], upTo(40)) {
				t.Errorf("shard %s ran in cycles %v, want each of 40", shard, ran[shard])
			}
		}
		if records := log.records(t, "shard is skipped"); len(records) != 4 || records[0]["service"] != "tick" || records[0]["shard"] != "bad" {
			t.Errorf("logged %v, want 4 records with service and shard", records)
		}
		bad := status(t, tree, "tick").Shards[1]
		if bad.Name != "bad" || bad.Errors != 6 || bad.FailedInARow != 6 || bad.SkipsLeft != 6 || bad.LastError != "boom" || !bad.LastSuccess.IsZero() {
			t.Errorf("status of the failing shard: %+v", bad)
		}
	})
}

func TestS6_ShardThatRecoversIsANormalShardAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, tree, log := cyclesOf(t, 20, func(n int) error {
			if n < 3 || n == 4 || n == 5 { // after its recovery it needs three failures in a row again
				return errBoom
			}
			return nil
		})
		want := append(upTo(3), 13, 14, 15, 16, 17, 18, 19)
		if !slices.Equal(ran["bad"], want) {
			t.Errorf("the shard ran in cycles %v, want %v", ran["bad"], want)
		}
		if records := log.records(t, "shard recovered"); len(records) != 1 {
			t.Errorf("logged %v, want one recovery", records)
		}
		if bad := status(t, tree, "tick").Shards[1]; bad.FailedInARow != 0 || bad.SkipsLeft != 0 || bad.LastSuccess.IsZero() {
			t.Errorf("status: %+v, want a normal shard", bad)
		}
	})
}

func TestS6_ASuccessInBetweenStartsTheCountAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, _, _ := cyclesOf(t, 30, func(n int) error {
			if n%3 == 2 {
				return nil
			}
			return errBoom
		})
		if !slices.Equal(ran["bad"], upTo(30)) {
			t.Errorf("the shard ran in cycles %v, want each of 30", ran["bad"])
		}
	})
}

// A shard that panics costs itself only: the shards after it run in the same cycle, and its
// count survives the restarts.
func TestS6_PanickingShardLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, tree, _ := cyclesOf(t, 16, func(int) error { panic(errBoom) })
		if want := []int{0, 1, 2, 13}; !slices.Equal(ran["bad"], want) {
			t.Errorf("the panicking shard ran in cycles %v, want %v", ran["bad"], want)
		}
		if !slices.Equal(ran["z"], upTo(16)) {
			t.Errorf("the shard after it ran in cycles %v, want each of 16", ran["z"])
		}
		if s := status(t, tree, "tick"); s.Panics != 4 || s.Restarts != 4 || s.Cycles != 16 {
			t.Errorf("%d panics, %d restarts, %d cycles, want 4, 4, 16", s.Panics, s.Restarts, s.Cycles)
		}
	})
}

func TestS6_PlainTickIsNeverSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Every("tick", time.Second, func(context.Context) error { return errBoom }))
		time.Sleep(19500 * time.Millisecond)
		if s := status(t, tree, "tick"); s.Cycles != 20 || s.Errors != 20 {
			t.Errorf("%d cycles, %d errors, want 20 and 20", s.Cycles, s.Errors)
		}
	})
}
