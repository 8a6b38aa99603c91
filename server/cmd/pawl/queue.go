package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// queueFields can be set of a queue.
var queueFields = []field{
	{"total", "`number` of its jobs that run at once in the cluster; -1: no bound", asInt},
	{"attempts", "`number` for jobs that are enqueued from now on", asInt},
	{"keep_done", "`time` that done jobs are kept, or none", nil},
	{"keep_dead", "`time` that dead jobs are kept, or none", nil},
	{"keep_cancelled", "`time` that cancelled jobs are kept, or none", nil},
	{"aging", "`time` after which a job rises by a priority, or none", nil},
	{"backoff.base", "`time` of the first wait after a failure", nil},
	{"backoff.max", "`time` of the longest wait", nil},
	{"backoff.factor", "`number` by which it grows", asFloat},
	{"backoff.off", "`true`: retry at once", asBool},
}

// queueCommand has the verbs of queues.
func (a *app) queueCommand() *cobra.Command {
	return group("queue", "Queues: look, pause, set", "",
		pageFlags(a.verb("list", "List queues: how each stands", counted(0, 0), (*call).queueList), 1000),
		a.verb("get NAME…", "Show how queues stand, and their settings", counted(1, -1), (*call).queueGet),
		pageFlags(a.verb("counts", "Count the jobs of each queue in each state, up to a bound", counted(0, 0), (*call).queueCounts), 1000),
		a.eachVerb("pause", "Stop claims from queues; running jobs go on", "/queues/", "paused"),
		a.eachVerb("resume", "Allow claims from queues again", "/queues/", "resumed"),
		a.eachVerb("reset-cool-down", "End the cool-down of queues", "/queues/", "cools down no more"),
		a.verb("settings NAME", "Show what holds for a queue, or is said for a pattern", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: "/queues/" + url.PathEscape(c.args[0]) + "/settings"}, showQueueSettings)
		}),
		a.setCommand("/queues/", "Put settings over what code declares, for a queue or a pattern such as mail.*", queueFields, showQueueSettings),
		a.resetCommand("/queues/", queueFields, showQueueSettings),
	)
}

// many is a count with its bound: 10000+.
func many(n httpapi.JobCount) string {
	if n.More {
		return fmt.Sprintf("%d+", n.Jobs)
	}
	return fmt.Sprint(n.Jobs)
}

func (c *call) queueList() error {
	t := newTable("queue", "ready", "scheduled", "retries", "running", "slots", "workers", "oldest ready", "held up")
	return pages(c, "/queues", nil, t, func(l *httpapi.QueueList) string {
		for i := range l.Queues {
			q := &l.Queues[i]
			t.row(q.Name, many(q.Ready), many(q.Scheduled), many(q.Retries), many(q.Running), q.Slots, q.Workers, c.when(q.OldestReady), c.heldUp(q))
		}
		return l.Next
	})
}

// heldUp says what keeps a queue from giving jobs out.
func (a *app) heldUp(q *httpapi.Queue) string {
	var why []string
	if q.Pause != nil {
		why = append(why, a.pauseText(q.Pause))
	}
	if q.CoolDown != nil {
		why = append(why, "cools down until "+a.when(q.CoolDown.Until))
	}
	return strings.Join(why, "; ")
}

func (a *app) pauseText(p *httpapi.Pause) string {
	text := "paused"
	if p.Scope == "all" {
		text = "frozen"
	}
	if text += " since " + a.when(p.Since); p.By != "" {
		text += " by " + p.By
	}
	if p.Note != "" {
		text += ": " + p.Note
	}
	return text
}

func (c *call) queueGet() error {
	return c.each(c.args, func(name string) error {
		var q httpapi.Queue
		done, err := c.read("/queues/"+url.PathEscape(name), nil, &q)
		if done || err != nil {
			return err
		}
		p := &pairs{}
		p.add("queue", q.Name)
		p.add("held up", c.heldUp(&q))
		p.add("ready", many(q.Ready))
		p.add("oldest ready", c.when(q.OldestReady))
		p.add("scheduled", many(q.Scheduled))
		p.add("retries", many(q.Retries))
		p.add("running", many(q.Running))
		p.number("total", int64(q.Total))
		p.add("slots", q.Slots)
		p.add("workers", strings.TrimSpace(fmt.Sprintf("%d %s", q.Workers, strings.Join(q.Labels, " "))))
		c.sourcePairs(p, settingsText(q.Settings.Holds), settingsText(q.Settings.Declared), &q.Settings.Source)
		return p.write(c.out)
	})
}

// sourcePairs adds what holds and where it comes from.
func (a *app) sourcePairs(p *pairs, holds, declared string, s *httpapi.Source) {
	p.add("settings", holds)
	if declared != holds {
		p.add("declared", declared)
	}
	if s.Owner != "" {
		p.add("declared by", s.Owner+" "+s.Version)
	}
	if len(s.Overridden) > 0 {
		p.add("set", strings.Join(s.Overridden, ",")+" by "+s.By+", "+a.when(s.Since))
		p.add("note", s.Note)
	}
	for _, conflict := range s.Conflicts {
		p.add("conflict", conflict.Owner+" "+conflict.Version+" declares it differently")
	}
}

func showQueueSettings(c *call, text []byte) error {
	var q httpapi.EffectiveQueue
	if err := decode(text, &q); err != nil {
		return err
	}
	p := &pairs{}
	p.add("queue", q.Name)
	p.add("pattern", q.Pattern)
	c.sourcePairs(p, settingsText(q.Holds), settingsText(q.Declared), &q.Source)
	return p.write(c.out)
}

var states = []string{"blocked", "waiting", "running", "suspended", "done", "dead", "cancelled", "skipped"}

func (c *call) queueCounts() error {
	t := newTable(append([]string{"queue"}, states...)...)
	return pages(c, "/counts", nil, t, func(l *httpapi.CountList) string {
		for _, q := range l.Counts {
			row := []any{q.Queue}
			for _, s := range states {
				n, ok := q.States[s]
				if !ok {
					row = append(row, "")
					continue
				}
				row = append(row, many(n))
			}
			t.row(row...)
		}
		return l.Next
	})
}
