package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// jobChange is a verb that changes jobs. to says what it needs beside them.
func (a *app) jobChange(verb, short, to string) *cobra.Command {
	use, least := verb+" [ID…]", 0
	if verb == "run" {
		use, least = verb+" ID…", 1
	}
	cmd := a.verb(use, short+bulkShort[least], counted(least, -1), func(c *call) error {
		body, err := c.changeBody(verb)
		switch {
		case err != nil:
			return err
		case len(c.args) == 0:
			return c.bulk(verb, body)
		}
		for _, f := range jobFilters {
			if c.given(f.flag) {
				return usage("--%s: give ids or a filter, not both", f.flag)
			}
		}
		return c.each(c.args, func(id string) error { return c.jobChanged(verb, id, body) })
	})
	if least == 0 {
		bulkFlags(cmd)
	}
	if to != "" {
		cmd.Flags().String("to", "", to)
	}
	return cmd
}

// bulkShort says that a verb takes a filter too.
var bulkShort = [...]string{": by id, or all that a filter matches", ""}

// changeBody is what a change is sent with.
func (c *call) changeBody(verb string) (map[string]any, error) {
	to := c.flag("to")
	switch verb {
	case "requeue":
		if to == "" {
			return nil, usage("--to: must name a queue")
		}
		return map[string]any{"queue": to}, nil
	case "priority":
		n, err := strconv.Atoi(to)
		if err != nil {
			return nil, usage("--to %q: must be a priority, 1..9", to)
		}
		return map[string]any{"priority": n}, nil
	}
	return nil, nil
}

// failedChange reports answers to a verb that mean that it did not come to what was asked for. A job that is so already, or has
// ended where it was to be cancelled, is as was asked for.
func failedChange(verb, change string) bool {
	switch change {
	case "duplicate", "active", "busy":
		return true
	case "ended":
		return verb != "cancel"
	}
	return false
}

// changes says in words what became of a job.
var changes = map[string]string{
	"changed": "changed", "asked": "it runs: asked to stop", "ended": "it has ended already", "duplicate": "a live job is the same",
	"active": "it is live", "busy": "it runs", "same": "it is so already",
}

func (c *call) jobChanged(verb, id string, values map[string]any) error {
	var body any
	if values != nil {
		body = values
	}
	method, path := http.MethodPost, "/jobs/"+url.PathEscape(id)+"/"+verb
	if verb == "delete" {
		method, path = http.MethodDelete, "/jobs/"+url.PathEscape(id)
	}
	var changed httpapi.Changed
	done, err := c.send(method, path, body, &changed)
	if err != nil {
		return err
	}
	text := cmp.Or(changes[changed.Change], changed.Change)
	if failedChange(verb, changed.Change) {
		return &coded{exitFailed, "unchanged", fmt.Errorf("nothing was changed: %s", text)}
	}
	if !done {
		fmt.Fprintf(c.out, "%s  %s\n", id, text)
	}
	return nil
}
