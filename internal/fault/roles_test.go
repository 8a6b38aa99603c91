//go:build fault || soak

package fault

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// What a process of a test is told by its environment.
const (
	roleVariable  = "PAWL_FAULT_ROLE"
	storeVariable = "PAWL_FAULT_STORE" // address
)

// role is what a process of a test can be.
type role struct {
	config func() pawl.Config
	play   func(ctx context.Context, e *pawl.Engine) error // until ctx ends
}

var roles = map[string]role{
	"worker":    {config, work},
	"holder":    {config, hold},
	"restarted": {hourLong, hold},
	"sender":    {config, send},
	"long":      {leases, workLong},
	"patient":   {config, wait},
	"sitter":    {config, sit},
	"million":   {hundredSlots, million},
	"intender":  {config, intend},
	"eraser":    {config, erase},
	"follower":  {fiveQueues, work},
	"bulker":    {config, advance},
	"scheduler": {withSchedules, tock},
	"acquirer":  {limited, acquire},
	"keyed":     {byKey, inTurn},
	"consumer":  {config, consume},
	"own":       {config, own},
	"crowd":     {leases, inCrowd},
}

// goOn is closed when the test says "go on".
var goOn = make(chan struct{})

// play is the main function of a process. It stops gracefully when its standard input ends.
func play(name string) int {
	if err := perform(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func perform(name string) error {
	r, ok := roles[name]
	if !ok {
		return fmt.Errorf("no role %q", name)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if lines.Text() == "go on" {
				close(goOn)
			}
		}
		stop()
	}()
	before := goleak.IgnoreCurrent()
	e, err := pawl.Open(context.Background(), os.Getenv(storeVariable), r.config())
	for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil { // a server that starts again: who supervises a process starts it again
		e, err = pawl.Open(context.Background(), os.Getenv(storeVariable), r.config())
	}
	if err != nil {
		return err
	}
	if err := errors.Join(r.play(ctx, e), e.Close(), goleak.Find(before)); err != nil {
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
type counters struct{ Began, HandedOver, InTx, Refused, LeasesLost, Registered uint64 }

func tally(s pawl.Stats) counters {
	return counters{s.Began, s.HandedOver, s.InTx, s.Refused, s.LeasesLost, s.Registered}
}

// counted reads the counters in a process's last words.
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
