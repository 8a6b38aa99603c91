//go:build fault

package fault

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// TestFault_P2_StoppedWorker stops a process for longer than its lease, as a laptop's lid or a paused machine does. The
// others take its jobs. When it wakes up it believes for a moment that it owns them: whatever it then does to them is
// refused, its handlers are told, and it counts.
func TestFault_P2_StoppedWorker(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { stoppedWorker(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { stoppedWorker(t, onPostgres(t)) })
}

func stoppedWorker(t *testing.T, g *ground) {
	f := newFleet(t, g.address)
	sleeper := f.start("holder")
	inTx, err := g.Enqueue(t.Context(), Hold{N: 0, InTx: true})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := g.Enqueue(t.Context(), Hold{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.hearAll(sleeper, "began 0", "began 1")
	g.putToSleep(sleeper)

	others := []*process{f.start("holder"), f.start("holder")}
	f.hearOf(2, "again")

	if err := sleeper.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.hearAll(sleeper, "cancelled 0 true", "cancelled 1 true", "tried 0 true")
	counted := f.counted(f.finish(sleeper))
	if counted.LeasesLost != 2 || counted.Refused != 2 || counted.InTx != 0 {
		t.Errorf("the sleeper counted %+v, want 2 leases lost, 2 ends refused, none committed", counted)
	}
	if n := g.live(); n != 2 {
		t.Errorf("%d jobs are live after the sleeper tried to end them, want both", n)
	}
	for _, p := range others {
		p.tell("go on")
	}
	g.drained(awaitLimit)
	for _, p := range others {
		f.finish(p)
	}
	for _, id := range []job.ID{inTx.ID, plain.ID} {
		j, err := g.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		// It fell asleep before a beat could say that they had begun, or after: lost is 0 or 1.
		if j.State != job.Done || j.Run < 2 || j.Used != 0 || j.Rescues != 1 || j.Lost > 1 {
			t.Errorf("job %s is %s: run %d, %d attempts used, %d rescues, %d lost; want done, 2 or more, 0, 1, at most 1",
				j.Args, j.State, j.Run, j.Used, j.Rescues, j.Lost)
		}
	}
	g.expectOnce([]int{0, 1})
}

// putToSleep stops a process at a moment when it does not hold the write lock of an embedded store: with that it would
// stop everybody, which only its end or its waking can help.
func (g *ground) putToSleep(p *process) {
	g.t.Helper()
	for {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			g.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
		err := g.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			_, err := tx.Exec(ctx, "delete from effect where n < 0")
			return err
		})
		cancel()
		switch {
		case err == nil:
			return
		case !errors.Is(err, store.ErrBusy) && !errors.Is(err, context.DeadlineExceeded):
			g.t.Fatal(err)
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			g.t.Fatal(err)
		}
	}
}
