package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
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
	// Extend is how often a member must call Next, which extends what it has open, lest others
	// get that; 0: something else keeps its lease.
	Extend time.Duration
}

// Mode is how the members of a group share its events.
type Mode uint8

const (
	// Competing: each event goes to one member, whichever is free.
	Competing Mode = iota
	// Ordered: events of one topic and key are handled one after another, in their order; one
	// that fails keeps those behind it waiting until it is done or dead.
	Ordered
	// FanOut: each member gets every event from where it joined, and what it does not settle
	// comes again to it alone. The place of a lost member is kept under its name, so that it
	// skips nothing when it joins again; that of one that has left is forgotten.
	FanOut
)

func (m Mode) String() string { return [...]string{"competing", "ordered", "fan-out"}[m] }

// Membership is what a member wants of its group.
type Membership struct {
	Group  string
	Member string // unique among those that live (ErrMemberLives); a backend makes one where it is ""
	Match  Matcher
	Mode   Mode
	Start  Start // where a new group begins; in fan-out, each new member
	// DeadLetter is the topic of what is given up; "": it stays with the group, parked.
	DeadLetter string
}

// Check refuses what a backend with these features cannot do, and what nobody can; all faults
// at once, each by its name. Backends call it in Join, and so does who wants to know before.
func (m *Membership) Check(f Features) error {
	errs := []error{job.CheckText("group", m.Group, 1, MaxText)}
	refuse := func(is bool, field string, value any, rule string) {
		if is {
			errs = append(errs, job.Invalid(field, value, rule))
		}
	}
	if m.Member != "" {
		errs = append(errs, job.CheckText("member", m.Member, 1, MaxText))
	}
	refuse(m.Mode > FanOut, "mode", uint8(m.Mode), "must be competing, ordered or fan-out")
	refuse(m.Mode == Ordered && !f.Ordered, "mode", "ordered", "cannot be had from this backend")
	if at, ok := m.Start.Position(); ok {
		refuse(!f.Positions && !at.IsZero(), "start", at, "must be the beginning or the end on this backend")
	}
	if at, ok := m.Start.Time(); ok {
		refuse(!f.Positions, "start", at, "must be the beginning or the end on this backend")
	}
	refuse(m.Match.Type != "" && !f.Types, "type", m.Match.Type, "cannot be chosen by this backend")
	if m.DeadLetter != "" {
		err := CheckTopic("dead-letter topic", m.DeadLetter)
		errs = append(errs, err)
		refuse(err == nil && m.Match.Pattern.Match(m.DeadLetter), "dead-letter topic", m.DeadLetter,
			fmt.Sprintf("must not be one of %s: the group would get its own dead letters", m.Match.Pattern))
	}
	return errors.Join(errs...)
}

// Feed is what one member gets. Its methods are called one at a time, but for Wait.
//
// In ordered mode a member may be given several events of one key, in their order; it handles
// one after another. Their stripe goes to another member when nothing of it is open.
//
// An event that was lost twice may be what ends processes. It comes Alone: only to a member
// that is idle (Want), with nothing else, and nothing more comes until it is settled (or
// Kept). A member that is busy gets nothing more while such a one waits for it. A loss counts
// as a failure only of a delivery that came alone, and was not kept since, or was the only
// one that the member had: those beside it are innocent.
type Feed interface {
	// Next settles deliveries of before and fetches up to want.N new ones, in one step: when
	// it fails, nothing of it has happened, or it says ErrFeedLost. It does not wait for
	// events. A ref is settled once in a call; one that is not open is passed over. The slice is
	// the caller's again afterwards.
	Next(ctx context.Context, settled []Settlement, want Want) ([]Delivery, error)
	// Wait returns when Next may have something that the last Next had not, whatever that one
	// wanted; with ctx; or with ErrFeedLost.
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
	// Idle: no handler works on anything, so that one that must be alone can be given. What
	// is open waits for something: in ordered mode, for one that failed.
	Idle bool
}

// ErrFeedLost: the member was taken for dead. What it holds is others' now; whatever it says
// about it is too late. Join again.
var ErrFeedLost = errors.New("pawl: this member's events were given to others")

// ErrMemberLives: a member of that name is in the group. It is tried again: where a process
// died and came back under its name, its lease is over soon.
var ErrMemberLives = errors.New("pawl: a member of that name lives")

// ErrSettled: the delivery has its verdict, or its handler has returned. Nothing changes.
var ErrSettled = errors.New("pawl: the delivery has its verdict")

// Delivery is one event for one member, once.
type Delivery struct {
	Event *Event // to read only, until it is settled as one that is free
	Ref   int64  // names it to its feed
	// Failures are its deliveries that failed, or were lost while it was alone in its turn.
	Failures int
	// Losses are its deliveries whose member was lost.
	Losses int
	// Alone: nothing else of the member may run while a handler works on it.
	Alone bool
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
	// Failures of Dead: how many of its deliveries failed, with this one. The letter says it;
	// a backend cannot know whether this one was begun.
	Failures int
	// Free: nothing refers to the event any more, so that once it is settled its memory may be
	// used for another.
	Free bool
}
