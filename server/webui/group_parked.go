package webui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"time"

	"github.com/pawlwork/pawl"
	events "github.com/pawlwork/pawl/stream"
)

// parkedPerPage is how many parked events a page has: each is read with its data.
const parkedPerPage = 25

// parkedRow is an event that a group has given up.
type parkedRow struct {
	*events.Parked
	Position string // empty: it is not in the log any more
	Link     string
	IsOpen   bool
	Data     template.HTML
}

type parkedData struct {
	Name  string
	Rows  []parkedRow
	All   pawl.Counted
	First string
	Next  string
}

// loadParked reads a page of what the group has given up, the oldest first.
func loadParked(v *view) (any, error) {
	g := v.data.(*groupData)
	d := &parkedData{Name: g.Name, All: g.GivenUp()}
	var after pawl.ParkedAfter
	if text := v.query.Get("after"); text != "" {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(raw, &after) != nil {
			return nil, &fault{422, "This page cannot be found.", "Its address has a place in the list that cannot be read."}
		}
		d.First = v.With("after", "", "open", "")
	}
	list, err := cached(v, "parked\n"+g.Name+"\n"+v.query.Get("after"), 2*time.Second, func(ctx context.Context) ([]events.Parked, error) {
		return v.app.e.Group(g.Name).Parked(ctx, after, parkedPerPage)
	})
	if err != nil {
		return nil, err
	}
	open := v.query.Get("open")
	for i := range list {
		p := &list[i]
		r := parkedRow{Parked: p, Position: p.Event.Position.String(), Data: v.inRow(p.Event)}
		if r.Position != "" {
			r.Link, r.IsOpen = v.with("open", r.Position, "raw", "", "whole", "")+"#event", r.Position == open
		}
		d.Rows = append(d.Rows, r)
	}
	if n := len(list); n == parkedPerPage {
		place, _ := json.Marshal(pawl.ParkedAfter{At: list[n-1].At, Seq: list[n-1].Ref})
		d.Next = v.With("after", base64.RawURLEncoding.EncodeToString(place), "open", "")
	}
	return d, nil
}

// openParked reads the event that is looked at. One that is not kept any more is just not shown.
func (v *view) openParked() (*eventOpen, error) {
	e, err := v.openEvent("", v.query.Get("open"))
	if errors.Is(err, pawl.ErrNotFound) {
		return nil, nil
	}
	return e, err
}

// OpenRow is the row of the event that is looked at, if it is on the page.
func (d *parkedData) OpenRow() *parkedRow {
	for i := range d.Rows {
		if d.Rows[i].IsOpen {
			return &d.Rows[i]
		}
	}
	return nil
}
