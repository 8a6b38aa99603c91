package store

import "fmt"

func (s PauseScope) String() string {
	switch s {
	case PauseQueue:
		return "queue"
	case PauseKind:
		return "kind"
	case PauseAll:
		return "all"
	}
	return fmt.Sprintf("scope(%d)", uint8(s))
}
