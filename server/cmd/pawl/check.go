package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// checkTime is how long one part of a check may take beside the usual.
const checkTime = 5 * time.Minute

// checkCommand holds a store against its rules.
func (a *app) checkCommand() *cobra.Command {
	cmd := a.verb("check", "Hold the store against its rules; 1 when faults are left", counted(0, 0), (*call).check)
	cmd.Flags().Bool("repair", false, "mend what can be mended")
	cmd.Flags().Bool("totals", false, "count the jobs of each queue and state")
	cmd.Flags().String("grace", "", "`time` that a run may stay with a lost worker")
	return cmd
}

// check goes on until everything was looked at.
func (c *call) check() error {
	body := map[string]any{"repair": c.on("repair"), "totals": c.on("totals")}
	if grace := c.flag("grace"); grace != "" {
		body["grace"] = grace
	}
	var live, archived int64
	found, repaired := 0, 0
	bar := c.bar("checked")
	totals := newTable("queue", "state", "jobs")
	for {
		text, err := c.api.do(c.ctx, request{method: http.MethodPost, path: "/check", body: body, wait: checkTime})
		if err != nil {
			bar.end()
			return err
		}
		var r httpapi.CheckReport
		if err := decode(text, &r); err != nil {
			return err
		}
		live, archived, found, repaired = live+r.Live, archived+r.Archived, found+r.Found, repaired+r.Repaired
		bar.at(live+archived, 0)
		if c.json {
			if err := c.printJSON(text); err != nil {
				return err
			}
		} else {
			c.checkTell(bar, &r)
		}
		for _, n := range r.Totals {
			totals.row(n.Queue, n.State, many(httpapi.JobCount{Jobs: n.Jobs, More: n.More}))
		}
		if r.Next == "" {
			break
		}
		body["after"], body["totals"] = r.Next, false
	}
	bar.end()
	if !c.json {
		if c.on("totals") {
			if err := totals.write(c.out); err != nil {
				return err
			}
		}
		c.print("%d live and %d archived jobs: %d faults, %d repaired", live, archived, found, repaired)
	}
	if found > 0 {
		return &coded{exitFailed, "faults", fmt.Errorf("%d faults", found)}
	}
	return nil
}

func (c *call) checkTell(bar *bar, r *httpapi.CheckReport) {
	if len(r.Repairs)+len(r.Faults) > 0 {
		bar.end()
	}
	for _, f := range r.Repairs {
		c.print("%s  %s  %s: %s", clean(f.Fault.Rule), clean(f.Fault.Job+f.Fault.Table), f.Answer, clean(f.Did))
	}
	for _, f := range r.Faults {
		c.print("%s  %s  %s", clean(f.Rule), clean(f.Job+f.Table), clean(f.Detail))
	}
}
