package turns

import (
	"math"
	"testing"
	"time"
)

// What is told while a claim is under way is not undone by what that claim saw.
func TestJ19_R19_AHintWhileAClaimIsUnderWayIsKept(t *testing.T) {
	var turns Turns[int]
	now := time.Unix(1000, 0)
	turns.Scan("q", now)
	turns.Found("q", math.MinInt64, []Found{{Number: 7}}, true, now, 0)
	list, _, _ := turns.Next("q", 10, now)
	turns.Change("q", func(n *int) { *n = 1 }) // something was committed
	turns.Settle("q", []Visit[int]{{Of: &list[0], Data: 5}}, 7, 0)
	list, _, _ = turns.Next("q", 10, now)
	if len(list) != 1 || list[0].Data == 5 {
		t.Errorf("the claim's own view has replaced the hint: %+v", list)
	}
}
