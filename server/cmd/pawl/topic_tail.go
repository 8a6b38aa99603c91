package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// streamAgain is the pause before a stream that has ended is opened again.
const streamAgain = time.Second

func (a *app) topicTailCommand() *cobra.Command {
	cmd := a.verb("tail [PATTERN]", "Print the last events of topics, or those from a place on; as JSON each is a line", counted(0, 1), (*call).topicTail)
	f := cmd.Flags()
	f.String("from", "", "`start`, end, a time or a position, instead of the last ones")
	f.IntP("lines", "n", 10, "`number` of the last events; with --from, events at most")
	f.BoolP("follow", "f", false, "go on with those that come")
	f.Int("limit", 0, "end after so many `events`")
	f.String("key", "", "`key` of the events")
	f.String("key-prefix", "", "`text` that the keys begin with")
	f.String("type", "", "`name` of the type")
	f.String("source", "", "`name` of the source")
	return cmd
}

var errEnough = errors.New("as many events as wanted")

// tail prints events, as many as are wanted.
type tail struct {
	*call
	left int // -1: no bound
}

func (t *tail) print(e *httpapi.Event) error {
	if t.left == 0 {
		return errEnough
	}
	if err := t.printEvent(e); err != nil {
		return err
	}
	if t.left--; t.left == 0 {
		return errEnough
	}
	return nil
}

func (c *call) topicTail() error {
	for _, name := range []string{"lines", "limit"} {
		if c.given(name) && c.number(name) < 0 {
			return usage("--%s %d: must be 0 or more", name, c.number(name))
		}
	}
	t := &tail{c, -1}
	switch {
	case c.given("limit"):
		t.left = c.number("limit")
	case c.given("lines") && c.given("from"):
		t.left = c.number("lines")
	}
	err := t.run()
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (t *tail) run() error {
	query := t.eventQuery()
	var err error
	switch from := t.flag("from"); {
	case from != "":
		if from, err = t.place("--from", from); err == nil {
			err = t.forward(query, from)
		}
	case t.number("lines") == 0:
		query.Set("from", "end")
	default:
		err = t.last(query, t.number("lines"))
	}
	if err != nil || !t.on("follow") {
		return err
	}
	return t.follow(query)
}

// forward prints what there is from a place on, and leaves in the query where it ended.
func (t *tail) forward(query url.Values, from string) error {
	if strings.HasPrefix(from, "p") {
		query.Set("after", from)
	} else {
		query.Set("from", from)
	}
	for {
		var page httpapi.EventList
		if _, err := t.api.get(t.ctx, "/events", query, &page); err != nil {
			return err
		}
		for i := range page.Events {
			if err := t.print(&page.Events[i]); err != nil {
				return err
			}
		}
		if page.Next != "" {
			query.Del("from")
			query.Set("after", page.Next)
		}
		if !page.More {
			return nil
		}
	}
}

// last prints the newest events, the oldest of them first.
func (t *tail) last(query url.Values, n int) error {
	back := url.Values{"order": {"newest"}}
	for name, values := range query {
		back[name] = values
	}
	var list []httpapi.Event
	for more := true; more && len(list) < n; {
		back.Set("limit", strconv.Itoa(min(n-len(list), 1000)))
		var page httpapi.EventList
		if _, err := t.api.get(t.ctx, "/events", back, &page); err != nil {
			return err
		}
		list = append(list, page.Events...)
		back.Set("after", page.Next)
		more = page.More
	}
	query.Set("from", "start") // nothing matched yet
	if len(list) > 0 {
		query.Del("from")
		query.Set("after", list[0].Position)
	}
	slices.Reverse(list)
	for i := range list {
		if err := t.print(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// follow prints what comes. A stream that ends is opened again where it was.
func (t *tail) follow(query url.Values) error {
	for {
		err := t.api.events(t.ctx, query, func(position string, data []byte) error {
			query.Del("from")
			query.Set("after", position)
			if len(data) == 0 {
				return nil
			}
			var e httpapi.Event
			if err := json.Unmarshal(data, &e); err != nil {
				return err
			}
			return t.print(&e)
		})
		if err != nil {
			return err
		}
		pause := time.NewTimer(streamAgain)
		select {
		case <-pause.C:
		case <-t.ctx.Done():
			pause.Stop()
			return context.Cause(t.ctx)
		}
	}
}

// events reads a stream of the log until it ends, which is no error.
func (c *client) events(ctx context.Context, query url.Values, each func(position string, data []byte) error) error {
	r, err := c.prepare(ctx, request{method: http.MethodGet, path: "/events/stream", query: query})
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream, application/problem+json")
	answer, err := c.http.Do(r)
	if err != nil {
		return c.failed(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, mostInput))
		p := &httpapi.Problem{}
		if json.Unmarshal(text, p) != nil || p.Status == 0 {
			return unreachable(errors.New(c.where + " is no Pawl server: it answers " + answer.Status))
		}
		return p
	}
	lines := bufio.NewReader(answer.Body)
	var position string
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return nil // it is opened again
		}
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && position != "":
			if err := each(position, data); err != nil {
				return err
			}
			position, data = "", nil
		case string(field) == "id":
			position = string(value)
		case string(field) == "data":
			data = value
		}
	}
}
