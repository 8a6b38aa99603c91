package supervise_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl/supervise"
)

func TestS7_SnapshotOfATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		runs := 0
		tree := start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error {
			runs++
			time.Sleep(time.Duration(runs) * time.Second)
			if runs == 3 {
				return errBoom
			}
			return nil
		}))
		at := func(d time.Duration) time.Time { return epoch.Add(d) }

		time.Sleep(500 * time.Millisecond) // within the first run
		if s := status(t, tree, "tick"); s.State != supervise.StateRunning || s.Cycles != 1 || s.LastDuration != 0 || !s.Next.IsZero() {
			t.Errorf("within the first run: %+v", s)
		}
		time.Sleep(15 * time.Second) // after the second
		if s := status(t, tree, "tick"); s.State != supervise.StateWaiting || s.Cycles != 2 || s.LastDuration != 2*time.Second ||
			!s.LastStart.Equal(at(10*time.Second)) || !s.LastSuccess.Equal(at(12*time.Second)) || !s.Next.Equal(at(20*time.Second)) ||
			s.Errors != 0 || s.LastError != "" {
			t.Errorf("after the second run: %+v", s)
		}
		time.Sleep(10 * time.Second) // after the third, which failed
		if s := status(t, tree, "tick"); s.Cycles != 3 || s.LastDuration != 3*time.Second || !s.LastSuccess.Equal(at(12*time.Second)) ||
			s.Errors != 1 || s.LastError != "boom" || !s.LastErrorAt.Equal(at(23*time.Second)) || s.Kind != supervise.KindEvery {
			t.Errorf("after the third run: %+v", s)
		}
		mustStop(t, tree)
		if s := status(t, tree, "tick"); s.State != supervise.StateStopped || !s.Next.IsZero() || s.Cycles != 3 {
			t.Errorf("after Stop: %+v", s)
		}
	})
}

func TestS7_SnapshotOfARestartedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, _ := failAfter(2 * time.Second)
		tree := build(t, supervise.Config{Services: []supervise.Service{
			supervise.Loop("loop", run, supervise.Restart(supervise.Always{First: time.Minute, Limit: time.Minute})),
		}})
		if s := status(t, tree, "loop"); s.State != supervise.StateNew || s.Kind != supervise.KindLoop || s.Cycles != 0 {
			t.Errorf("before Start: %+v", s)
		}
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		s := status(t, tree, "loop")
		if pause := s.Next.Sub(s.LastErrorAt); s.State != supervise.StateRestarting || s.Restarts != 1 || s.Errors != 1 ||
			s.LastDuration != 2*time.Second || pause < 30*time.Second || pause > time.Minute {
			t.Errorf("in the pause: %+v", s)
		}
		time.Sleep(time.Minute)
		if s := status(t, tree, "loop"); s.State != supervise.StateRunning || s.Cycles != 2 || !s.Next.IsZero() {
			t.Errorf("after the restart: %+v", s)
		}
		mustStop(t, tree)
	})
}

func TestS7_SnapshotIsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.EveryShard("tick", time.Second, []string{"a"}, func(context.Context, string) error { return errBoom }))
		synctest.Wait()
		before := tree.Snapshot()
		time.Sleep(time.Second)
		synctest.Wait()
		if before[0].Shards[0].Errors != 1 || status(t, tree, "tick").Shards[0].Errors != 2 {
			t.Errorf("an old snapshot changed, or the new one did not")
		}
	})
}

type nastyError struct{}

func (*nastyError) Error() string { panic("an Error method that panics") }

func TestS7_LastErrorIsBoundedAndSurvivesNastyErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t,
			supervise.Every("long", time.Minute, func(context.Context) error { return errors.New("x" + strings.Repeat("é", 10_000)) }),
			supervise.Every("nasty", time.Minute, func(context.Context) error { return &nastyError{} }),
		)
		synctest.Wait()
		if got := status(t, tree, "long").LastError; len(got) > 1024 || len(got) < 1020 || !utf8.ValidString(got) {
			t.Errorf("text of %d bytes, valid UTF-8: %t", len(got), utf8.ValidString(got))
		}
		if s := status(t, tree, "nasty"); s.Errors != 1 || s.LastError == "" {
			t.Errorf("%+v", s)
		}
	})
}

// curiousError asks for the tree's status while its own text is being taken.
type curiousError struct{ tree func() *supervise.Supervisor }

func (e *curiousError) Error() string { return e.tree().Snapshot()[0].Name }

// An Error method is the user's code: no lock is held while it runs, or a slow one would hold up every Snapshot. If one
// were, this test would not end.
func TestS7_NoLockIsHeldWhileAnErrorIsAskedForItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tree *supervise.Supervisor
		curious := &curiousError{func() *supervise.Supervisor { return tree }}
		tree = build(t, supervise.Config{Services: []supervise.Service{
			supervise.EveryShard("sharded", time.Minute, []string{"a"}, func(context.Context, string) error { return curious }),
		}})
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer mustStop(t, tree)
		synctest.Wait()
		if s := status(t, tree, "sharded"); s.LastError != "sharded" || s.Shards[0].LastError != "sharded" {
			t.Errorf("%+v", s)
		}
	})
}
