//go:build fault || soak

package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pawlwork/pawl"
)

// A process of the crowd has so many engines, which hand in so many jobs a second between them, for so long.
const (
	crowd       = 25
	crowdRate   = 5
	crowdLength = 20 * time.Second
)

// inCrowd runs engines that have nothing to do, and has them hand in a trickle of jobs when the test says so.
func inCrowd(ctx context.Context, first *pawl.Engine) error {
	engines := []*pawl.Engine{first}
	var faults []error
	for n := range crowd - 1 {
		c := leases()
		c.Worker.ID = fmt.Sprint(os.Getpid(), "-", n)
		e, err := pawl.Open(ctx, os.Getenv(storeVariable), c)
		if err != nil {
			return err
		}
		defer func() { faults = append(faults, e.Close()) }()
		engines = append(engines, e)
	}
	var running sync.WaitGroup
	results := make(chan error, crowd)
	for _, e := range engines {
		pawl.Handle(e, func(context.Context, *pawl.Job[Effect]) error { return nil })
		running.Go(func() { results <- e.Run(ctx) })
	}
	say("ready")
	select {
	case <-goOn:
	case <-ctx.Done():
	}
	tick := time.NewTicker(time.Second / crowdRate)
	defer tick.Stop()
	for n := range int(crowdLength/time.Second) * crowdRate {
		select {
		case <-tick.C: // the trickle
		case <-ctx.Done():
			return ctx.Err()
		}
		r, err := engines[n%crowd].Enqueue(ctx, Effect{n})
		if err != nil {
			return err
		}
		if _, err := engines[n%crowd].Wait(ctx, r.ID); err != nil {
			return err
		}
	}
	say("trickled")
	running.Wait()
	for range crowd {
		faults = append(faults, <-results)
	}
	return errors.Join(faults...)
}
