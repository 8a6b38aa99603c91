package pawl

import (
	"fmt"
	"testing"

	"github.com/pawlwork/pawl/internal/settings"
	"github.com/pawlwork/pawl/store"
)

// Of more queues than are served, those stay whose jobs this process holds, then those
// that have jobs: one that is cut gives back what it has not started, and nobody here
// would end the turn of what runs.
func TestJ30_HeldQueuesAreServedBeforeOthers(t *testing.T) {
	cfg := &Config{Queues: Queues{"*": {Workers: 1}}}
	known := &store.Effective{}
	for i := range settings.MaxFound { // by name before all others, without jobs
		known.Settings = append(known.Settings, store.EffectiveSetting{Setting: queueSetting(fmt.Sprintf("a%04d", i)), Value: []byte("{}")})
	}
	found := []string{"x-found", "y-held"}
	held := func(queue string) bool { return queue == "y-held" || queue == "a0999" }
	served := map[string]bool{}
	queues := cfg.rulesOf(known).runnerQueues(found, held)
	for _, q := range queues {
		served[q.Name] = true
	}
	if len(queues) != settings.MaxFound {
		t.Errorf("%d queues are served, want %d", len(queues), settings.MaxFound)
	}
	for _, name := range []string{"x-found", "y-held", "a0999", "a0000"} {
		if !served[name] {
			t.Errorf("%s is not served", name)
		}
	}
	if served["a0998"] || served["a0997"] {
		t.Error("those without jobs are not the ones that were cut")
	}
}
