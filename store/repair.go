package store

import (
	"context"
	"time"
)

// Repairer is an optional interface of a store that can mend what Check finds.
type Repairer interface {
	// Rules lists what Check holds a database against.
	Rules() []Rule
	// Repair mends faults that Check has found, MaxFaults at most, each in a short
	// transaction of its own: it locks the row, looks whether it still breaks the rule,
	// mends it, looks again, and writes an audit entry. A fault that is none any more
	// changes nothing. Accepted work is never lost by it: a job of which one cannot tell
	// how it stands waits, and runs again.
	//
	// With an error, the answers are those of the faults before it, which are mended.
	Repair(ctx context.Context, faults []Fault, r RepairRequest) ([]Repair, error)
}

// Rule is one sentence of P6.
type Rule struct {
	Name  string // short and stable, the same in every store
	Table string
	Says  string // what holds in a sound database
	// Repair is what is done about a row that breaks it; empty where nothing can be.
	Repair string
}

// RepairRequest says who repairs, and how.
type RepairRequest struct {
	By    Operator      // as the audit log has it; without a name it is "repair"
	Grace time.Duration // as in Check
}

// Repair is what became of one fault.
type Repair struct {
	Fault
	Answer RepairAnswer
	Did    string // what was done, or why nothing was
}

func (r Repair) String() string {
	if r.Did == "" {
		return r.Fault.String()
	}
	return r.Fault.String() + " → " + r.Did
}

// RepairAnswer says what became of a fault.
type RepairAnswer uint8

// What can become of one.
const (
	RepairDone       RepairAnswer = iota + 1 // mended, and in the audit log
	RepairNotNeeded                          // it was none any more when its row was locked
	RepairBusy                               // somebody's open transaction holds it: ask again
	RepairImpossible                         // nobody can tell what it should be
)

// RepairAction is what audit entries call a repair.
const RepairAction = "repair"

// Entry is the audit entry of a fault that is mended so: who, and what was found and
// done.
func (r *RepairRequest) Entry(f *Fault, did string) (op Operator, detail string) {
	op, detail = r.By, f.Rule+": "
	if op.Name == "" {
		op.Name = RepairAction
	}
	if f.Detail != "" {
		detail += f.Detail + " "
	}
	return op, Details(detail + "→ " + did)
}
