package serve_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing outlives a server that has ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
