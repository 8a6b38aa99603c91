package job

import "fmt"

var outcomeNames = [...]string{
	Succeeded: "succeeded", Failed: "failed", GaveUp: "dead", Snoozed: "snoozed",
	Released: "released", Undecoded: "parked", CancelSeen: "cancelled", OutOfTime: "deadline",
	StoreFailed: "store failed", Throttled: "throttled",
}

func (k OutcomeKind) String() string {
	if int(k) >= len(outcomeNames) {
		return fmt.Sprintf("outcome(%d)", uint8(k))
	}
	return outcomeNames[k]
}
