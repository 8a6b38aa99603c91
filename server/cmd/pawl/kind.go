package main

import (
	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// kindCommand has the verbs of kinds.
func (a *app) kindCommand() *cobra.Command {
	return group("kind", "Kinds: pause and resume", "",
		a.eachVerb("pause", "Stop claims of kinds in every queue; running jobs go on", "/kinds/", "paused"),
		a.eachVerb("resume", "Allow claims of kinds again", "/kinds/", "resumed"),
	)
}

// pauseCommand lists what is paused; the nouns themselves pause and resume.
func (a *app) pauseCommand() *cobra.Command {
	return group("pause", "What is paused: queues, kinds, everything", "",
		pageFlags(a.verb("list", "List what is paused, since when, by whom and why", counted(0, 0), (*call).pauseList), 1000),
	)
}

func (c *call) pauseList() error {
	t := newTable("what", "name", "since", "by", "note")
	return pages(c, "/pauses", nil, t, func(l *httpapi.PauseList) string {
		for _, p := range l.Pauses {
			t.row(p.Scope, p.Name, c.when(p.Since), p.By, p.Note)
		}
		return l.Next
	})
}

func (a *app) freezeCommand() *cobra.Command {
	return a.verb("freeze", "Stop all claims; running jobs go on, and jobs are accepted", counted(0, 0), func(c *call) error { return c.freeze("freeze", "frozen") })
}

func (a *app) unfreezeCommand() *cobra.Command {
	return a.verb("unfreeze", "Allow claims again, but for what is paused by itself", counted(0, 0), func(c *call) error {
		return c.freeze("unfreeze", "not frozen")
	})
}

// pausedText says what a pause came to. One that was there already stays as it is, with its note, and that is said.
func (c *call) pausedText(verb, done string, p *httpapi.Pause) string {
	if verb != "pause" && verb != "freeze" || p == nil || p.Note == c.note {
		return done
	}
	text := clean(c.pauseText(p)) + "; it was so already"
	if c.note != "" {
		text += ", and the new note is not kept"
	}
	return text
}

func (c *call) freeze(verb, done string) error {
	var answer httpapi.Paused
	if printed, err := c.post("/"+verb, nil, &answer); printed || err != nil {
		return err
	}
	c.print("everything is %s", c.pausedText(verb, done, answer.Pause))
	return nil
}
