//go:build fault || soak

package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// Effect is a job that leaves one row.
type Effect struct{ N int }

// Kind names it.
func (Effect) Kind() string { return "effect" }

// work runs Effect jobs: the row and the end of the job in one transaction.
func work(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Effect]) error {
		say("began", j.Args.N, j.Run)
		if err := leaveRow(ctx, e, j.Args.N, j.Run, j); err != nil {
			say("failed", j.Args.N, meaning(err))
			return err
		}
		say("ran", j.Args.N, j.Run)
		return nil
	})
	return e.Run(ctx)
}

// meaning is what an error of a store says to a caller that can only try again, in one word; else its text.
func meaning(err error) string {
	switch {
	case errors.Is(err, pawl.ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(err, store.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, pawl.ErrLeaseLost):
		return "lost"
	case errors.Is(err, pawl.ErrStopping):
		return "stopping"
	case errors.Is(err, store.ErrTxTooLong):
		return "too-long"
	}
	return err.Error()
}

func leaveRow(ctx context.Context, e *pawl.Engine, n int, run int64, j pawl.Running) error {
	return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		if _, err := tx.Exec(ctx, "insert into effect (n, run) values ($1, $2)", n, run); err != nil {
			return err
		}
		return tx.Finish(j)
	})
}

// Hold is a job whose first run waits until its lease is lost and then goes on as if nothing had happened. Later runs
// wait until the test says "go on".
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
			say("again", n)
			<-goOn
			return leaveRow(ctx, e, n, j.Run, j)
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

// Long is a job whose first run lasts until the test says "go on".
type Long struct {
	N        int
	Obedient bool // it returns when its context is cancelled, as it should
}

// Kind names it.
func (Long) Kind() string { return "long" }

// workLong runs Long jobs.
func workLong(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Long]) error {
		n := j.Args.N
		say("began", n, j.Run)
		defer say("ended", n, j.Run)
		if j.Run > 1 {
			return nil
		}
		if !j.Args.Obedient {
			<-goOn
			return nil
		}
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			say("cancelled", n, errors.Is(context.Cause(ctx), pawl.ErrLeaseLost))
			return ctx.Err()
		}
	})
	return e.Run(ctx)
}

// Patient is an Effect whose runs wait until the test says "go on". It obeys.
type Patient struct{ N int }

// Kind names it.
func (Patient) Kind() string { return "patient" }

// wait runs Patient jobs.
func wait(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Patient]) error {
		say("began", j.Args.N, j.Run)
		select {
		case <-goOn:
			return leaveRow(ctx, e, j.Args.N, j.Run, j)
		case <-ctx.Done():
			say("cancelled", j.Args.N, context.Cause(ctx))
			return context.Cause(ctx)
		}
	})
	return e.Run(ctx)
}

// Sit is an Effect that sits in its transaction, after its row is written, until the test says "go on".
type Sit struct{ N int }

// Kind names it.
func (Sit) Kind() string { return "sit" }

// sit runs Sit jobs.
func sit(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Sit]) error {
		err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, "insert into effect (n, run) values ($1, $2)", j.Args.N, j.Run); err != nil {
				return err
			}
			say("sits", j.Args.N)
			select {
			case <-goOn:
				return tx.Finish(j)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			say("failed", j.Args.N, meaning(err))
		}
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

// Nothing is a job that does nothing.
type Nothing struct{ N int }

// Kind names it.
func (Nothing) Kind() string { return "nothing" }

func hundredSlots() pawl.Config {
	return pawl.Config{Queues: pawl.Queues{"default": {Workers: 100}}}
}

// million hands in and drains a million jobs in this process, and says how much memory it had at most.
func million(ctx context.Context, e *pawl.Engine) error {
	const jobs, batch, senders = 1_000_000, 1_000, 4
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ran atomic.Int64
	pawl.Handle(e, func(context.Context, *pawl.Job[Nothing]) error {
		if n := ran.Add(1); n == jobs {
			stop()
		}
		return nil
	})
	sent := make(chan error, senders)
	for part := range senders {
		go func() {
			items := make([]pawl.Item, batch)
			for n := part * jobs / senders; n < (part+1)*jobs/senders; n += batch {
				for i := range items {
					items[i] = pawl.NewItem(Nothing{n + i})
				}
				if _, err := e.EnqueueMany(context.WithoutCancel(ctx), items...); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
	}
	err := e.Run(ctx)
	for range senders {
		err = errors.Join(err, <-sent)
	}
	peak, statusErr := peakMemory()
	say("peak", peak)
	return errors.Join(err, statusErr)
}

// peakMemory is the most memory that this process had, in KiB. Not getrusage: that one begins with what the process had
// which started this one.
func peakMemory() (kib int, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(after, &kib)
	return kib, err
}
