//go:build fault || soak

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/pawlwork/pawl"
)

// What a process of a test is told by its environment.
const (
	roleVariable  = "PAWL_FAULT_ROLE"
	storeVariable = "PAWL_FAULT_STORE" // address
)

// roles are what a process of a test can be. It stops gracefully when its standard input ends.
var roles = map[string]func(ctx context.Context, e *pawl.Engine) error{
	"worker": work,
	"holder": hold,
	"sender": send,
}

// play is the main function of a process.
func play(name string) int {
	if err := perform(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func perform(name string) error {
	role, ok := roles[name]
	if !ok {
		return fmt.Errorf("no role %q", name)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	e, err := pawl.Open(context.Background(), os.Getenv(storeVariable), config())
	if err != nil {
		return err
	}
	if err := role(ctx, e); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	counted, err := json.Marshal(tally(e.Stats()))
	if err != nil {
		return err
	}
	say("over", string(counted))
	return nil
}

// counters are what a worker counted, as it says at its end.
type counters struct{ Began, InTx, Refused, LeasesLost, Registered uint64 }

func tally(s pawl.Stats) counters {
	return counters{s.Began, s.InTx, s.Refused, s.LeasesLost, s.Registered}
}

// heard reads the counters in a process's last words.
func (f *fleet) counted(words string) (c counters) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(words), &c); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// say writes one line in one piece: a reader never sees half of it, also when the process is killed.
func say(words ...any) {
	if _, err := os.Stdout.WriteString(fmt.Sprintln(words...)); err != nil {
		os.Exit(1) // nobody listens
	}
}

// Effect is a job that leaves one row.
type Effect struct{ N int }

// Kind names it.
func (Effect) Kind() string { return "effect" }

// work runs Effect jobs: the row and the end of the job in one transaction.
func work(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Effect]) error {
		say("began", j.Args.N, j.Run)
		if err := leaveRow(ctx, e, j.Args.N, j.Run, j); err != nil {
			say("failed", j.Args.N, j.Run, err)
			return err
		}
		say("ran", j.Args.N, j.Run)
		return nil
	})
	return e.Run(ctx)
}

func leaveRow(ctx context.Context, e *pawl.Engine, n int, run int64, j pawl.Running) error {
	return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		if _, err := tx.Exec(ctx, "insert into effect (n, run) values ($1, $2)", n, run); err != nil {
			return err
		}
		return tx.Finish(j)
	})
}

// Hold is a job whose first run waits until its lease is lost and then goes on as if nothing had happened.
type Hold struct {
	N    int
	InTx bool // it leaves its row and finishes in a transaction, else it just returns nil
}

// Kind names it.
func (Hold) Kind() string { return "hold" }

// hold runs Hold jobs. A later run may have any number above 1: a job that was lost runs alone in its process, and a
// claim that brought two of them gives one back.
func hold(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Hold]) error {
		n := j.Args.N
		if j.Run > 1 {
			err := leaveRow(ctx, e, n, j.Run, j)
			say("again", n, err)
			return err
		}
		say("began", n)
		<-ctx.Done()
		say("cancelled", n, errors.Is(context.Cause(ctx), pawl.ErrLeaseLost))
		if !j.Args.InTx {
			return nil
		}
		err := leaveRow(context.WithoutCancel(ctx), e, n, j.Run, j)
		say("tried", n, errors.Is(err, pawl.ErrLeaseLost))
		return err
	})
	return e.Run(ctx)
}

// send hands in jobs from several goroutines, and says each one's id once it is accepted.
func send(ctx context.Context, e *pawl.Engine) error {
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				receipt, err := e.Enqueue(ctx, Effect{n})
				if err != nil {
					if ctx.Err() == nil {
						say("failed", err)
					}
					return
				}
				say("accepted", receipt.ID)
			}
		})
	}
	senders.Wait()
	return nil
}
