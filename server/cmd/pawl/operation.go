package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// operationCommand has the verbs of operations over many jobs. The verbs of jobs begin them.
func (a *app) operationCommand() *cobra.Command {
	get := a.verb("get ID", "Show how far an operation is", counted(1, 1), (*call).operationGet)
	get.Flags().Bool("wait", false, "wait for its end, and move it on")
	list := pageFlags(a.verb("list", "List operations, the newest first", counted(0, 0), (*call).operationList), 50)
	return group("operation", "Operations over many jobs", "", list, get,
		a.verb("cancel ID", "End an operation; what it has done stays done", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodPost, path: "/operations/" + url.PathEscape(c.args[0]) + "/cancel"}, showOperation)
		}),
	)
}

func (c *call) operationList() error {
	t := newTable("id", "verb", "state", "looked", "changed", "asked", "left", "by", "created", "filter")
	return pages(c, "/operations", nil, t, func(l *httpapi.OperationList) string {
		for i := range l.Operations {
			o := &l.Operations[i]
			t.row(o.ID, o.Verb, o.State, o.Counts.Looked, o.Counts.Changed, o.Counts.Asked, o.Counts.Left, o.By, c.when(o.Created), settingsText(o.Filter))
		}
		return l.Next
	})
}

func (c *call) operationGet() error {
	if c.on("wait") {
		return c.operationWait(c.args[0], 0)
	}
	return c.shown(request{method: http.MethodGet, path: "/operations/" + url.PathEscape(c.args[0])}, showOperation)
}

func showOperation(c *call, text []byte) error {
	var o httpapi.Operation
	if err := decode(text, &o); err != nil {
		return err
	}
	p := &pairs{}
	p.add("operation", o.ID)
	p.add("verb", strings.TrimSpace(o.Verb+" "+o.Queue))
	p.number("priority", int64(o.Priority))
	p.add("filter", settingsText(o.Filter))
	p.add("state", o.State)
	p.add("reason", o.Reason)
	p.add("counts", countsText(&o.Counts))
	p.add("by", o.By)
	p.add("note", o.Note)
	p.add("created", c.when(o.Created))
	p.add("ended", c.when(o.Ended))
	return p.write(c.out)
}

// countsText leaves out what did not happen.
func countsText(n *httpapi.OperationCounts) string {
	text := fmt.Sprintf("%d looked at, %d changed", n.Looked, n.Changed)
	for _, part := range []struct {
		n    int64
		text string
	}{{n.Asked, "asked to stop"}, {n.Duplicate, "duplicates"}, {n.Busy, "busy"}, {n.Left, "left as they were"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.text)
		}
	}
	return text
}

// operationWait waits for the end of an operation, and shows how far it is.
func (c *call) operationWait(id string, total int64) error {
	bar := c.bar("jobs")
	defer bar.end()
	turn := 10 * time.Second
	if bar.w != nil {
		turn = time.Second // somebody looks
	}
	for {
		q := request{method: http.MethodGet, path: "/operations/" + url.PathEscape(id), query: url.Values{"wait": {turn.String()}}, wait: turn}
		text, err := c.api.do(c.ctx, q)
		if err != nil {
			return err
		}
		var o httpapi.Operation
		if err := decode(text, &o); err != nil {
			return err
		}
		if o.State == "open" {
			bar.at(o.Counts.Looked, total)
			continue
		}
		bar.end()
		if c.json {
			if err := c.printJSON(text); err != nil {
				return err
			}
		} else if err := showOperation(c, text); err != nil {
			return err
		}
		if o.State == "failed" {
			return &coded{exitFailed, "failed", fmt.Errorf("the operation failed: %s", o.Reason)}
		}
		return nil
	}
}

func bulkFlags(cmd *cobra.Command) {
	jobFilterFlags(cmd)
	cmd.Flags().Bool("dry-run", false, "change nothing, and count what would change")
	cmd.Flags().Int("most", 0, "jobs that are looked at [all]")
	cmd.Flags().Int("pace", 0, "jobs a second [1000]")
	cmd.Flags().Bool("detach", false, "do not wait for the end: whoever runs goes on with it")
	cmd.Flags().Bool("every", false, "without a filter: all jobs that the verb is for")
	keyFlag(cmd, "`key`: a repetition within 24 hours is the same operation")
}

// bulk does something to all jobs that the filter matches.
func (c *call) bulk(verb string, to map[string]any) error {
	query, err := c.jobFilter()
	if err != nil {
		return err
	}
	if len(query) == 0 && !c.on("every") {
		return usage("%s: needs ids, a filter such as --state, or --every", c.cmd.CommandPath())
	}
	if verb == "run" {
		return usage("%s: needs ids", c.cmd.CommandPath())
	}
	filter := map[string]any{}
	for name, list := range query {
		filter[name] = list[0]
	}
	if text := query.Get("state"); text != "" {
		filter["state"] = strings.Split(text, ",")
	}
	if text := query.Get("worker"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return usage("--worker %q: must be a number", text)
		}
		filter["worker"] = n
	}
	if verb == "priority" {
		verb = "set-priority"
	}
	body := map[string]any{"verb": verb, "filter": filter, "dry_run": c.on("dry-run")}
	for name, v := range to {
		body[name] = v
	}
	for _, name := range []string{"most", "pace"} {
		if c.given(name) {
			body[name] = c.number(name)
		}
	}
	total := c.bulkTotal(query)
	text, err := c.api.do(c.ctx, request{method: http.MethodPost, path: "/operations", body: body, wait: checkTime, headers: c.keyHeader()})
	if err != nil {
		return err
	}
	var o httpapi.Operation
	if err := decode(text, &o); err != nil {
		return err
	}
	switch {
	case o.ID == "" && !c.json:
		c.print("would be: %s", countsText(&o.Counts))
		return nil
	case o.ID == "" || c.on("detach"):
		if c.json {
			return c.printJSON(text)
		}
		return showOperation(c, text)
	}
	return c.operationWait(o.ID, total)
}

// bulkTotal is how many jobs match, for the bar; 0 where nobody looks, or they are too many.
func (c *call) bulkTotal(query url.Values) int64 {
	if c.bar("").w == nil {
		return 0
	}
	var n httpapi.JobCount
	if _, err := c.api.get(c.ctx, "/jobs/count", query, &n); err != nil || n.More {
		return 0
	}
	return int64(n.Jobs)
}
