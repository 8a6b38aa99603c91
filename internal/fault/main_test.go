//go:build fault || soak

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
)

// TestMain is also where the processes of the tests begin.
func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		os.Exit(play(name))
	}
	goleak.VerifyTestMain(m)
}

// long reports whether this is a soak.
func long() bool { return os.Getenv("PAWL_FAULT") == "long" }

// seeded is the chance that a test throws. A failure shows its seed.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(1)
	if long() {
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("PAWL_FAULT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("PAWL_FAULT_SEED is %q, must be a number", text)
		}
	}
	t.Logf("PAWL_FAULT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Leases nearly as short as an engine takes them, so that a lost process is missed soon. With beats as short as it takes
// them a slow machine would not do: each call has the time of two, and who is late by as much may not declare others lost.
const (
	beat      = time.Second
	lostAfter = 7 * time.Second
)

// slots is how many jobs a process runs at once.
const slots = 4

// fiveQueues serves as many, with leases as users have them.
func fiveQueues() pawl.Config {
	c := pawl.Config{Queues: pawl.Queues{}, Version: "v1"}
	for _, name := range []string{"default", "a", "b", "c", "d"} {
		c.Queues[name] = pawl.QueueConfig{Workers: slots}
	}
	return c
}

// config is that of most processes. MaxLost and Attempts are never reached: the faults are ours, no job is to blame.
func config() pawl.Config {
	return pawl.Config{
		Queues:    pawl.Queues{"default": {Workers: slots}},
		Beat:      beat,
		LostAfter: lostAfter,
		Grace:     5 * time.Second,
		MaxLost:   1_000,
		Attempts:  1_000,
		Backoff:   pawl.Constant(50 * time.Millisecond),
		Worker:    pawl.Worker{Prefix: "fault", ID: fmt.Sprint(os.Getpid())},
	}
}

// leases is config with the leases that an engine has by default when there is time for them.
func leases() pawl.Config {
	c := config()
	if long() {
		c.Beat, c.LostAfter = 5*time.Second, 30*time.Second
	}
	return c
}
