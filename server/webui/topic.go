package webui

import (
	"errors"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	events "github.com/pawlwork/pawl/stream"
)

// Bounds of the page of a topic.
const (
	eventsPerPage = 50
	dataInRow     = 160 // runes
)

// topicData is a page of a topic's events, the newest first.
type topicData struct {
	Name   string
	First  bool
	Events []eventRow
	Older  string
	Newest string
	Open   *eventOpen
	Status *topicFacts
}

// topicFacts say what a topic keeps, and where that comes from.
type topicFacts struct {
	pawl.TopicStatus
	KeepFor, KeepCount string // "": all
	SetBy              string
}

// statusOf reads how a topic stands. A store that keeps no more than events says nothing.
func (v *view) statusOf(topic string) (*topicFacts, error) {
	s, err := v.app.e.Topic(topic).Info(v.ctx)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, pawl.ErrNotFound) {
		return nil, nil
	}
	f := &topicFacts{TopicStatus: s, SetBy: s.Settings.By}
	if d := s.Settings.Holds.KeepFor; d > 0 {
		f.KeepFor = d.String()
	}
	if n := s.Settings.Holds.KeepCount; n > 0 {
		f.KeepCount = strconv.Itoa(n)
	}
	return f, err
}

// eventRow is an event in the list.
type eventRow struct {
	*events.Event
	Link   string
	IsOpen bool
	Text   template.HTML
}

// eventOpen is the event that is looked at.
type eventOpen struct {
	*events.Event
	Payload template.HTML
	Size    int
	Cut     bool
	Raw     bool
	RawLink string
	AllLink string
	Close   string
	Names   []string // of headers, sorted
	Letter  string   // the group whose dead letter it is
	Hidden  bool
}

func loadTopic(v *view) (any, error) {
	d := &topicData{Name: v.params["topic"]}
	if err := events.CheckTopic("topic", d.Name); err != nil {
		return nil, err
	}
	v.Title, v.Crumb = plain(d.Name, 80), []anchor{{"Streams", v.app.link("/streams")}}
	after, err := events.ParsePosition(v.query.Get("after"))
	if err != nil {
		return nil, err
	}
	d.First = after.IsZero()
	page, err := v.app.e.LastEvents(v.ctx, events.Filter{Topic: d.Name}, after, eventsPerPage)
	if err != nil {
		return nil, err
	}
	if page.More {
		d.Older = v.With("after", page.Next, "open", "")
	}
	if d.Newest = v.With("after", "", "open", ""); len(page.Events) == 0 && d.First {
		list, err := v.app.e.Topics(v.ctx, d.Name, "", 1)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, job.NotFound("topic", d.Name)
		}
	}
	if d.Status, err = v.statusOf(d.Name); err != nil {
		return nil, err
	}
	open := v.query.Get("open")
	for i := range page.Events {
		e := &page.Events[i]
		r := eventRow{Event: e, Link: v.with("open", e.Position, "raw", "", "whole", "") + "#event", Text: v.inRow(e)}
		r.IsOpen = e.Position.String() == open
		d.Events = append(d.Events, r)
	}
	if open != "" && !v.live {
		d.Open, err = v.openEvent(d.Name, open)
	}
	return d, err
}

func loadTopicRows(v *view) (any, error) { return v.data, nil }

// inRow is the beginning of an event's data.
func (v *view) inRow(e *events.Event) template.HTML {
	switch {
	case v.Hidden():
		return `<span class="muted">hidden</span>`
	case len(e.Data) == 0:
		return `<span class="zero">–</span>`
	case !utf8.Valid(e.Data):
		return template.HTML(`<span class="muted">` + bytesText(len(e.Data)) + `</span>`)
	}
	return show(string(e.Data), dataInRow)
}

// openEvent reads the event at a position.
func (v *view) openEvent(topic, position string) (*eventOpen, error) {
	at, err := events.ParsePosition(position)
	if err != nil {
		return nil, err
	}
	page, err := v.app.e.LastEvents(v.ctx, events.Filter{Topic: topic}, at, 1)
	if err != nil {
		return nil, err
	}
	if len(page.Events) == 0 || !page.Events[0].Position.Equal(at) {
		return nil, job.NotFound("event of "+topic+" at", position)
	}
	e := &page.Events[0]
	o := &eventOpen{Event: e, Size: len(e.Data), Raw: v.query.Get("raw") != "", Close: v.with("open", "", "raw", "", "whole", ""), Hidden: v.Hidden()}
	if o.Hidden {
		return o, nil
	}
	o.Names = slices.Sorted(maps.Keys(e.Headers))
	if o.Letter, err = v.letterOf(e); err != nil {
		return nil, err
	}
	most := payloadShown
	if v.query.Get("whole") != "" {
		most = 8 << 20
	}
	o.AllLink = v.with("whole", "1") + "#event"
	if o.Raw {
		o.RawLink = v.with("raw", "") + "#event"
		o.Payload, o.Cut = showBlock(string(e.Data[:min(len(e.Data), most)]), most), len(e.Data) > most
	} else {
		o.RawLink = v.with("raw", "1") + "#event"
		o.Payload, o.Cut, _ = pretty(e.Data, most, "")
	}
	return o, nil
}

// Expired says whether the time of an event is over.
func (o *eventOpen) Expired(now time.Time) bool { return o.Event.Expired(now) }
