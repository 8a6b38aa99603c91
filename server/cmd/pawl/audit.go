package main

import (
	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// auditCommand has the verb of the audit log.
func (a *app) auditCommand() *cobra.Command {
	list := pageFlags(a.verb("list", "List what operators did, the newest first", counted(0, 0), (*call).auditList), 100)
	list.Flags().String("target", "", "`name` of a queue or the like, or a job's id; * for what is about everything")
	list.Flags().String("by", "", "`name` of who did it")
	list.Flags().String("action", "", "`action`, such as retry, pause or set queue")
	list.Flags().String("since", "", "`time`")
	list.Flags().String("until", "", "`time`")
	return group("audit", "The audit log: who did what", "", list)
}

func (c *call) auditList() error {
	query := c.parameters("target", "by", "action")
	if err := c.times(query, "since", "until"); err != nil {
		return err
	}
	t := newTable("time", "by", "action", "target", "note", "detail")
	return pages(c, "/audit", query, t, func(l *httpapi.AuditList) string {
		for _, e := range l.Entries {
			t.row(c.when(e.Time), e.By, e.Action, e.Target, e.Note, e.Detail)
		}
		return l.Next
	})
}
