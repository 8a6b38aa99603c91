package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ16_VirtualTimeFiresSchedules(t *testing.T) {
	var at []time.Time
	register := func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[ship]) error {
			at = append(at, time.Now().UTC())
			return nil
		})
	}
	nightly := pawltest.Config(func(c *pawl.Config) {
		c.Schedules = []pawl.Schedule{{Name: "nightly", Cron: "0 3 * * *", Job: ship{Order: 1}}}
	})
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		e.RunUntilIdle()
		if len(at) != 0 {
			t.Errorf("ran at %v", at)
		}
		e.Advance(3 * 24 * time.Hour) // takes no time
		if len(at) != 3 {
			t.Fatalf("ran at %v, want three nights", at)
		}
		for i, when := range at {
			if want := time.Date(2000, 1, 1+i, 3, 0, 0, 0, time.UTC); when.Sub(want) < 0 || when.Sub(want) > time.Second {
				t.Errorf("ran at %v, want %v", when, want)
			}
		}
		if err := e.Schedule("nightly").Pause(t.Context()); err != nil { // also while nobody runs
			t.Fatal(err)
		}
		e.Advance(24 * time.Hour)
		if len(at) != 3 {
			t.Errorf("paused, it ran at %v", at)
		}
		if err := e.Schedule("nightly").Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.Advance(24 * time.Hour)
		if len(at) != 4 {
			t.Errorf("resumed, it ran at %v", at)
		}
	}, nightly)
}
