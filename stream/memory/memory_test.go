package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
	"github.com/pawlwork/pawl/stream/streamtest"
)

func fresh(o memory.Options) func(t *testing.T) streamtest.Fixture {
	return func(*testing.T) streamtest.Fixture {
		o.Versioned = []string{"accounts.>"}
		b := memory.New(o)
		return streamtest.Fixture{
			Backend: b,
			Kill: func(t testing.TB, group, member string) {
				t.Helper()
				if !b.Kill(group, member) {
					t.Errorf("there is no %s in %s", member, group)
				}
			},
			Parked: func(_ testing.TB, group string) []stream.Parked { return b.Parked(group) },
			PutBad: func(_ testing.TB, topic, key string, data []byte) {
				b.PutBad(topic, key, data, errors.New("no envelope"))
			},
			Versioned: "accounts.opened", Window: memory.DefaultWindow,
		}
	}
}

func TestConformance(t *testing.T) { streamtest.RunVirtual(t, fresh(memory.Options{})) }

func TestConformance_Lease(t *testing.T) {
	streamtest.RunVirtual(t, fresh(memory.Options{Lease: 24 * time.Hour}))
}
