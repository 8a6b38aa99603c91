//go:build soak

package postgres

import (
	"testing"
	"time"
)

// 100,000 events, with transactions that are held for 5 seconds among their writers.
func TestSoak_E5_NobodySkipsAnEvent(t *testing.T) { nobodySkips(t, 100_000, 5*time.Second) }
