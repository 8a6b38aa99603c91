package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/stream"
)

// streamChunk is how many events are read at once for one who follows.
const streamChunk = 100

const followText = "Server-sent events. Each event of the log is one: its id is the position, its name is event, its data an Event. " +
	"Who comes back with the id of the last one as Last-Event-ID goes on behind it: the log keeps events, so that who was away or too slow " +
	"misses none of those that are kept. Comments come every 5 seconds, some with an id alone: so far nothing matched. A stream ends after " +
	"ten minutes at the latest, and for a reader who takes longer than 10 seconds for what is sent."

// describeStream says in the document what a stream of the log consists of.
func (a *api) describeStream() {
	document := a.huma.OpenAPI()
	one := &huma.Schema{Type: huma.TypeObject, Required: []string{"id", "event", "data"}, Properties: map[string]*huma.Schema{
		"id":    {Type: huma.TypeString, Description: "the position, for Last-Event-ID"},
		"event": {Type: huma.TypeString, Enum: []any{"event"}},
		"data":  document.Components.Schemas.Schema(reflect.TypeFor[Event](), true, ""),
	}}
	document.Paths[Prefix+"/events/stream"].Get.Responses["200"] = &huma.Response{
		Description: "a stream of events",
		Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: &huma.Schema{Type: huma.TypeArray, Description: followText, Items: one},
		}},
	}
}

type followInput struct {
	EventFilter
	From  string `query:"from" maxLength:"64" doc:"start, end or a time (RFC 3339) by which events were appended; end without it"`
	After string `query:"after" maxLength:"64" doc:"position to begin behind"`
	Last  string `header:"Last-Event-ID" maxLength:"64" doc:"position of the last event that was seen: it goes before the others"`
}

// followEvents begins a stream. What is wrong is answered before it begins.
func (a *api) followEvents(ctx context.Context, in *followInput) (*huma.StreamResponse, error) {
	if in.Last != "" {
		in.From, in.After = "", in.Last
	}
	start, err := startOf(in.From, in.After, stream.FromEnd())
	if err != nil {
		return nil, err
	}
	if a.open.open.Add(1) > a.open.most {
		a.open.open.Add(-1)
		return nil, newProblem(http.StatusTooManyRequests, "too-many-requests", "there are as many streams open as this server serves: try again later")
	}
	c, err := a.e.Cursor(ctx, "", in.of(), pawl.StartAt(start))
	if err == nil {
		_, err = a.e.EventPage(ctx, in.of(), stream.FromPosition(c.Position()), 1) // a position that is not of this log is told now
	}
	if err != nil {
		a.open.open.Add(-1)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer a.open.open.Add(-1)
		r, out := humago.Unwrap(ctx)
		out.Header().Set("Content-Type", "text/event-stream")
		if r.Method != http.MethodHead {
			a.sendEvents(r.Context(), out, c, auth.From(ctx.Context()).Hidden)
		}
	}}, nil
}

// sendEvents sends what the cursor reads, until the reader leaves, is too slow, or its time is over.
func (a *api) sendEvents(ctx context.Context, out http.ResponseWriter, c *pawl.Cursor, hidden bool) {
	control := http.NewResponseController(out)
	_ = control.SetReadDeadline(time.Time{}) // nothing more is read
	out.Header().Set("X-Accel-Buffering", "no")
	out.Header().Set("Connection", "close")
	write := func(frame []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := out.Write(frame)
		return err == nil
	}
	defer func() { _ = control.SetWriteDeadline(time.Now().Add(writeTime)) }() // for the end of the body
	out.WriteHeader(http.StatusOK)
	if !write([]byte("retry: 2000\n\n")) || control.Flush() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, streamLife)
	defer cancel()
	told := c.Position()
	for ctx.Err() == nil {
		b, err := c.Poll(ctx, streamChunk)
		if err != nil {
			if !errors.Is(err, pawl.ErrClosed) && ctx.Err() == nil {
				a.log.WarnContext(ctx, "a stream of events ended: the log could not be read", "error", err)
			}
			return
		}
		for i := range b.Events {
			e := &b.Events[i]
			text, err := json.Marshal(eventOf(e, hidden))
			if err != nil || !write(fmt.Appendf(nil, "id: %s\nevent: event\ndata: %s\n\n", e.Position, text)) {
				return
			}
			told = e.Position
		}
		if !b.Empty() {
			if control.Flush() != nil {
				return
			}
			continue
		}
		quiet, stop := context.WithTimeout(ctx, heartbeat)
		err = c.Wait(quiet)
		stop()
		if err == nil || ctx.Err() != nil {
			continue
		}
		beat := []byte(":\n\n")
		if !b.Position().Equal(told) && !b.Position().IsZero() {
			told = b.Position()
			beat = fmt.Appendf(nil, ":\nid: %s\n\n", told)
		}
		if quiet.Err() == nil || !write(beat) || control.Flush() != nil { // the engine has ended, or the reader has gone
			return
		}
	}
}
