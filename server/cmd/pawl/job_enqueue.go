package main

import (
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// mostInput bounds what is read of the standard input: more is refused by the API.
const mostInput = 4 << 20

func (a *app) jobEnqueueCommand() *cobra.Command {
	cmd := a.verb("enqueue KIND [JSON]", "Enqueue a job; with - its arguments are read from the standard input", counted(1, 2), (*call).jobEnqueue)
	f := cmd.Flags()
	f.String("queue", "", "`name` of the queue")
	f.String("in", "", "`time` after which it falls due, such as 10m")
	f.String("at", "", "`time` when it falls due, such as 2026-01-31T12:00:00Z")
	f.Int("priority", 0, "1 first, 9 last")
	f.String("key", "", "`key`: jobs of one key run one at a time where a limit says so")
	f.StringArray("tag", nil, "`tag`, may be repeated")
	f.StringArray("need", nil, "`capability` that a worker must have, may be repeated")
	f.StringArray("header", nil, "`name=value`, may be repeated")
	f.Int("attempts", 0, "attempts at most")
	f.String("timeout", "", "`time` of one attempt at most")
	f.String("deadline", "", "`time` after which it is not run")
	f.String("id", "", "`id` of your choice (UUIDv7), so that it can be sent again")
	keyFlag(cmd, "`key`: a repetition within 24 hours enqueues nothing")
	f.Bool("unique", false, "only if no live job of its kind has the same arguments")
	f.String("unique-key", "", "only if no live job of its kind has this `key`")
	f.Bool("unique-by-queue", false, "unique only in its queue")
	f.String("unique-held-for", "", "unique also for so long a `time` after it was enqueued")
	return cmd
}

func (c *call) jobEnqueue() error {
	d, err := c.draft()
	if err != nil {
		return err
	}
	text, err := c.api.do(c.ctx, request{method: http.MethodPost, path: "/jobs", body: d, headers: c.keyHeader()})
	if err != nil {
		return err
	}
	var r httpapi.Receipt
	if err := decode(text, &r); err != nil || c.json {
		if err == nil {
			err = c.printJSON(text)
		}
		return err
	}
	if r.Duplicate {
		c.print("%s (it was there already)", r.ID)
		return nil
	}
	c.print("%s", r.ID)
	return nil
}

// draft is the job that the flags describe.
func (c *call) draft() (d httpapi.Draft, err error) {
	f := c.cmd.Flags()
	d = httpapi.Draft{
		Kind: c.args[0], ID: c.flag("id"), Queue: c.flag("queue"), Priority: c.number("priority"), In: c.flag("in"),
		Attempts: c.number("attempts"), Timeout: c.flag("timeout"), Key: c.flag("key"),
	}
	for _, n := range []string{"priority", "attempts"} {
		if c.given(n) && c.number(n) == 0 {
			return d, usage("--%s 0: must be 1 or more", n)
		}
	}
	d.Tags, _ = f.GetStringArray("tag")
	d.Needs, _ = f.GetStringArray("need")
	headers, _ := f.GetStringArray("header")
	for _, h := range headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return d, usage("--header %q: must be name=value", h)
		}
		if d.Headers == nil {
			d.Headers = map[string]string{}
		}
		d.Headers[name] = value
	}
	if text := c.flag("at"); text != "" {
		if d.At, err = c.readTime("at", text); err != nil {
			return d, err
		}
	}
	if text := c.flag("deadline"); text != "" {
		if d.Deadline, err = c.readTime("deadline", text); err != nil {
			return d, err
		}
	}
	if c.on("unique") || c.flag("unique-key") != "" || c.on("unique-by-queue") || c.flag("unique-held-for") != "" {
		d.Unique = &httpapi.Unique{Key: c.flag("unique-key"), ByQueue: c.on("unique-by-queue"), HeldFor: c.flag("unique-held-for")}
	}
	if len(c.args) > 1 {
		d.Args, err = c.arguments(c.args[1])
	}
	return d, err
}

// arguments are those of a job: as given, or from the standard input.
func (c *call) arguments(text string) ([]byte, error) {
	if text == "-" {
		all, err := io.ReadAll(io.LimitReader(c.in, mostInput+1))
		switch {
		case err != nil:
			return nil, err
		case len(all) > mostInput:
			return nil, usage("the standard input: must be at most %d bytes", mostInput)
		}
		text = string(all)
	}
	return checkJSON("arguments", text)
}
