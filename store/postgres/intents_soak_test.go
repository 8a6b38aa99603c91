//go:build soak

package postgres

import (
	"testing"
	"time"
)

// As TestP8_HeldIntentsDelayNobody, for the minute that a stuck process may take.
func TestSoak_P8_IntentsHeldForAMinuteDelayNobody(t *testing.T) {
	begin := time.Now()
	holdIntents(t, bystand(t), func() bool { return time.Since(begin) < time.Minute })
}
