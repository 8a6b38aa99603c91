package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/httpapi"
)

// jobCommand has the verbs of jobs.
func (a *app) jobCommand() *cobra.Command {
	list := a.verb("list", "List jobs, the newest first", counted(0, 0), (*call).jobList)
	jobFilterFlags(list)
	list.Flags().String("order", "", "`order`: id, due (waiting jobs of one queue), finish (dead and cancelled ones), worker (running ones)")
	pageFlags(list, 50)
	count := a.verb("count", "Count jobs, up to a bound", counted(0, 0), (*call).jobCount)
	jobFilterFlags(count)
	count.Flags().Int("cap", 10_000, "where it stops, 10000 at most")
	result := a.verb("result ID", "Print what a job's handler kept", counted(1, 1), (*call).jobResult)
	waitFlag(result)
	get := a.verb("get ID…", "Show jobs, live or archived", counted(1, -1), (*call).jobGet)
	waitFlag(get)
	return group("job", "Jobs: enqueue, look, change", "",
		a.jobEnqueueCommand(), list, get, result, a.jobLogsCommand(),
		a.verb("why ID…", "Say what keeps jobs from running, those with the same cause together", counted(1, -1), (*call).jobWhy), count,
		a.jobChange("cancel", "End jobs that do not run, and ask those that do to stop", ""),
		a.jobChange("retry", "Let dead, cancelled or parked jobs wait again, with all their attempts", ""),
		a.jobChange("run", "Make waiting jobs due now, before others of their priority", ""),
		a.jobChange("delete", "Remove jobs that do not run, and ask those that do to stop", ""),
		a.jobChange("requeue", "Move jobs to another queue", "`queue` to move them to"),
		a.jobChange("priority", "Give waiting jobs another priority", "`priority`, 1 first, 9 last"),
	)
}

// jobFilters are the flags that choose jobs, as the API calls them, and what they are.
var jobFilters = []struct{ flag, is string }{
	{"state", "`states`, with commas: blocked, waiting, running, suspended, done, dead, cancelled, skipped"},
	{"queue", "`name` of the queue"},
	{"kind", "`name` of the kind, or the beginning of several: mail.*"},
	{"key", "`key`"},
	{"tag", "`tag`"},
	{"worker", "`number` of who runs it"},
	{"fingerprint", "`fingerprint` of the last failure"},
	{"due-before", "`time`, absolute or from now: 2026-01-31T12:00:00Z, -2h"},
	{"due-after", "`time`"},
	{"created-before", "`time`"},
	{"created-after", "`time`"},
	{"finished-before", "`time`"},
	{"finished-after", "`time`"},
}

func jobFilterFlags(cmd *cobra.Command) {
	for _, f := range jobFilters {
		cmd.Flags().String(f.flag, "", f.is)
	}
}

// jobFilter is what those flags say, as the parameters of a list.
func (c *call) jobFilter() (url.Values, error) {
	query := url.Values{}
	for _, f := range jobFilters {
		text := c.flag(f.flag)
		if text == "" {
			continue
		}
		if strings.HasSuffix(f.flag, "-before") || strings.HasSuffix(f.flag, "-after") {
			t, err := c.readTime(f.flag, text)
			if err != nil {
				return nil, err
			}
			text = t.UTC().Format(time.RFC3339Nano)
		}
		query.Set(strings.ReplaceAll(f.flag, "-", "_"), text)
	}
	return query, nil
}

func (c *call) jobList() error {
	query, err := c.jobFilter()
	if err != nil {
		return err
	}
	if text := c.flag("order"); text != "" {
		query.Set("order", text)
	}
	t := newTable("id", "state", "queue", "kind", "pri", "attempt", "when", "key", "tags")
	return pages(c, "/jobs", query, t, func(l *httpapi.JobList) string {
		for i := range l.Jobs {
			j := &l.Jobs[i]
			t.row(j.ID, j.State, j.Queue, j.Kind, j.Priority, attemptText(j, "/"), c.jobWhen(j), j.Key, strings.Join(j.Tags, ","))
		}
		return l.Next
	})
}

// attemptText is which attempt of a job runs or comes next, or was its last, from 1: as the pages of Mission Control count.
func attemptText(j *httpapi.Job, of string) string {
	n := j.Attempt
	if j.State == "dead" || j.State == "cancelled" {
		n = j.Used
	}
	return fmt.Sprintf("%d%s%d", min(max(n, 1), max(j.MaxAttempts, 1)), of, j.MaxAttempts)
}

// jobWhen is the time that matters in a job's state.
func (a *app) jobWhen(j *httpapi.Job) string {
	switch {
	case !j.Finished.IsZero():
		return "ended " + a.when(j.Finished)
	case j.State == "running" && !j.Started.IsZero():
		return "began " + a.when(j.Started)
	}
	return "due " + a.when(j.Due)
}

func (c *call) jobCount() error {
	query, err := c.jobFilter()
	if err != nil {
		return err
	}
	query.Set("cap", strconv.Itoa(c.number("cap")))
	var n httpapi.JobCount
	if done, err := c.read("/jobs/count", query, &n); done || err != nil {
		return err
	}
	more := ""
	if n.More {
		more = "+"
	}
	c.print("%d%s", n.Jobs, more)
	return nil
}

// waitForever is --wait without a time.
const waitForever = "until it ends"

func waitFlag(cmd *cobra.Command) {
	cmd.Flags().String("wait", "", "wait for the job's end, for a `time` at most: --wait, --wait=10s")
	cmd.Flags().Lookup("wait").NoOptDefVal = waitForever
}

// waited reads a job, after waiting for its end if that is asked for.
func (c *call) waited(id string) (j httpapi.Job, text []byte, err error) {
	const turn = 50 * time.Second // a server waits a minute at most
	left := time.Duration(0)
	if wait := c.flag("wait"); wait == waitForever {
		left = 1<<63 - 1
	} else if wait != "" {
		if left, err = time.ParseDuration(wait); err != nil || left <= 0 {
			return j, nil, usage("--wait=%s: must be a time such as 10s", wait)
		}
	}
	for {
		q := request{method: http.MethodGet, path: "/jobs/" + url.PathEscape(id)}
		if left > 0 {
			q.wait = min(left, turn)
			q.query = url.Values{"wait": {q.wait.String()}}
		}
		j = httpapi.Job{}
		if text, err = c.api.do(c.ctx, q); err == nil {
			err = decode(text, &j)
		}
		left -= q.wait
		if err != nil || left <= 0 || ended(j.State) {
			return j, text, err
		}
	}
}

// ended reports whether a state is an end.
func ended(state string) bool {
	switch state {
	case "done", "dead", "cancelled", "skipped":
		return true
	}
	return false
}

func (c *call) jobGet() error {
	first := true
	return c.each(c.args, func(id string) error {
		j, text, err := c.waited(id)
		if err != nil || c.json {
			if err == nil {
				err = c.printJSON(text)
			}
			return err
		}
		if !first {
			c.print("")
		}
		first = false
		return c.jobShow(&j)
	})
}

// jobShow prints a whole job.
func (c *call) jobShow(j *httpapi.Job) error {
	p := &pairs{}
	p.add("id", j.ID)
	p.add("kind", j.Kind)
	p.add("queue", j.Queue)
	p.add("state", j.State)
	p.add("reason", j.Reason)
	p.add("waits for", j.Wait)
	p.add("priority", j.Priority)
	p.add("attempt", attemptText(j, " of "))
	p.number("lost", int64(j.Lost))
	p.number("snoozes", int64(j.Snoozes))
	p.number("throttles", int64(j.Throttles))
	p.add("key", j.Key)
	p.add("tags", strings.Join(j.Tags, ","))
	p.add("needs", strings.Join(j.Needs, ","))
	p.add("created", c.when(j.Created))
	p.add("due", c.when(j.Due))
	p.add("started", c.when(j.Started))
	p.add("finished", c.when(j.Finished))
	p.add("deadline", c.when(j.Deadline))
	p.add("expires", c.when(j.Expires))
	p.add("timeout", j.Timeout)
	p.number("worker", j.Worker)
	if j.CancelAsked {
		p.add("cancel", "asked for")
	}
	if j.Progress != nil {
		p.add("progress", fmt.Sprintf("%d of %d %s", j.Progress.Done, j.Progress.Total, j.Progress.Note))
	}
	if j.Args != nil {
		p.add("args", payloadText(j.Args.JSON, j.Args.Text, j.Args.Base64))
	}
	for name, text := range sorted(j.Headers) {
		p.add("header "+name, text)
	}
	if j.Result != nil {
		p.add("result", payloadText(j.Result.JSON, j.Result.Text, j.Result.Base64))
	}
	for i := range j.Failures {
		f := &j.Failures[i]
		p.add(fmt.Sprintf("failure %d", i+1), fmt.Sprintf("%s, attempt %d: %s", c.when(f.Time), f.Attempt, f.Message))
	}
	p.add("unreadable", strings.Join(j.Unreadable, ","))
	return p.write(c.out)
}

func payloadText(value json.RawMessage, text string, raw []byte) string {
	switch {
	case value != nil:
		return string(value)
	case text != "":
		return text
	}
	return fmt.Sprintf("%d bytes that are no text", len(raw))
}

func (c *call) jobResult() error {
	if c.flag("wait") != "" {
		if _, _, err := c.waited(c.args[0]); err != nil {
			return err
		}
	}
	var result struct {
		JSON   json.RawMessage `json:"json"`
		Text   string          `json:"text"`
		Base64 []byte          `json:"base64"`
	}
	done, err := c.read("/jobs/"+url.PathEscape(c.args[0])+"/result", nil, &result)
	if done || err != nil {
		return err
	}
	if result.JSON == nil && result.Text == "" {
		_, err := c.out.Write(result.Base64) // as they were kept, for a file
		return err
	}
	c.print("%s", payloadText(result.JSON, result.Text, nil))
	return nil
}

func (c *call) jobWhy() error {
	if len(c.args) == 1 {
		var why pawl.Why
		done, err := c.read("/jobs/"+url.PathEscape(c.args[0])+"/why", nil, &why)
		if !done && err == nil {
			c.print("%s", clean(why.Text))
		}
		return err
	}
	var groups httpapi.WhyGroups
	if done, err := c.post("/why", map[string][]string{"ids": c.args}, &groups); done || err != nil {
		return err
	}
	for _, g := range groups.Groups {
		c.print("%s", clean(g.Why.Text))
		for _, id := range g.Jobs {
			c.print("  %s", id)
		}
	}
	return nil
}
