package main

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// groupCommand has the verbs of groups. Those of what they have given up are in group_parked.go.
func (a *app) groupCommand() *cobra.Command {
	return group("group", "Groups: consumers that share the events of topics", "",
		pageFlags(a.verb("list", "List groups: how far they are behind, and what they have", counted(0, 0), (*call).groupList), 50),
		a.verb("show NAME", "Show a group", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: groupPath(c.args[0])}, showGroup)
		}),
		a.verb("lag NAME…", "Count the events that groups have not taken yet, up to 10,000", counted(1, -1), (*call).groupLag),
		pageFlags(a.verb("members NAME", "List the members of a group, and what each works on", counted(1, 1), (*call).groupMembers), 100),
		a.groupParkedCommand(), a.groupReplayCommand(),
		a.verb("seek NAME TO", "Put a group at the start, the end, a time or a position", counted(2, 2), (*call).groupSeek),
		a.eachVerb("pause", "Let groups take no more events; what is being handled ends", "/groups/", "paused"),
		a.eachVerb("resume", "Let groups go on", "/groups/", "resumed"),
		a.verb("delete NAME…", "Forget groups with all that they have, what is parked too", counted(1, -1), (*call).groupDelete),
	)
}

func groupPath(name string) string { return "/groups/" + url.PathEscape(name) }

// eventsText is a number of events, with a + where there may be more.
func eventsText(n httpapi.EventCount) string {
	if n.More {
		return strconv.Itoa(n.Events) + "+"
	}
	return strconv.Itoa(n.Events)
}

// ifAny is it, and nothing for none.
func ifAny(n httpapi.EventCount) string {
	if n.Events == 0 {
		return ""
	}
	return eventsText(n)
}

func pausedWord(g *httpapi.Group) string {
	if g.Paused {
		return "paused"
	}
	return ""
}

func (c *call) groupList() error {
	t := newTable("group", "reads", "mode", "behind", "members", "open", "retries", "parked", "")
	return pages(c, "/groups", nil, t, func(l *httpapi.GroupList) string {
		for i := range l.Groups {
			g := &l.Groups[i]
			t.row(g.Name, filterText(&g.Filter), g.Mode, eventsText(g.Behind), g.Members, g.Open, ifAny(g.Waiting), ifAny(g.Parked), pausedWord(g))
		}
		return l.Next
	})
}

func showGroup(c *call, text []byte) error {
	var g httpapi.Group
	if err := decode(text, &g); err != nil {
		return err
	}
	p := &pairs{}
	p.add("group", g.Name)
	p.add("reads", filterText(&g.Filter))
	p.add("mode", g.Mode)
	p.add("state", pausedWord(&g))
	p.add("behind", eventsText(g.Behind))
	p.add("members", g.Members)
	p.add("open", g.Open)
	p.add("retries", eventsText(g.Waiting))
	p.add("parked", eventsText(g.Parked))
	p.add("position", g.Position)
	p.add("not done", g.Undone)
	p.add("made", c.when(g.Made))
	return p.write(c.out)
}

func (c *call) groupLag() error {
	t := newTable("group", "behind", "")
	err := c.each(c.args, func(name string) error {
		var g httpapi.Group
		printed, err := c.read(groupPath(name), nil, &g)
		if !printed && err == nil {
			t.row(g.Name, eventsText(g.Behind), pausedWord(&g))
		}
		return err
	})
	if !c.json && len(t.rows) > 0 {
		if wrong := t.write(c.out); err == nil {
			err = wrong
		}
	}
	return err
}

func (c *call) groupMembers() error {
	t := newTable("member", "worker", "open", "stripes", "joined", "last turn")
	return pages(c, groupPath(c.args[0])+"/members", nil, t, func(l *httpapi.MemberList) string {
		for _, m := range l.Members {
			stripes := ""
			if m.Stripes > 0 {
				stripes = strconv.Itoa(m.Stripes)
			}
			t.row(m.Name, m.Worker, m.Open, stripes, c.when(m.Joined), c.when(m.Turned))
		}
		return l.Next
	})
}

func (c *call) groupSeek() error {
	to, err := c.place("TO", c.args[1])
	if err != nil {
		return err
	}
	return c.shown(request{method: http.MethodPost, path: groupPath(c.args[0]) + "/seek", body: map[string]string{"to": to}}, showGroup)
}

func (c *call) groupDelete() error {
	return c.each(c.args, func(name string) error {
		if _, err := c.send(http.MethodDelete, groupPath(name), nil, nil); err != nil {
			return err
		}
		if !c.json { // there is no answer
			c.print("%s  deleted", clean(name))
		}
		return nil
	})
}
