package main

import (
	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// settingsCommand shows everything that is declared and set in a store. Those of this
// program are pawl config.
func (a *app) settingsCommand() *cobra.Command {
	return a.verb("settings", "Show what code declares and operators have set in the store", counted(0, 0), (*call).settings)
}

func (c *call) settings() error {
	var s httpapi.Settings
	if done, err := c.read("/settings", nil, &s); done || err != nil {
		return err
	}
	t := newTable("what", "name", "settings", "declared by", "version", "set by", "note")
	for i := range s.Queues {
		q := &s.Queues[i]
		t.row("queue", q.Name, settingsText(q.Holds), q.Owner, q.Version, q.By, q.Note)
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		t.row("limit", l.Name, settingsText(l.Holds), l.Owner, l.Version, l.By, l.Note)
	}
	for i := range s.Topics {
		of := &s.Topics[i]
		t.row("topic", of.Name, settingsText(of.Holds), of.Owner, of.Version, of.By, of.Note)
	}
	for _, u := range s.Upkeep {
		t.row("upkeep", u.Round, "every="+u.Every, "", "", u.By, u.Note)
	}
	for i := range s.Pauses {
		p := &s.Pauses[i]
		t.row("pause", p.Name, c.pauseText(p), "", "", p.By, p.Note)
	}
	for _, v := range s.Versions {
		state := "does not run"
		if v.Live {
			state = "runs"
		}
		t.row("code", v.Owner, state+", seen "+c.when(v.Seen), v.Owner, v.Version, "", "")
	}
	return t.write(c.out)
}
