//go:build soak

package sqlite_test

import (
	"testing"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/stream/streamtest"
)

// TestSoak_E14_AThousandMembersComeAndGo has them join, take, leave and die: no stripe is read by two, and none by nobody.
func TestSoak_E14_AThousandMembersComeAndGo(t *testing.T) {
	streamtest.RunMembers(t, 1_000, func(t *testing.T) streamtest.Fixture { return feedtest.Fixture(t, file(t), spoilNewest) })
}
