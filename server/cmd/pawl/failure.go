package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

func rangeFlags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("from", "", "`time`")
	cmd.Flags().String("to", "", "`time` [now]")
	cmd.Flags().String("range", "", "`time` before to where it begins, instead of from [1h]")
	return cmd
}

// failureCommand has the verb of failures.
func (a *app) failureCommand() *cobra.Command {
	list := rangeFlags(a.verb("list", "Tell which failures are alike, those with the most first", counted(0, 0), (*call).failureList))
	list.Flags().String("kind", "", "`name` of a kind, or a pattern")
	list.Flags().String("fingerprint", "", "`fingerprint`")
	return group("failure", "Failures that are alike", "", list)
}

func (c *call) failureList() error {
	query := c.parameters("kind", "fingerprint", "range")
	if err := c.times(query, "from", "to"); err != nil {
		return err
	}
	var l httpapi.FailureGroups
	if done, err := c.read("/failures", query, &l); done || err != nil {
		return err
	}
	t := newTable("failed", "dead", "kind", "fingerprint", "last", "last job", "message")
	for _, g := range l.Groups {
		t.row(g.Failed, g.Dead, g.Kind, g.Fingerprint, c.when(g.Last.Time), g.Last.Job, g.Message)
	}
	return t.write(c.out)
}

// metricCommand has the verb of metrics.
func (a *app) metricCommand() *cobra.Command {
	list := rangeFlags(a.verb("list", "Tell what jobs came to: counts by outcome, and quantiles of their times", counted(0, 0), (*call).metricList))
	list.Flags().String("step", "", "`time` that one line is of, whole minutes [all]")
	list.Flags().String("queue", "", "`name` of a queue, or a pattern")
	list.Flags().String("kind", "", "`name` of a kind, or a pattern")
	list.Flags().Bool("total", false, "add up all queues and kinds")
	return group("metric", "What jobs came to, over time", "", list)
}

func (c *call) metricList() error {
	query := c.parameters("step", "queue", "kind", "range")
	if c.on("total") {
		query.Set("total", "true")
	}
	if err := c.times(query, "from", "to"); err != nil {
		return err
	}
	var l httpapi.SeriesList
	if done, err := c.read("/metrics/series", query, &l); done || err != nil {
		return err
	}
	t := newTable("queue", "kind", "start", "span", "outcomes", "waited p50", "waited p99", "ran p50", "ran p99")
	for _, s := range l.Series {
		for _, p := range s.Points {
			var counts []string
			for name, n := range sorted(p.Counts) {
				counts = append(counts, fmt.Sprintf("%s=%d", name, n))
			}
			w, r := p.QueueTime, p.RunTime
			if w == nil {
				w = &httpapi.Times{}
			}
			if r == nil {
				r = &httpapi.Times{}
			}
			t.row(s.Queue, s.Kind, c.when(p.Start), p.Span, strings.Join(counts, " "), w.P50, w.P99, r.P50, r.P99)
		}
	}
	return t.write(c.out)
}
