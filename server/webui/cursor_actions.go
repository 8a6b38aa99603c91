package webui

import (
	"net/http"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	events "github.com/pawlwork/pawl/stream"
)

// cursorActions are done to a cursor: the field name says which.
var cursorActions = []action{
	{noun: "cursor", verb: "seek", role: auth.Operator, label: "Seek…", class: "s quiet", ask: askSeek, do: seekCursor},
	{noun: "cursor", verb: "delete", role: auth.Operator, label: "Delete…", class: "s bad", ask: askDeleteCursor, do: deleteCursor},
}

// theCursor is the one that an action is about.
func (a *act) theCursor() (pawl.CursorInfo, error) {
	if err := store.CheckCursorName(a.whose()); err != nil {
		return pawl.CursorInfo{}, err
	}
	return a.app.e.CursorNamed(a.ctx, a.whose())
}

func askSeek(a *act) (*dialog, error) {
	c, err := a.theCursor()
	if err != nil {
		return nil, err
	}
	value := "end"
	if a.form.Has("to") {
		value = a.get("to")
	}
	return &dialog{
		Title: "Put " + plain(c.Name, 80) + " somewhere else?",
		Text: "Who reads with it begins anew there: what lies before is not read, and what lies behind is read, also a second time. " +
			"A worker goes on there with its next batch.",
		Fields: []field{{Name: "to", Label: "Where to", Value: value, Hint: "start, end, a time such as 2026-01-31T12:00:00Z, or a position."}},
		Note:   "optional", Button: "Put it there", Bad: true,
	}, nil
}

// readStart reads where a cursor is put.
func readStart(text string) (to events.Start, ok bool) {
	switch text {
	case "":
		return to, false
	case "start":
		return events.FromStart(), true
	case "end":
		return events.FromEnd(), true
	}
	if at, err := events.ParsePosition(text); err == nil {
		return events.FromPosition(at), true
	}
	t, err := time.Parse(time.RFC3339, text)
	return events.FromTime(t), err == nil
}

func seekCursor(a *act) (*outcome, error) {
	c, err := a.theCursor()
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(a.get("to"))
	to, ok := readStart(text)
	if !ok {
		return nil, &fault{http.StatusUnprocessableEntity, "Nothing changed.",
			"It cannot be put at " + plain(text, 60) + ". Allowed: start, end, a time such as 2026-01-31T12:00:00Z, or a position."}
	}
	if err := a.app.e.SeekCursor(a.ctx, c.Name, to); err != nil {
		return nil, err
	}
	before := c.At.String()
	if before == "" {
		before = "start"
	}
	return &outcome{Text: plain(c.Name, 60) + " is at " + plain(text, 60) + " now.", Undo: &call{Noun: "cursor", Verb: "seek",
		Fields: map[string]string{"name": c.Name, "to": before}}}, nil
}

func askDeleteCursor(a *act) (*dialog, error) {
	c, err := a.theCursor()
	if err != nil {
		return nil, err
	}
	return &dialog{
		Title: "Delete " + plain(c.Name, 80) + " for good?",
		Text:  "Its position is forgotten. Who opens it again begins at the start, or where its code says; a worker that holds it does so by itself.",
		Note:  "optional", Button: "Delete the cursor", Bad: true,
	}, nil
}

func deleteCursor(a *act) (*outcome, error) {
	c, err := a.theCursor()
	if err != nil {
		return nil, err
	}
	if err := a.app.e.DeleteCursor(a.ctx, c.Name); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(c.Name, 60) + " is deleted."}, nil
}
