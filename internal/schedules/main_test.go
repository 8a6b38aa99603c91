package schedules

import (
	"testing"
	_ "time/tzdata" // the tests' own: a machine may have none

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
