package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// cursorCommand has the verbs of cursors.
func (a *app) cursorCommand() *cobra.Command {
	seek := a.verb("seek NAME TO", "Put a cursor at the start, the end, a time or a position", counted(2, 2), (*call).cursorSeek)
	return group("cursor", "Cursors: named readers of events, and how far they are", "",
		pageFlags(a.verb("list", "List cursors, and whether they are behind", counted(0, 0), (*call).cursorList), 100),
		a.verb("show NAME", "Show a cursor", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: "/cursors/" + url.PathEscape(c.args[0])}, showCursor)
		}),
		seek,
		a.verb("delete NAME…", "Forget cursors and their positions", counted(1, -1), (*call).cursorDelete),
	)
}

func (c *call) cursorList() error {
	t := newTable("cursor", "reads", "left", "moved", "held until")
	return pages(c, "/cursors", nil, t, func(l *httpapi.CursorList) string {
		for i := range l.Cursors {
			x := &l.Cursors[i]
			t.row(x.Name, filterText(&x.Filter), c.leftText(x), c.when(x.Moved), c.when(x.Held))
		}
		return l.Next
	})
}

// leftText says what a cursor has not read: never as a number, which would be a long count.
func (c *call) leftText(x *httpapi.Cursor) string {
	switch {
	case x.CaughtUp:
		return "caught up"
	case !x.Behind.IsZero():
		return "behind since " + c.when(x.Behind)
	}
	return "nothing for it in the next 100 events"
}

// filterText is what a cursor reads.
func filterText(f *httpapi.CursorFilter) string {
	text := settingsText(f)
	if text == "" {
		return "everything"
	}
	return text
}

func showCursor(c *call, text []byte) error {
	var x httpapi.Cursor
	if err := decode(text, &x); err != nil {
		return err
	}
	p := &pairs{}
	p.add("cursor", x.Name)
	p.add("reads", filterText(&x.Filter))
	p.add("left", c.leftText(&x))
	p.add("position", x.Position)
	p.add("made", c.when(x.Made))
	p.add("moved", c.when(x.Moved))
	p.add("held until", c.when(x.Held))
	p.number("losses", int64(x.Losses))
	p.add("lost to retention", c.when(x.Trimmed))
	return p.write(c.out)
}

func (c *call) cursorSeek() error {
	to, err := c.place("TO", c.args[1])
	if err != nil {
		return err
	}
	q := request{method: http.MethodPost, path: "/cursors/" + url.PathEscape(c.args[0]) + "/seek", body: map[string]string{"to": to}}
	return c.shown(q, showCursor)
}

func (c *call) cursorDelete() error {
	return c.each(c.args, func(name string) error {
		if _, err := c.send(http.MethodDelete, "/cursors/"+url.PathEscape(name), nil, nil); err != nil {
			return err
		}
		if !c.json { // there is no answer
			c.print("%s  deleted", clean(name))
		}
		return nil
	})
}
