package stream

import (
	"context"
	"errors"
	"time"
)

// Backend keeps events and feeds groups: the stores, the memory of a test, a broker.
type Backend interface {
	// Features says what it can do. What is asked of it beyond them is refused by name.
	Features() Features
	// Publish accepts events, all or none, in order.
	Publish(ctx context.Context, drafts []Publication) ([]PublishReply, error)
	// Join makes a member of a group, which is made where it is new. A group keeps what it
	// was made with: one that asks for another mode or other topics is refused.
	Join(ctx context.Context, m Membership) (Feed, error)
}

// Features are what a backend can do.
type Features struct {
	IDs       bool // explicit ids and idempotency keys are accepted once
	Versions  bool // expected versions
	Delay     bool // delivery times
	Ordered   bool // order per key, over all members
	Positions bool // FromPosition and FromTime
	Types     bool // a member may ask for one type only, and others are not fetched for it
}

// Mode is how the members of a group share its events.
type Mode uint8

const (
	// Competing: each event goes to one member, whichever is free.
	Competing Mode = iota
	// Ordered: events of one topic and key are handled one after another, in their order; one
	// that fails keeps those behind it waiting until it is done or dead.
	Ordered
	// FanOut: each member gets every event from where it joined.
	FanOut
)

func (m Mode) String() string { return [...]string{"competing", "ordered", "fan-out"}[m] }

// Membership is what a member wants of its group.
type Membership struct {
	Group  string
	Member string // unique among those that live; a backend makes one where it is ""
	Match  Matcher
	Mode   Mode
	Start  Start // where a new group begins
	// DeadLetter is the topic of what is given up; "": it stays with the group, parked.
	DeadLetter string
}

// Feed is what one member gets. Its methods are called one at a time, but for Wait.
type Feed interface {
	// Next settles deliveries of before and fetches up to want.N new ones, in one step: when
	// it fails, nothing of it has happened, or it says ErrFeedLost. It does not wait for events.
	Next(ctx context.Context, settled []Settlement, want Want) ([]Delivery, error)
	// Wait returns when Next may have something that it had not before, or with ctx.
	Wait(ctx context.Context) error
	// Leave settles, gives back what is open without counting it, and ends the membership.
	Leave(ctx context.Context, settled []Settlement) error
}

// Want is what a member can take.
type Want struct {
	N int
	// Not are stripes that it takes nothing of now: too many events of one of their keys
	// wait behind one that fails.
	Not []int16
	// Open are refs of deliveries that handlers still work on: where leases are per
	// delivery, they are extended.
	Open []int64
}

// ErrFeedLost: the member was taken for dead. What it holds is others' now; whatever it says
// about it is too late. Join again.
var ErrFeedLost = errors.New("pawl: this member's events were given to others")

// Delivery is one event for one member, once.
type Delivery struct {
	Event Event
	Ref   int64 // names it to its feed
	// Failures are its deliveries that failed, or were lost while it was alone in its turn.
	Failures int
	// Losses are its deliveries whose member was lost.
	Losses int
	// Bad says why the entry could not be read: Event has its bytes. It is never acked before
	// its dead letter is stored.
	Bad error
}

// Verdict is what becomes of a delivery.
type Verdict uint8

const (
	// Acked: it is done.
	Acked Verdict = iota
	// Retried: it failed and comes again after Delay, to whoever is free. Not in ordered mode.
	Retried
	// Kept: it failed, and the member keeps it to try again: it is counted, and stays open.
	Kept
	// Dead: it goes to the dead letters, for Reason.
	Dead
	// Released: it was not begun, or not to the end, and that is not its fault.
	Released
)

func (v Verdict) String() string {
	return [...]string{"acked", "retried", "kept", "dead", "released"}[v]
}

// Settlement is a verdict on a delivery.
type Settlement struct {
	Ref     int64
	Verdict Verdict
	Delay   time.Duration // of Retried and Released
	Reason  string        // of Retried, Kept and Dead
}
