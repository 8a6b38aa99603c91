package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// topicCommand has the verbs of topics.
func (a *app) topicCommand() *cobra.Command {
	return group("topic", "Topics: events, in order, kept to be read again", "", append([]*cobra.Command{
		pageFlags(a.verb("list [PATTERN]", "List topics, such as those of orders.* or orders.>", counted(0, 1), (*call).topicList), 1000),
		a.topicTailCommand(), a.topicPublishCommand(),
		a.verb("why", "Say which open transactions keep published events from being read", counted(0, 0), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: "/events/why"}, showHolders)
		}),
	}, a.topicSettingCommands()...)...)
}

func (c *call) topicList() error {
	query := url.Values{}
	if len(c.args) > 0 {
		query.Set("pattern", c.args[0])
	}
	t := newTable("topic", "newest event")
	return pages(c, "/topics", query, t, func(l *httpapi.TopicList) string {
		for _, topic := range l.Topics {
			t.row(topic.Name, c.when(topic.Newest))
		}
		return l.Next
	})
}

func showHolders(c *call, text []byte) error {
	var x httpapi.EventHolders
	if err := decode(text, &x); err != nil {
		return err
	}
	if len(x.Holders) == 0 {
		c.print("nothing: all that was published can be read")
		return nil
	}
	c.print("readers wait for %s, which has published events", clean(x.Holders[0].Text))
	for _, h := range x.Holders[1:] {
		c.print("then for %s", clean(h.Text))
	}
	return nil
}

func (a *app) topicPublishCommand() *cobra.Command {
	cmd := a.verb("publish TOPIC [JSON]", "Publish an event; with - its data is read from the standard input", counted(1, 2), (*call).topicPublish)
	f := cmd.Flags()
	f.String("key", "", "`key`: order holds among events with the same one")
	f.String("type", "", "`name` of what the data is of")
	f.String("source", "", "`name` of who publishes")
	f.StringArray("header", nil, "`name=value`, may be repeated")
	f.String("content-type", "", "`type` of the data [application/json]")
	f.Bool("raw", false, "the data is bytes, and need not be JSON")
	f.String("correlation", "", "`id` of what it belongs to")
	f.String("causation", "", "`id` of what it follows from")
	f.String("ttl", "", "`time` for which it is delivered, such as 24h")
	f.String("in", "", "`time` after which it is appended, such as 10m")
	f.String("at", "", "`time` at which it is appended")
	f.String("expect", "", "`version` of the last event of its key, or none: on versioned topics")
	return keyFlag(cmd, "`key`: a repetition within 24 hours publishes nothing, as long as the server runs")
}

func (c *call) topicPublish() error {
	d := httpapi.EventDraft{
		Key: c.flag("key"), Type: c.flag("type"), Source: c.flag("source"), ContentType: c.flag("content-type"),
		Correlation: c.flag("correlation"), Causation: c.flag("causation"), TTL: c.flag("ttl"),
		In: c.flag("in"), Expect: c.flag("expect"),
	}
	if text := c.flag("at"); text != "" {
		at, err := c.readTime("at", text)
		if err != nil {
			return err
		}
		d.At = at
	}
	headers, _ := c.cmd.Flags().GetStringArray("header")
	for _, h := range headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usage("--header %q: must be name=value", h)
		}
		if d.Headers == nil {
			d.Headers = map[string]string{}
		}
		d.Headers[name] = value
	}
	if len(c.args) > 1 {
		text := c.args[1]
		if text == "-" {
			in, err := io.ReadAll(io.LimitReader(c.in, mostInput+1))
			switch {
			case err != nil:
				return err
			case len(in) > mostInput:
				return usage("the standard input: must be at most %d bytes", mostInput)
			}
			text = string(in)
		}
		if c.on("raw") {
			d.Base64 = []byte(text)
		} else {
			data, err := checkJSON("data", text)
			if err != nil {
				return err
			}
			d.Data = data
		}
	}
	var out httpapi.Published
	done, err := c.post("/topics/"+url.PathEscape(c.args[0])+"/events", d, &out)
	if done || err != nil {
		return err
	}
	for _, e := range out.Events {
		switch {
		case e.Delayed:
			c.print("%s  comes later", clean(e.ID))
		case e.Version > 0:
			c.print("%s  at %s, version %d", clean(e.ID), clean(e.Position), e.Version)
		default:
			c.print("%s  at %s", clean(e.ID), clean(e.Position))
		}
	}
	return nil
}

// eventLine is an event for people, in one line.
func (c *call) eventLine(e *httpapi.Event) string {
	cells := []string{e.Appended.In(c.zone).Format("2006-01-02 15:04:05.000"), e.Topic}
	for _, text := range []string{e.Key, e.Type} {
		if text != "" {
			cells = append(cells, text)
		}
	}
	switch {
	case e.Data != nil:
		cells = append(cells, string(e.Data))
	case strings.HasPrefix(e.ContentType, "text/"):
		cells = append(cells, string(e.Base64))
	case e.Base64 != nil:
		cells = append(cells, fmt.Sprintf("(%d bytes)", len(e.Base64)))
	}
	return clean(strings.Join(cells, "  "))
}

// printEvent writes one: as a line for people, or its JSON in a line.
func (c *call) printEvent(e *httpapi.Event) error {
	if !c.json {
		c.print("%s", c.eventLine(e))
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return c.printJSON(text)
}

// eventQuery are the flags that choose events.
func (c *call) eventQuery() url.Values {
	query := url.Values{}
	if len(c.args) > 0 {
		query.Set("topic", c.args[0])
	}
	for flag, name := range map[string]string{"key": "key", "key-prefix": "key_prefix", "type": "type", "source": "source"} {
		if text := c.flag(flag); text != "" {
			query.Set(name, text)
		}
	}
	return query
}

// place reads where to begin: words of the API as they are, and times as people write them.
func (c *call) place(flag, text string) (string, error) {
	if text == "start" || text == "end" || strings.HasPrefix(text, "p") { // positions begin with it
		return text, nil
	}
	t, err := c.readTime(flag, text)
	if err != nil {
		return "", usage("%s %q: must be start, end, a time such as 2026-01-31T12:00:00Z or -2h, or a position", flag, text)
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00"), nil
}
