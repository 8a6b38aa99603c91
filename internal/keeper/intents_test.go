package keeper_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/supervise"
)

// intend leaves intents of a kind that nobody applies yet, as a process does that dies after its commit.
func (h *house) intend(n int) {
	h.t.Helper()
	var list []store.Intent
	for range n {
		list = append(list, store.Intent{ID: job.NewID(), Kind: 30_004, Subject: job.NewID().String()})
	}
	tx, err := h.store.Begin(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if err := errors.Join(tx.(store.IntendingTx).Intend(h.t.Context(), list), tx.Commit(h.t.Context())); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait() // the store has looked, and knows none of them
}

type applying func(func(string, ...any) error, []store.Intent) error

// The sweep applies what nobody has applied after its commit, within its period and without a look for nothing.
func TestJ30_IntentsThatNobodyAppliedAreSwept(t *testing.T) {
	inHouse(t, func(h *house) {
		h.intend(25)
		done := 0
		h.store.(*sqlite.Store).HandleIntents(30_004, applying(func(_ func(string, ...any) error, list []store.Intent) error {
			done += len(list)
			return nil
		}))
		tree, err := supervise.New(supervise.Config{Services: []supervise.Service{h.Service()}})
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Start(h.t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second) // virtual: one period, and full rounds follow at once
		synctest.Wait()
		if done != 25 {
			t.Errorf("%d of 25 intents were applied", done)
		}
		if stuck := tree.Stop(h.t.Context()); stuck != nil {
			t.Error(stuck)
		}
	}, func(c *keeper.Config) { c.Limit = 10 })
}

// One that fails again and again is told of, by what it is and why.
func TestP8_AnIntentThatKeepsFailingIsReported(t *testing.T) {
	var log bytes.Buffer
	inHouse(t, func(h *house) {
		h.intend(1)
		h.store.(*sqlite.Store).HandleIntents(30_004, applying(func(func(string, ...any) error, []store.Intent) error {
			return errors.New("no such node")
		}))
		for n := 1; n <= store.IntentTrouble; n++ {
			if log.Len() > 0 {
				t.Errorf("after %d failures: %s", n-1, &log)
			}
			report, err := h.Run(context.WithoutCancel(h.t.Context()), "intents")
			if err != nil || report.Total() != 1 || report.Did[0].What != "intents put off" {
				t.Errorf("%+v, %v", report, err)
			}
			time.Sleep(time.Hour) // virtual: past its pause
		}
		for _, part := range []string{"an intent of a transaction cannot be applied", "kind=30004", "no such node", "failed 3 times"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not say %q: %s", part, &log)
			}
		}
	}, func(c *keeper.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
}
