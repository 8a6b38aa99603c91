package pawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

type (
	// GroupInfo is a group of consumers as people see it.
	GroupInfo = store.GroupInfo
	// MemberInfo is a member of a group.
	MemberInfo = store.MemberInfo
	// ParkedAfter is a place in the list of what a group has parked.
	ParkedAfter = store.ParkedAfter
	// ReplayReply is what a replay did.
	ReplayReply = store.ReplayReply
)

// Group is a group of consumers by its name.
type Group struct {
	engine *Engine
	name   string
}

// Group is the group of that name, whether there is one or not.
func (e *Engine) Group(name string) Group { return Group{e, name} }

// Groups lists up to n groups by name, after one. How far each is behind is counted up to a
// thousand events.
func (e *Engine) Groups(ctx context.Context, after string, n int) ([]GroupInfo, error) {
	g, err := e.groups(ctx, n)
	if err != nil {
		return nil, err
	}
	return g.ListGroups(ctx, after, n)
}

func (e *Engine) groups(ctx context.Context, n int) (store.GroupObjects, error) {
	if _, err := e.reading(ctx, n); err != nil {
		return nil, err
	}
	g, ok := e.store.(store.GroupObjects)
	if !ok {
		return nil, fmt.Errorf("%w: the store keeps no groups", errors.ErrUnsupported)
	}
	return g, nil
}

// Name is that of the group.
func (g Group) Name() string { return g.name }

// Info is how the group is. How far it is behind is counted up to ten thousand events.
// ErrNotFound where there is none.
func (g Group) Info(ctx context.Context) (GroupInfo, error) {
	o, err := g.engine.groups(ctx, 1)
	if err != nil {
		return GroupInfo{}, err
	}
	return o.GroupNamed(ctx, g.name)
}

// Members lists up to n members by number, after one.
func (g Group) Members(ctx context.Context, after int64, n int) ([]MemberInfo, error) {
	o, err := g.engine.groups(ctx, n)
	if err != nil {
		return nil, err
	}
	return o.GroupMembers(ctx, g.name, after, n)
}

// Parked lists up to n events that the group has given up and has no topic for, oldest first.
func (g Group) Parked(ctx context.Context, after ParkedAfter, n int) ([]stream.Parked, error) {
	o, err := g.engine.groups(ctx, n)
	if err != nil {
		return nil, err
	}
	return o.ParkedEvents(ctx, g.name, after, n)
}

// Replay gives the group parked events again, by their positions, or all of them where none is
// named: at most a thousand in a call, ReplayReply.More says that there are others. They
// begin anew, without failures. It is audited (As).
func (g Group) Replay(ctx context.Context, positions ...stream.Position) (ReplayReply, error) {
	r := store.GroupReplay{Group: g.name, All: len(positions) == 0}
	var head stream.Position
	if len(positions) > 0 {
		var err error
		if head, err = g.head(ctx); err != nil {
			return ReplayReply{}, err
		}
	}
	for _, p := range positions {
		if p.Epoch() != head.Epoch() { // its number is another event's now
			return ReplayReply{}, fmt.Errorf("%w: it is %s, and the log has come to %s", ErrPosition, p.Debug(), head.Debug())
		}
		r.Parked = append(r.Parked, p.Seq())
	}
	return g.replay(ctx, r, len(positions))
}

// ReplayLetters gives the group events again whose dead letters went to a topic: as the letters
// name them, in the log of this store. The letters stay. It is audited (As).
func (g Group) ReplayLetters(ctx context.Context, letters ...stream.Event) (ReplayReply, error) {
	r := store.GroupReplay{Group: g.name}
	var errs []error
	for i := range letters {
		h := letters[i].Headers
		at, err := stream.ParsePosition(h[stream.DeadPosition])
		if group := h[stream.DeadGroup]; group != g.name {
			err = job.Invalid("letter "+letters[i].ID, group, "must be of the group "+g.name)
		}
		r.Letters, errs = append(r.Letters, at), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return ReplayReply{}, err
	}
	return g.replay(ctx, r, len(letters))
}

func (g Group) head(ctx context.Context) (stream.Position, error) {
	log, err := g.engine.reading(ctx, 1)
	if err != nil {
		return stream.Position{}, err
	}
	return log.Head(ctx)
}

func (g Group) replay(ctx context.Context, r store.GroupReplay, n int) (ReplayReply, error) {
	o, err := g.engine.groups(ctx, 1)
	if err != nil {
		return ReplayReply{}, err
	}
	if n > store.MaxReplay {
		return ReplayReply{}, job.Invalid("events", n, fmt.Sprintf("must be at most %d", store.MaxReplay))
	}
	reply, err := o.Replay(ctx, r, operatorOf(ctx))
	g.told(err)
	return reply, err
}

// Seek puts the group somewhere else: it reads on from there. Its members begin anew, and what
// they have in hand may be handled twice; events that wait to be tried again are forgotten,
// those that are parked stay. It is audited (As).
func (g Group) Seek(ctx context.Context, to stream.Start) error {
	o, err := g.engine.groups(ctx, 1)
	if err != nil {
		return err
	}
	at, err := g.engine.placeOf(ctx, to)
	if err != nil {
		return err
	}
	err = o.SeekGroup(ctx, g.name, at, operatorOf(ctx))
	g.told(err)
	return err
}

// Pause lets the group take no more events, in no process. What is being handled ends. It is
// audited (As).
func (g Group) Pause(ctx context.Context) error { return g.pause(ctx, true) }

// Resume lets the group go on.
func (g Group) Resume(ctx context.Context) error { return g.pause(ctx, false) }

func (g Group) pause(ctx context.Context, paused bool) error {
	o, err := g.engine.groups(ctx, 1)
	if err != nil {
		return err
	}
	err = o.PauseGroup(ctx, g.name, paused, operatorOf(ctx))
	g.told(err)
	return err
}

// Delete forgets the group with everything that it has, what is parked too. Members that run
// make it anew, from where their subscription starts. It is audited (As).
func (g Group) Delete(ctx context.Context) error {
	o, err := g.engine.groups(ctx, 1)
	if err != nil {
		return err
	}
	err = o.DeleteGroup(ctx, g.name, operatorOf(ctx))
	g.told(err)
	return err
}

// told lets members of this process look.
func (g Group) told(err error) {
	if err == nil {
		g.engine.hub.Ready(store.Hint{Subject: store.SubjectGroup})
	}
}
