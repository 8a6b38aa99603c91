//go:build soak

package httpapi_test

import (
	"testing"
	"time"
)

func TestSoak_RandomRequestsGetNoFault(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	until := time.Now().Add(5 * time.Minute)
	serveRandom(t).askAtRandom(seed, func(int) bool { return time.Now().Before(until) })
}
