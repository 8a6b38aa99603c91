package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// cursors adds the routes of cursors.
func (a *api) cursors() {
	route(a, operation{
		method: http.MethodGet, path: "/cursors", id: "list-cursors", tag: "cursors", role: auth.Viewer,
		summary: "List named cursors: where they are, and whether they are behind",
	}, a.listCursors)
	route(a, operation{
		method: http.MethodGet, path: "/cursors/{name}", id: "get-cursor", tag: "cursors", role: auth.Viewer,
		summary: "Read a cursor",
	}, func(ctx context.Context, in *NamePath) (*body[Cursor], error) { return a.cursor(ctx, in.Name) })
	route(a, operation{
		method: http.MethodPost, path: "/cursors/{name}/seek", id: "seek-cursor", tag: "cursors", role: auth.Operator,
		summary: "Put a cursor somewhere else: who reads with it begins anew there",
	}, a.seekCursor)
	route(a, operation{
		method: http.MethodDelete, path: "/cursors/{name}", id: "delete-cursor", tag: "cursors", role: auth.Operator,
		status: http.StatusNoContent, summary: "Forget a cursor and its position",
	}, func(ctx context.Context, in *NamePath) (*struct{}, error) {
		if err := store.CheckCursorName(in.Name); err != nil {
			return nil, err
		}
		return nil, a.e.DeleteCursor(ctx, in.Name)
	})
}

// Cursor is a named reader of the log, and how it stands.
type Cursor struct {
	Name     string       `json:"name"`
	Filter   CursorFilter `json:"filter" doc:"what it reads"`
	Position string       `json:"position,omitempty" doc:"how far it has committed; none: before everything"`
	Made     time.Time    `json:"made"`
	Moved    time.Time    `json:"moved,omitzero" doc:"when it committed last"`
	Held     time.Time    `json:"held_until,omitzero" doc:"when the lease of the worker that holds it ends"`
	Losses   int          `json:"losses,omitempty" doc:"holders in a row that were lost, and moved nothing"`
	Trimmed  time.Time    `json:"trimmed,omitzero" doc:"when it last went past events that retention had removed before it read them"`
	CaughtUp bool         `json:"caught_up" doc:"nothing that its filter chooses is left"`
	Behind   time.Time    `json:"behind_since,omitzero" doc:"when the next event that it has not read was appended; none: it has caught up, or there is none among the next 100 events of its topics"`
}

// CursorFilter is what a cursor reads.
type CursorFilter struct {
	EventFilter
	After  time.Time `json:"after,omitzero" doc:"the event's own time, not before it"`
	Before time.Time `json:"before,omitzero" doc:"the event's own time, before it"`
}

// cursorOf is a cursor with what is left. One whose position is of another life of the log
// is neither: its reader is told.
func (a *api) cursorOf(ctx context.Context, c *pawl.CursorInfo) (Cursor, error) {
	left, err := a.e.CursorLeft(ctx, c)
	if err != nil && !errors.Is(err, pawl.ErrPosition) {
		return Cursor{}, err
	}
	f := c.Filter
	return Cursor{
		Name: c.Name, Position: c.At.String(), Made: c.Made, Moved: c.Moved, Held: c.Until, Losses: c.Losses, Trimmed: c.Trimmed,
		Filter:   CursorFilter{EventFilter{f.Topic, f.Key, f.KeyPrefix, f.Type, f.Source}, f.After, f.Before},
		CaughtUp: left.CaughtUp, Behind: left.Next,
	}, nil
}

// CursorList is one page of cursors.
type CursorList struct {
	Cursors []Cursor `json:"cursors" nullable:"false"`
	Next    string   `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

type cursorsInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
	After string `query:"after" maxLength:"1000" doc:"next of the page before"`
}

func (a *api) listCursors(ctx context.Context, in *cursorsInput) (*body[CursorList], error) {
	var after string
	if err := readCursor(in.After, &after); err != nil {
		return nil, err
	}
	list, err := a.e.Cursors(ctx, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := CursorList{Cursors: make([]Cursor, len(list))}
	for i := range list {
		if out.Cursors[i], err = a.cursorOf(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	if len(list) == in.Limit {
		out.Next = cursor(list[len(list)-1].Name)
	}
	return answer(out), nil
}

// cursor reads one.
func (a *api) cursor(ctx context.Context, name string) (*body[Cursor], error) {
	if err := store.CheckCursorName(name); err != nil {
		return nil, err
	}
	c, err := a.e.CursorNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	w, err := a.cursorOf(ctx, &c)
	return answer(w), err
}

type seekInput struct {
	NamePath
	Body struct {
		To string `json:"to" minLength:"1" maxLength:"64" doc:"start, end, a time (RFC 3339) by which events were appended, or a position"`
	}
}

// placeTo reads where a cursor is put.
func placeTo(text string) (stream.Start, error) {
	if at, err := stream.ParsePosition(text); err == nil {
		return stream.FromPosition(at), nil
	}
	to, err := startOf(text, "", stream.FromStart())
	if err != nil {
		err = job.Invalid("to", text, "must be start, end, a time such as 2026-01-31T12:00:00Z, or a position")
	}
	return to, err
}

func (a *api) seekCursor(ctx context.Context, in *seekInput) (*body[Cursor], error) {
	if err := store.CheckCursorName(in.Name); err != nil {
		return nil, err
	}
	to, err := placeTo(in.Body.To)
	if err != nil {
		return nil, err
	}
	if err := a.e.SeekCursor(ctx, in.Name, to); err != nil {
		return nil, err
	}
	return a.cursor(ctx, in.Name)
}
