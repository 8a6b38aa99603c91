package job

import "fmt"

// State is where a job stands. The numbers are stored: never renumber.
type State uint8

// The states of a job. Done, Dead, Cancelled and Skipped are final.
const (
	Blocked   State = 1 // waits for edges of its flow
	Waiting   State = 2 // ready, or scheduled when its due time is ahead
	Running   State = 3 // leased to a worker
	Suspended State = 4 // waits for something outside and holds no slot
	Done      State = 5 // final: succeeded
	Dead      State = 6 // final: failed for good
	Cancelled State = 7 // final: asked to stop before it was done
	Skipped   State = 8 // final: its flow can no longer reach it
)

var stateNames = [...]string{
	Blocked: "blocked", Waiting: "waiting", Running: "running", Suspended: "suspended",
	Done: "done", Dead: "dead", Cancelled: "cancelled", Skipped: "skipped",
}

// States lists every state, in stored order.
func States() []State {
	return []State{Blocked, Waiting, Running, Suspended, Done, Dead, Cancelled, Skipped}
}

// Final reports whether a job in this state has ended and lives in the archive.
func (s State) Final() bool { return s >= Done && s <= Skipped }

// Valid reports whether s is one of the named states.
func (s State) Valid() bool { return s >= Blocked && s <= Skipped }

func (s State) String() string {
	if !s.Valid() {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) {
	if !s.Valid() {
		return nil, fmt.Errorf("job: state %d is not one of 1..8", uint8(s))
	}
	return []byte(stateNames[s]), nil
}

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(text []byte) error {
	p, err := ParseState(string(text))
	if err != nil {
		return err
	}
	*s = p
	return nil
}

// ParseState reads a state's name.
func ParseState(name string) (State, error) {
	for _, s := range States() {
		if stateNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("job: state %q is not one of %v", name, States())
}

// moves is the table of allowed moves, from → to.
var moves = [...][]State{
	Blocked:   {Waiting, Cancelled, Skipped},
	Waiting:   {Waiting, Running, Dead, Cancelled},
	Running:   {Waiting, Suspended, Done, Dead, Cancelled},
	Suspended: {Waiting, Dead, Cancelled},
	Done:      {Waiting}, // operator replay
	Dead:      {Waiting}, // operator retry
	Cancelled: {Waiting}, // operator retry
	Skipped:   {},
}

// CanMove reports whether a job may move from one state to another. It is the
// one table that all stores and `Check` share.
func CanMove(from, to State) bool {
	if !from.Valid() || !to.Valid() {
		return false
	}
	for _, s := range moves[from] {
		if s == to {
			return true
		}
	}
	return false
}
