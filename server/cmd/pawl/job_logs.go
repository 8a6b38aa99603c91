package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// followEvery is how often a job that goes on is asked for more lines: its process hands
// them over about as often. Its end is heard at once.
const followEvery = time.Second

func (a *app) jobLogsCommand() *cobra.Command {
	cmd := a.verb("logs ID", "Print the lines that a job's handler logged", counted(1, 1), (*call).jobLogs)
	cmd.Flags().Int("skip", 0, "lines")
	cmd.Flags().Int("limit", 0, "lines at most [all]")
	cmd.Flags().BoolP("follow", "f", false, "go on until the job has ended")
	return cmd
}

// jobLogs prints the lines that there are, and with --follow those that come. The job is
// looked at before its last lines are read: none that it has logged is missed.
func (c *call) jobLogs() error {
	lines := logLines{skip: c.number("skip"), left: c.number("limit"), bounded: c.given("limit")}
	over := !c.on("follow")
	for {
		more, err := lines.print(c)
		if err != nil || !more || over {
			return err
		}
		id := c.args[0]
		q := request{method: http.MethodGet, path: "/jobs/" + url.PathEscape(id), query: url.Values{"wait": {followEvery.String()}}, wait: followEvery}
		text, err := c.api.do(c.ctx, q)
		if err != nil {
			return err
		}
		var j httpapi.Job
		if err := decode(text, &j); err != nil {
			return err
		}
		over = ended(j.State)
	}
}

// logLines is how far the lines of a job were printed.
type logLines struct {
	skip, left int
	bounded    bool
}

// print writes the lines that there are by now. more is false once as many as wanted were.
func (l *logLines) print(c *call) (more bool, err error) {
	const most = 1000
	for {
		n := most
		if l.bounded {
			n = min(l.left, most)
		}
		query := url.Values{"skip": {strconv.Itoa(l.skip)}, "limit": {strconv.Itoa(n)}}
		var page httpapi.LogList
		text, err := c.api.get(c.ctx, "/jobs/"+url.PathEscape(c.args[0])+"/logs", query, &page)
		if err != nil {
			return false, err
		}
		if !c.on("follow") || len(page.Lines) > 0 {
			if err := c.printJSON(text); err != nil {
				return false, err
			}
		}
		for _, line := range page.Lines {
			if !c.json {
				c.print("%s  run %d  %-5s  %s", line.Time.In(c.zone).Format("2006-01-02 15:04:05.000"), line.Run, levelText(line.Level), clean(line.Text))
			}
		}
		l.skip, l.left = l.skip+len(page.Lines), l.left-len(page.Lines)
		if l.bounded && l.left <= 0 {
			return false, nil
		}
		if len(page.Lines) < n {
			return true, nil
		}
	}
}

var levels = map[int]string{-4: "debug", 0: "info", 4: "warn", 8: "error"}

func levelText(level int) string {
	if text := levels[level]; text != "" {
		return text
	}
	return strconv.Itoa(level)
}
