package httpapi

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/stream"
)

// Bounds of a page of events.
const (
	eventChunk = 64      // rows that are read at once
	eventRows  = 1000    // that are visited for a page
	eventBytes = 8 << 20 // of data, after which a page ends
)

// topicEvents adds the routes of events.
func (a *api) topicEvents() {
	route(a, operation{
		method: http.MethodGet, path: "/events", id: "list-events", tag: "topics", role: auth.Viewer,
		summary: "Read events in their order, from a position, a time or the start, or the newest first",
	}, a.listEvents)
	route(a, operation{
		method: http.MethodGet, path: "/events/stream", id: "follow-events", tag: "topics", role: auth.Viewer,
		summary: "Follow events as they come",
	}, a.followEvents)
	a.describeStream()
}

// EventFilter chooses events.
type EventFilter struct {
	Topic     string `query:"topic" json:"topic,omitempty" maxLength:"255" doc:"a topic, or a pattern of topics: orders.*, orders.>"`
	Key       string `query:"key" json:"key,omitempty" maxLength:"255"`
	KeyPrefix string `query:"key_prefix" json:"key_prefix,omitempty" maxLength:"255"`
	Type      string `query:"type" json:"type,omitempty" maxLength:"255"`
	Source    string `query:"source" json:"source,omitempty" maxLength:"255"`
}

func (f *EventFilter) of() stream.Filter {
	return stream.Filter{Topic: f.Topic, Key: f.Key, KeyPrefix: f.KeyPrefix, Type: f.Type, Source: f.Source}
}

// Event is an event of the log.
type Event struct {
	Position    string            `json:"position" doc:"its place in the log: what comes after it is read with after"`
	ID          string            `json:"id"`
	Topic       string            `json:"topic"`
	Key         string            `json:"key,omitempty"`
	Type        string            `json:"type,omitempty"`
	Source      string            `json:"source,omitempty"`
	Time        time.Time         `json:"time" doc:"when it happened"`
	Appended    time.Time         `json:"appended" doc:"when the log took it, by the store's clock"`
	Expires     time.Time         `json:"expires,omitzero"`
	Version     int64             `json:"version,omitempty" doc:"of its key, on versioned topics"`
	Schema      int               `json:"schema,omitempty" doc:"version of its type"`
	ContentType string            `json:"content_type,omitempty"`
	Correlation string            `json:"correlation,omitempty"`
	Causation   string            `json:"causation,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Data        json.RawMessage   `json:"data,omitempty" doc:"where the content type is JSON, and the data is"`
	Base64      []byte            `json:"data_base64,omitempty" doc:"where it is not"`
}

// eventOf is an event for somebody: without data and headers where payloads are hidden.
func eventOf(e *stream.Event, hidden bool) Event {
	w := Event{
		Position: e.Position.String(), ID: e.ID, Topic: e.Topic, Key: e.Key, Type: e.Type, Source: e.Source, Time: e.Time, Appended: e.Appended,
		Expires: e.Expires, Version: e.Version, Schema: e.Schema, ContentType: e.ContentType, Correlation: e.Correlation, Causation: e.Causation,
	}
	if hidden {
		return w
	}
	w.Headers = e.Headers
	if isJSON(e.ContentType) && utf8.Valid(e.Data) && json.Valid(e.Data) {
		w.Data = e.Data
	} else {
		w.Base64 = e.Data
	}
	return w
}

// isJSON reports whether a content type is JSON or made of it.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == stream.JSON || strings.HasSuffix(kind, "+json"))
}

// EventList is one page of events.
type EventList struct {
	Events []Event `json:"events" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"position to go on from, as after; also where there are no more yet"`
	More   bool    `json:"more,omitempty" doc:"there may be more now: a page ends at its limit, after 1,000 rows or after 8 MiB of data"`
}

type eventListInput struct {
	EventFilter
	From  string `query:"from" maxLength:"64" doc:"start, end or a time (RFC 3339) by which events were appended; start without it"`
	After string `query:"after" maxLength:"64" doc:"position: next of the page before, or that of an event"`
	Order string `query:"order" enum:"oldest,newest" default:"oldest" doc:"newest: backwards, from the newest event or from after on"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}

// startOf reads where to begin: from or after, and neither is the default.
func startOf(from, after string, otherwise stream.Start) (stream.Start, error) {
	switch {
	case from != "" && after != "":
		return otherwise, job.Invalid("from", from, "must be without after")
	case after != "":
		at, err := stream.ParsePosition(after)
		return stream.FromPosition(at), err
	case from == "":
		return otherwise, nil
	case from == "start":
		return stream.FromStart(), nil
	case from == "end":
		return stream.FromEnd(), nil
	}
	t, err := time.Parse(time.RFC3339, from)
	if err == nil {
		err = job.CheckTime("from", t)
	}
	if err != nil {
		return otherwise, job.Invalid("from", from, "must be start, end or a time such as 2026-01-31T12:00:00Z")
	}
	return stream.FromTime(t), nil
}

func (a *api) listEvents(ctx context.Context, in *eventListInput) (*body[EventList], error) {
	start, err := startOf(in.From, in.After, stream.FromStart())
	if err != nil {
		return nil, err
	}
	f, back := in.of(), in.Order == "newest"
	if back && in.From != "" {
		return nil, job.Invalid("from", in.From, "must be without order=newest, which goes back from after")
	}
	read := func(n int) (pawl.EventPage, error) { return a.e.EventPage(ctx, f, start, n) }
	if back {
		read = func(n int) (pawl.EventPage, error) {
			at, _ := start.Position()
			return a.e.LastEvents(ctx, f, at, n)
		}
	}
	out := EventList{Events: []Event{}}
	hidden, size := auth.From(ctx).Hidden, 0
	for visited := 0; ; {
		page, err := read(min(eventChunk, eventRows-visited))
		if err != nil {
			return nil, err
		}
		for i := range page.Events {
			e := &page.Events[i]
			out.Events, size = append(out.Events, eventOf(e, hidden)), size+len(e.Data)
			if len(out.Events) == in.Limit || size > eventBytes {
				last := i == len(page.Events)-1
				if page.Next = e.Position; back {
					page.Next = stream.At(e.Position.Epoch(), e.Position.Seq()-1)
				}
				out.Next, out.More = page.Next.String(), page.More || !last
				return answer(out), nil
			}
		}
		visited += page.Visited
		out.Next, out.More = page.Next.String(), page.More
		if !page.More || visited >= eventRows {
			return answer(out), nil
		}
		start = stream.FromPosition(page.Next)
	}
}
