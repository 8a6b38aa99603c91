package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// groups adds the routes of groups. Those of what they have given up are in group_parked.go.
func (a *api) groups() {
	route(a, operation{
		method: http.MethodGet, path: "/groups", id: "list-groups", tag: "groups", role: auth.Viewer,
		summary: "List groups of consumers by name: how far they are behind, and what they have",
	}, a.listGroups)
	route(a, operation{
		method: http.MethodGet, path: "/groups/{name}", id: "get-group", tag: "groups", role: auth.Viewer,
		summary: "Read a group; how far it is behind is counted up to 10,000 events",
	}, func(ctx context.Context, in *GroupPath) (*body[Group], error) { return a.group(ctx, in.Name) })
	route(a, operation{
		method: http.MethodGet, path: "/groups/{name}/members", id: "list-group-members", tag: "groups", role: auth.Viewer,
		summary: "List the members of a group, and what each works on",
	}, a.listMembers)
	route(a, operation{
		method: http.MethodPost, path: "/groups/{name}/seek", id: "seek-group", tag: "groups", role: auth.Operator,
		summary: "Put a group somewhere else: its members begin anew there, what waits is forgotten, what is parked stays",
	}, a.seekGroup)
	route(a, operation{
		method: http.MethodPost, path: "/groups/{name}/pause", id: "pause-group", tag: "groups", role: auth.Operator,
		summary: "Let a group take no more events; what is being handled ends",
	}, func(ctx context.Context, in *GroupPath) (*body[Group], error) {
		return a.changeGroup(ctx, in.Name, pawl.Group.Pause)
	})
	route(a, operation{
		method: http.MethodPost, path: "/groups/{name}/resume", id: "resume-group", tag: "groups", role: auth.Operator,
		summary: "Let a group go on",
	}, func(ctx context.Context, in *GroupPath) (*body[Group], error) {
		return a.changeGroup(ctx, in.Name, pawl.Group.Resume)
	})
	route(a, operation{
		method: http.MethodDelete, path: "/groups/{name}", id: "delete-group", tag: "groups", role: auth.Operator,
		status: http.StatusNoContent, summary: "Forget a group with all that it has, what is parked too; members that run make it anew",
	}, func(ctx context.Context, in *GroupPath) (*struct{}, error) {
		if err := in.check(); err != nil {
			return nil, err
		}
		return nil, a.e.Group(in.Name).Delete(ctx)
	})
}

// GroupPath names a group.
type GroupPath struct {
	Name string `path:"name" maxLength:"255" doc:"a / in it is written %2F"`
}

func (p *GroupPath) check() error { return job.CheckText("group", p.Name, 1, stream.MaxText) }

// Group is a group of consumers, and how it stands.
type Group struct {
	Name     string       `json:"name"`
	Mode     string       `json:"mode" enum:"competing,ordered,fan-out" doc:"how members share events: each goes to one, in order by key, or to all"`
	Filter   CursorFilter `json:"filter" doc:"what it reads"`
	Made     time.Time    `json:"made"`
	Paused   bool         `json:"paused,omitempty" doc:"it takes no more events"`
	Position string       `json:"position,omitempty" doc:"up to where everything was taken, by every member and stripe; none: before everything"`
	Behind   EventCount   `json:"behind" doc:"events of its topics that were not taken yet"`
	Undone   string       `json:"undone,omitempty" doc:"position of the first event that was taken and is not done"`
	Members  int          `json:"members"`
	Open     int          `json:"open" doc:"events that members work on"`
	Waiting  EventCount   `json:"waiting" doc:"events that failed or were given back, and come again"`
	Parked   EventCount   `json:"parked" doc:"events that were given up, and have no topic of dead letters"`
}

// EventCount is a number of events, up to a bound.
type EventCount struct {
	Events int  `json:"events"`
	More   bool `json:"more,omitempty" doc:"it came to a bound: there may be more"`
}

func groupOf(g *pawl.GroupInfo) Group {
	f := g.Filter
	upTo := func(n int) EventCount { return EventCount{n, n >= store.MaxGroupCount} }
	return Group{
		Name: g.Name, Mode: g.Mode.String(), Made: g.Made, Paused: g.Paused, Position: g.At.String(), Undone: g.Undone.String(),
		Filter: CursorFilter{EventFilter{f.Topic, f.Key, f.KeyPrefix, f.Type, f.Source}, f.After, f.Before},
		Behind: EventCount{g.Behind, g.BehindMore}, Members: g.Members, Open: g.Open, Waiting: upTo(g.Waiting), Parked: upTo(g.Parked),
	}
}

// GroupList is one page of groups.
type GroupList struct {
	Groups []Group `json:"groups" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

type groupsInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
	After string `query:"after" maxLength:"1000" doc:"next of the page before"`
}

func (a *api) listGroups(ctx context.Context, in *groupsInput) (*body[GroupList], error) {
	var after string
	if err := readCursor(in.After, &after); err != nil {
		return nil, err
	}
	if after != "" {
		if err := (&GroupPath{after}).check(); err != nil {
			return nil, err
		}
	}
	list, err := a.e.Groups(ctx, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := GroupList{Groups: wireOf(list, groupOf)}
	if len(list) == in.Limit {
		out.Next = cursor(list[len(list)-1].Name)
	}
	return answer(out), nil
}

// group reads one.
func (a *api) group(ctx context.Context, name string) (*body[Group], error) {
	if err := (&GroupPath{name}).check(); err != nil {
		return nil, err
	}
	g, err := a.e.Group(name).Info(ctx)
	if err != nil {
		return nil, err
	}
	return answer(groupOf(&g)), nil
}

// changeGroup does something to one, and answers with how it is then.
func (a *api) changeGroup(ctx context.Context, name string, do func(pawl.Group, context.Context) error) (*body[Group], error) {
	if err := (&GroupPath{name}).check(); err != nil {
		return nil, err
	}
	if err := do(a.e.Group(name), ctx); err != nil {
		return nil, err
	}
	return a.group(ctx, name)
}

type seekGroupInput struct {
	GroupPath
	Body struct {
		To string `json:"to" minLength:"1" maxLength:"64" doc:"start, end, a time (RFC 3339) by which events were appended, or a position"`
	}
}

func (a *api) seekGroup(ctx context.Context, in *seekGroupInput) (*body[Group], error) {
	to, err := placeTo(in.Body.To)
	if err != nil {
		return nil, err
	}
	return a.changeGroup(ctx, in.Name, func(g pawl.Group, ctx context.Context) error { return g.Seek(ctx, to) })
}

// Member is a member of a group.
type Member struct {
	Number   int64     `json:"number" doc:"of this membership: who comes back has another"`
	Name     string    `json:"name"`
	Worker   int64     `json:"worker" doc:"whose lease it has"`
	Joined   time.Time `json:"joined"`
	Turned   time.Time `json:"turned,omitzero" doc:"when it last said what became of events, or took some"`
	Turns    int64     `json:"turns" doc:"how often it did"`
	Open     int       `json:"open" doc:"events that it works on"`
	Stripes  int       `json:"stripes,omitempty" doc:"of 64 that it reads, in an ordered group"`
	Position string    `json:"position,omitempty" doc:"how far it has taken events: its own in fan-out, else as its last turn saw it"`
}

// MemberList is one page of members.
type MemberList struct {
	Members []Member `json:"members" nullable:"false" doc:"in the order in which they joined"`
	Next    string   `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

type membersInput struct {
	GroupPath
	Paging
}

func (a *api) listMembers(ctx context.Context, in *membersInput) (*body[MemberList], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var after int64
	if err := readCursor(in.After, &after); err != nil {
		return nil, err
	}
	list, err := a.e.Group(in.Name).Members(ctx, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := MemberList{Members: wireOf(list, func(m *pawl.MemberInfo) Member {
		return Member{m.Hand, m.Name, int64(m.Worker), m.Joined, m.Turned, m.Turns, m.Open, m.Stripes, m.At.String()}
	})}
	if len(list) == in.Limit {
		out.Next = cursor(list[len(list)-1].Hand)
	}
	return answer(out), nil
}
