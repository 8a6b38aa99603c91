package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/stream"
)

// parkedChunk is how many parked events are read at once: their data is as large as events are.
const parkedChunk = 16

// parked adds the routes of what groups have given up.
func (a *api) parked() {
	route(a, operation{
		method: http.MethodGet, path: "/groups/{name}/parked", id: "list-group-parked", tag: "groups", role: auth.Viewer,
		summary: "Read the events that a group has given up and has no topic for, the oldest first, each with its reason",
	}, a.listParked)
	route(a, operation{
		method: http.MethodPost, path: "/groups/{name}/replay", id: "replay-group", tag: "groups", role: auth.Operator,
		summary: "Give a group events again that it has given up: all that are parked, some of them, or dead letters of a topic",
	}, a.replayGroup)
}

// ParkedEvent is an event that a group has given up.
type ParkedEvent struct {
	Event    Event     `json:"event"`
	Parked   time.Time `json:"parked" doc:"when it was given up"`
	Reason   string    `json:"reason,omitempty" doc:"why"`
	Failures int       `json:"failures,omitempty" doc:"deliveries that failed"`
	Losses   int       `json:"losses,omitempty" doc:"deliveries whose process was lost"`
	Gone     bool      `json:"gone,omitempty" doc:"the event is not in the log any more: it cannot be replayed"`
	Bad      string    `json:"bad,omitempty" doc:"why the event cannot be read"`
}

func parkedOf(p *stream.Parked, hidden bool) ParkedEvent {
	w := ParkedEvent{
		Event: eventOf(p.Event, hidden), Parked: p.At, Reason: p.Reason, Failures: p.Failures, Losses: p.Losses,
		Gone: p.Event.Position.IsZero(),
	}
	if p.Bad != nil {
		w.Bad = p.Bad.Error()
	}
	return w
}

// ParkedList is one page of parked events.
type ParkedList struct {
	Parked []ParkedEvent `json:"parked" nullable:"false"`
	Next   string        `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last. A page ends after 8 MiB of data, too"`
}

type parkedInput struct {
	GroupPath
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	After string `query:"after" maxLength:"1000" doc:"next of the page before"`
}

func (a *api) listParked(ctx context.Context, in *parkedInput) (*body[ParkedList], error) {
	var after pawl.ParkedAfter
	err := in.check()
	if err == nil {
		err = readCursor(in.After, &after)
	}
	if err == nil {
		err = job.CheckTime("after", after.At)
	}
	if err != nil {
		return nil, err
	}
	out := ParkedList{Parked: []ParkedEvent{}}
	hidden, size := auth.From(ctx).Hidden, 0
	for {
		n := min(parkedChunk, in.Limit-len(out.Parked))
		list, err := a.e.Group(in.Name).Parked(ctx, after, n)
		if err != nil {
			return nil, err
		}
		for i := range list {
			p := &list[i]
			out.Parked, size = append(out.Parked, parkedOf(p, hidden)), size+len(p.Event.Data)
			after = pawl.ParkedAfter{At: p.At, Seq: p.Ref}
		}
		switch {
		case len(list) < n:
			return answer(out), nil
		case len(out.Parked) == in.Limit || size > eventBytes:
			out.Next = cursor(after)
			return answer(out), nil
		}
	}
}

// DeadLetters are events on a topic of dead letters.
type DeadLetters struct {
	Topic     string   `json:"topic" minLength:"1" maxLength:"255" doc:"on which they are"`
	Positions []string `json:"positions" minItems:"1" maxItems:"100" nullable:"false" doc:"of the letters"`
}

// Replay says which events come again: one of the three.
type Replay struct {
	All       bool         `json:"all,omitempty" doc:"everything that is parked, up to 1,000 events in a call"`
	Positions []string     `json:"positions,omitempty" minItems:"1" maxItems:"1000" doc:"of parked events"`
	Letters   *DeadLetters `json:"letters,omitempty" doc:"dead letters of this group; they stay where they are"`
}

// ReplayReply says what came of it.
type ReplayReply struct {
	Replayed int  `json:"replayed" doc:"events that come again; one that is not parked any more does not count"`
	Gone     int  `json:"gone,omitempty" doc:"those whose event is not in the log any more"`
	More     bool `json:"more,omitempty" doc:"all were wanted, and there are more: call again"`
}

type replayInput struct {
	GroupPath
	Body Replay
}

func (a *api) replayGroup(ctx context.Context, in *replayInput) (*body[ReplayReply], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	b, ways := &in.Body, 0
	for _, given := range []bool{b.All, len(b.Positions) > 0, b.Letters != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, job.Invalid("replay", fmt.Sprintf("%d of all, positions and letters", ways), "must be one of them")
	}
	reply, err := a.replay(ctx, a.e.Group(in.Name), b)
	if err != nil {
		return nil, err
	}
	return answer(ReplayReply{reply.Replayed, reply.Gone, reply.More}), nil
}

func (a *api) replay(ctx context.Context, g pawl.Group, b *Replay) (pawl.ReplayReply, error) {
	if b.Letters != nil {
		letters, err := a.letters(ctx, b.Letters)
		if err != nil {
			return pawl.ReplayReply{}, err
		}
		return g.ReplayLetters(ctx, letters...)
	}
	at, err := readPositions(b.Positions)
	if err != nil {
		return pawl.ReplayReply{}, err
	}
	return g.Replay(ctx, at...)
}

func readPositions(texts []string) (list []stream.Position, err error) {
	for _, text := range texts {
		at, err := stream.ParsePosition(text)
		if err == nil && at.IsZero() {
			err = job.Invalid("position", text, "must be that of an event")
		}
		if err != nil {
			return nil, err
		}
		list = append(list, at)
	}
	return list, nil
}

// letters reads events of a topic by their positions.
func (a *api) letters(ctx context.Context, l *DeadLetters) ([]stream.Event, error) {
	if err := stream.CheckTopic("topic", l.Topic); err != nil {
		return nil, err
	}
	at, err := readPositions(l.Positions)
	if err != nil {
		return nil, err
	}
	var list []stream.Event
	for i, p := range at {
		page, err := a.e.LastEvents(ctx, stream.Filter{Topic: l.Topic}, p, 1)
		if err != nil {
			return nil, err
		}
		if len(page.Events) != 1 || !page.Events[0].Position.Equal(p) {
			return nil, job.NotFound("event of "+l.Topic+" at", l.Positions[i])
		}
		list = append(list, page.Events[0])
	}
	return list, nil
}
