package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

func (a *app) groupParkedCommand() *cobra.Command {
	return pageFlags(a.verb("parked NAME", "List the events that a group has given up, and why", counted(1, 1), (*call).groupParked), 50)
}

func (a *app) groupReplayCommand() *cobra.Command {
	cmd := a.verb("replay NAME [POSITION…]", "Give a group events again that it has given up", counted(1, -1), (*call).groupReplay)
	cmd.Long = "Give a group parked events again: those at positions, or all with --all. With --letters the positions are those of dead letters " +
		"on a topic: the events that they name come again, to this group alone, and the letters stay."
	cmd.Flags().Bool("all", false, "everything that is parked")
	cmd.Flags().String("letters", "", "`topic` on which the positions are dead letters")
	return cmd
}

func (c *call) groupParked() error {
	t := newTable("position", "topic", "key", "failed", "lost", "parked", "reason")
	return pages(c, groupPath(c.args[0])+"/parked", nil, t, func(l *httpapi.ParkedList) string {
		for i := range l.Parked {
			p := &l.Parked[i]
			at := p.Event.Position
			if p.Gone {
				at = "gone from the log"
			}
			t.row(at, p.Event.Topic, p.Event.Key, p.Failures, none(p.Losses), c.when(p.Parked), p.Reason)
		}
		return l.Next
	})
}

// none is a number that is left out when it is 0.
func none(n int) any {
	if n == 0 {
		return ""
	}
	return n
}

// groupReplay replays. All are replayed call by call, and told as one.
func (c *call) groupReplay() error {
	body := httpapi.Replay{All: c.on("all")}
	topic, positions := c.flag("letters"), c.args[1:]
	switch {
	case body.All && (topic != "" || len(positions) > 0):
		return usage("--all: must be without --letters and positions")
	case !body.All && len(positions) == 0:
		return usage("positions: must be given, or --all")
	case topic != "":
		body.Letters = &httpapi.DeadLetters{Topic: topic, Positions: positions}
	default:
		body.Positions = positions
	}
	var all httpapi.ReplayReply
	for {
		text, err := c.api.do(c.ctx, request{method: "POST", path: groupPath(c.args[0]) + "/replay", body: body})
		if err != nil {
			return err
		}
		var r httpapi.ReplayReply
		if err := decode(text, &r); err != nil {
			return err
		}
		all.Replayed, all.Gone, all.More = all.Replayed+r.Replayed, r.Gone, r.More
		if !r.More || r.Replayed == 0 { // the oldest may all be gone from the log
			break
		}
	}
	if c.json {
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return c.printJSON(text)
	}
	c.print("%d replayed", all.Replayed)
	if all.Gone > 0 {
		c.print("%d are not in the log any more", all.Gone)
	}
	return nil
}
