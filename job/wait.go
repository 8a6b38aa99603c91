package job

import "fmt"

// Wait is what a suspended job waits for. The numbers are stored: never renumber.
type Wait uint8

// What a job can wait for.
const (
	NoWait Wait = 0 // it is not suspended
	Parked Wait = 1 // its arguments cannot be read; an operator's retry tries again
)

func (w Wait) String() string {
	switch w {
	case NoWait:
		return "none"
	case Parked:
		return "parked"
	}
	return fmt.Sprintf("wait(%d)", uint8(w))
}
