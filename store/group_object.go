package store

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// GroupObjects is a store whose groups people look at and change.
type GroupObjects interface {
	// ListGroups lists up to n groups by name, after one.
	ListGroups(ctx context.Context, after string, n int) ([]GroupInfo, error)
	// GroupNamed is one of them, with what waits counted further. ErrNotFound where there is none.
	GroupNamed(ctx context.Context, name string) (GroupInfo, error)
	// GroupMembers lists up to n members of a group, by number, after one.
	GroupMembers(ctx context.Context, name string, after int64, n int) ([]MemberInfo, error)
	// ParkedEvents lists what a group has given up and has no topic for, oldest first, after
	// one (its number and when it was given up).
	ParkedEvents(ctx context.Context, name string, after ParkedAfter, n int) ([]stream.Parked, error)
	// Replay gives a group events again that it has given up: those of its parked ones that
	// are named, or all of them, at most MaxReplay in a call, and events of dead letters.
	Replay(ctx context.Context, r GroupReplay, op Operator) (ReplayReply, error)
	// SeekGroup puts a group somewhere else. Its members lose their hands and join again;
	// what waits is forgotten, what is parked stays.
	SeekGroup(ctx context.Context, name string, to stream.Position, op Operator) error
	// PauseGroup stops a group from taking events, or lets it go on. What is open ends.
	PauseGroup(ctx context.Context, name string, paused bool, op Operator) error
	// DeleteGroup forgets a group with everything that it has.
	DeleteGroup(ctx context.Context, name string, op Operator) error
}

// GroupInfo is a group as people see it.
type GroupInfo struct {
	ID     int64
	Name   string
	Mode   stream.Mode
	Filter stream.Filter
	Made   time.Time
	Paused bool
	// At is how far everything was read: for every member of a fan-out, and every stripe.
	At stream.Position
	// Behind are events of its topics that it has not read yet, at most so many as were
	// counted: BehindMore says that there may be more.
	Behind     int
	BehindMore bool
	// Undone is the first event that was taken and is not done: somebody works on it, or it
	// waits to be tried again. Zero: none.
	Undone  stream.Position
	Members int
	Open    int // that members work on
	Waiting int // that failed or were given back, at most MaxGroupCount
	Parked  int // at most MaxGroupCount
}

// MaxGroupCount is how far what a group has is counted, and ListBehind how far its lag is in
// a list.
const (
	MaxGroupCount = 10_000
	ListBehind    = 1000
)

// MemberInfo is a member as people see it.
type MemberInfo struct {
	Hand    int64
	Name    string
	Worker  job.WorkerID
	Joined  time.Time
	Turned  time.Time // its last turn
	Turns   int64
	Open    int
	Stripes int // of an ordered group
	At      stream.Position
}

// ParkedAfter is a place in the list of what is parked.
type ParkedAfter struct {
	At  time.Time
	Seq int64
}

// GroupReplay says what comes again.
type GroupReplay struct {
	Group string
	// Parked are numbers of what is parked; All means all of it.
	Parked []int64
	All    bool
	// Letters are the positions of events whose dead letters are to be replayed, as their
	// headers have them (stream.DeadPosition).
	Letters []stream.Position
}

// MaxReplay is how many events one call replays.
const MaxReplay = 1000

// ReplayReply is what a replay did.
type ReplayReply struct {
	Replayed int
	// Gone are those whose event is not in the log any more.
	Gone int
	More bool // all of what is parked was wanted, and there is more
}
