package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Groups is a log that feeds the members of groups.
//
// A member has a hand: what it works on. A turn says what became of that and takes more, in
// one commit, and raises the number of the hand's turn. Whoever makes a turn says which one
// it knows: when the member was taken for dead meanwhile its hand is gone, and so is what it
// says (stream.ErrFeedLost).
//
// What was given back, failed or lost is a row of its own until it is done. Members of a
// competing group share one place in the log; in fan-out each has its own; in ordered mode
// each reads its own stripes.
type Groups interface {
	Log
	// JoinGroup makes a member of a group, which is made where it is new. A name that a live
	// member has is stream.ErrMemberLives.
	JoinGroup(ctx context.Context, j GroupJoin) (Hand, error)
	// Turn settles and fetches. When its answer is lost, what it fetched is the hand's: the
	// next turn is refused, and the member joins again.
	Turn(ctx context.Context, t *Turn) (TurnReply, error)
	// LeaveGroup settles, gives back what is open without counting it, and ends the
	// membership. In fan-out its place is forgotten.
	LeaveGroup(ctx context.Context, t *Turn) error
	// LoseMembers takes members for dead, whose worker is lost or absent: what they have open
	// goes to others, each with a loss.
	LoseMembers(ctx context.Context, l LoseMembers) (int, error)
	// GroupNews says for each hand what has happened to it since its last turn. It changes
	// nothing.
	GroupNews(ctx context.Context, hands []Hand) ([]HandNews, error)
}

// TxGroups is a transaction that acknowledges deliveries: with its effects, or not at all.
type TxGroups interface {
	// AckDelivery acknowledges what a hand has open. It is stream.ErrFeedLost when the hand
	// is gone, and stream.ErrSettled when it was acknowledged so before.
	AckDelivery(ctx context.Context, h Hand, seq int64) error
}

// GroupAhead is a store whose log can be read before the turn that takes what was read: while
// handlers work, beside everything else.
type GroupAhead interface {
	// ReadAhead reads events of a group in a shared mode, behind a place of its shelf, into the
	// room that it is given. It may read fewer than there are, and passes over none.
	ReadAhead(ctx context.Context, match *stream.Matcher, place int64, room []*Given) (Ahead, error)
}

// Ahead is what was read before the turn that takes it. Events behind a place that somebody has
// looked at do not change, so the turn only has to find the shelf at that place.
type Ahead struct {
	Place int64    // of the shelf
	Given []*Given // the next events behind it, in order: the beginning of the room
	// Knew is what the store knew of its log, and compares in the turn. Of two that differ
	// nothing can be taken together.
	Knew any
}

// GroupJoin asks for a membership.
type GroupJoin struct {
	Group, Member string
	Filter        stream.Filter // what the group reads
	Mode          stream.Mode
	Start         stream.Position // of a new group; in fan-out, of each new member
	Worker        job.WorkerID    // whose lease the membership has
	// Was is the hand that the member had before, which it takes for lost: where the store
	// has it still, what it has open goes back uncounted.
	Was int64
}

// Hand is a member as its store knows it. The answer of a turn has the next one.
type Hand struct {
	ID     int64
	Number int64 // of the turn that comes next
	Group  int64
	Shelf  int64 // where what it gives back waits, and in the shared modes how far was read
	Mode   stream.Mode
	// Version is that of the group as the turn saw it: whatever may be news for another
	// member raises it.
	Version int64
	// Stripes are an ordered member's own, and how far each was read; from First up to End
	// it should have, by the members that the group had at Looked.
	Stripes    map[int16]int64
	First, End int16
	Looked     int64 // the version at which First and End were found
}

// Turn is one step of a member.
type Turn struct {
	Hand Hand
	// Settles says that it settles something: a turn that does not, and finds nothing, is none.
	Settles bool
	// Open are the numbers that stay open and have no row, Rows those that have one; Done are
	// those whose row goes.
	Open, Rows, Done []int64
	// Back are given back, or kept and counted.
	Back []Returned
	// Dead are given up: to Letters, or they stay parked with the group.
	Dead    []Buried
	Letters string
	// Acked are those that a transaction was told to acknowledge, whatever was said of them
	// here: where it has committed, they are done. They are in one of the lists above too, or
	// in none when they are said to be done.
	Acked []Ack
	// Busy are an ordered member's stripes of which something stays open.
	Busy map[int16]bool

	Want  stream.Want
	Match *stream.Matcher
	// Ahead is what may be taken without reading, where the shelf is at its place. The store
	// decides: elsewhere, and when it knows better, it reads.
	Ahead *Ahead
}

// Ack is a delivery of which a transaction was told.
type Ack struct {
	Seq  int64
	Row  bool // it has a row
	Sure bool // it is said to be done: what became of the transaction changes nothing
}

// InDoubt reports whether something depends on what became of a transaction, which may be open
// still.
func (t *Turn) InDoubt() bool {
	return slices.ContainsFunc(t.Acked, func(a Ack) bool { return !a.Sure })
}

// AckedSeqs are the numbers of Acked.
func (t *Turn) AckedSeqs() []int64 {
	seqs := make([]int64, len(t.Acked))
	for i, a := range t.Acked {
		seqs[i] = a.Seq
	}
	return seqs
}

// Returned is a delivery that comes again.
type Returned struct {
	Seq      int64
	Stripe   int16
	Failures int
	Losses   int
	Delay    time.Duration
	Reason   string
	Kept     bool // it stays with the hand
}

// Buried is a delivery that is given up.
type Buried struct {
	Seq      int64
	Stripe   int16
	Losses   int
	Failures int
	Reason   string
	Letter   stream.Publication // where the turn has a topic for it
}

// TurnReply is what a turn gave.
type TurnReply struct {
	Hand  Hand
	Given []Given
	// Head is how far was looked: there is nothing more before it has moved on.
	Head stream.Position
	// Next is in how long the next of what waits is due, at least 0; negative: nothing waits.
	Next time.Duration
	// More says that there may be more at once, though less came than was wanted.
	More bool
	// Taken is how many of Turn.Ahead were taken. They come after Given.
	Taken int
	// From is how far the shelf was read before, and Upto after the turn; -1: it did not look,
	// or members have no shelf to share.
	From, Upto int64
}

// Given is one delivery.
type Given struct {
	Event    stream.Event
	Bad      error // why the event could not be read
	Stripe   int16
	Failures int
	Losses   int
	Alone    bool
	Row      bool // it has a row
}

// LoseMembers says whom to take for dead.
type LoseMembers struct {
	Hands []int64 // these, whatever their worker does; nil: those whose worker is lost or absent
	Limit int     // at most [MaxLoseMembers]
}

// MaxLoseMembers bounds one call.
const MaxLoseMembers = 100

// HandNews is what has happened to a hand.
type HandNews struct {
	Gone    bool  // it was taken for dead, or its group was deleted or sought
	Version int64 // of its group
	// Next is in how long the next of what waits is due, at least 0; negative: nothing waits.
	Next time.Duration
}

// Bounds of one turn.
const (
	// MaxTurn is how many deliveries one turn gives.
	MaxTurn = 1000
	// TurnVisits is how many events one turn looks at where the filter chooses among them.
	TurnVisits = 1000
	// TurnBytes is how much data one turn gives, beyond its first event.
	TurnBytes = 8 << 20
	// SuspectAfter is from how many losses on an event comes alone.
	SuspectAfter = 2
)

// NoReply is the answer of a turn that has not looked yet.
func (t *Turn) NoReply() TurnReply { return TurnReply{Hand: t.Hand, Next: -1, From: -1, Upto: -1} }

// Seqs are the numbers of what was read ahead.
func (a *Ahead) Seqs() []int64 {
	seqs := make([]int64, len(a.Given))
	for i, g := range a.Given {
		seqs[i] = g.Event.Position.Seq()
	}
	return seqs
}

// Check refuses what cannot be asked.
func (j *GroupJoin) Check() error {
	_, err := j.Filter.Matcher()
	return errors.Join(err, job.CheckText("group", j.Group, 1, stream.MaxText), job.CheckText("member", j.Member, 1, stream.MaxText))
}

// Check refuses what cannot be asked.
func (t *Turn) Check() error {
	if t.Want.N < 0 || t.Want.N > MaxTurn {
		return job.Invalid("want", t.Want.N, fmt.Sprintf("must be 0..%d", MaxTurn))
	}
	return nil
}

// Settle is what a turn has to write, told of which deliveries a transaction has
// acknowledged: they are done, whatever was said of them.
func (t *Turn) Settle(told []int64) (open, done []int64, back []Returned, dead []Buried) {
	open, done, back, dead = t.Open, t.Done, t.Back, t.Dead
	if len(told) == 0 {
		return open, done, back, dead
	}
	is := func(seq int64) bool { return slices.Contains(told, seq) }
	open = slices.DeleteFunc(slices.Clone(open), is)
	done = slices.Clone(done)
	for _, a := range t.Acked {
		if a.Row && is(a.Seq) && !slices.Contains(done, a.Seq) {
			done = append(done, a.Seq)
		}
	}
	back = slices.DeleteFunc(slices.Clone(back), func(r Returned) bool { return is(r.Seq) })
	dead = slices.DeleteFunc(slices.Clone(dead), func(b Buried) bool { return is(b.Seq) })
	return open, done, back, dead
}

// GroupRow is a group as it was made.
type GroupRow struct {
	ID     int64
	Name   string
	Mode   stream.Mode
	Filter string // FilterText
}

// Same refuses a membership that wants another group than there is.
func (g *GroupRow) Same(j *GroupJoin) error {
	if g.Mode != j.Mode {
		return job.Invalid("mode", j.Mode, fmt.Sprintf("must be %v, as the group %s has it", g.Mode, g.Name))
	}
	if asked := FilterText(j.Filter); g.Filter != asked {
		return job.Invalid("topics", asked, fmt.Sprintf("must be the filter of the group %s: %s", g.Name, g.Filter))
	}
	return nil
}

// Letters refuses to replay dead letters where nobody knows whose they were.
func (g *GroupRow) Letters() error {
	if g.Mode == stream.FanOut {
		return job.Invalid("group", g.Name, "must not be a fan-out: its letters do not say which member gave them up")
	}
	return nil
}

// MemberLives is the error of a name that a live member has.
func MemberLives(j *GroupJoin) error {
	return fmt.Errorf("%w: %s of %s", stream.ErrMemberLives, j.Member, j.Group)
}

// KeepShelf is for how long the place of a lost member of a fan-out group is kept: it goes on
// there when it comes back under its name.
const KeepShelf = 7 * 24 * time.Hour
