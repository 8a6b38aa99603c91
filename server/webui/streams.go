package webui

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl"
	events "github.com/pawlwork/pawl/stream"
)

// streamsPages are the topics with the groups and cursors, and one topic.
var streamsPages = []page{
	{
		path: "/streams", name: "streams", title: "Streams", load: loadStreams, nav: nav{label: "Streams", icon: "n-streams", order: 70, key: "e"},
		regions: []region{
			{name: "streams-lead", every: 2 * time.Second, fails: "Cursors", load: loadStreamsLead},
			{name: "stream-waits", every: 2 * time.Second, fails: "What readers wait for", load: loadStreamWaits},
			{name: "stream-topics", every: 2 * time.Second, fails: "Topics"},
			{name: "stream-groups", every: 2 * time.Second, fails: "Groups", load: loadStreamGroups},
			{name: "stream-cursors", every: 2 * time.Second, fails: "Cursors", load: loadCursors},
		},
	},
	{
		path: "/streams/{topic}", name: "topic", title: "Topic", under: "streams", load: loadTopic,
		regions: []region{
			{name: "topic-rows", tag: "tbody", attrs: `role="rowgroup"`, every: time.Second, fails: "Events", load: loadTopicRows},
		},
	},
}

// Bounds of the pages.
const (
	topicsPerPage  = 50
	cursorsPerPage = 25
)

// streamsData is a page of topics.
type streamsData struct {
	Pattern string
	Wrong   string // what is wrong with it
	Topics  []pawl.TopicInfo
	Next    string // link to the next page
	First   bool
}

func loadStreams(v *view) (any, error) {
	d := &streamsData{Pattern: v.query.Get("topic"), First: v.query.Get("after") == ""}
	list, err := cached(v, "topics\n"+d.Pattern+"\n"+v.query.Get("after"), time.Second, func(ctx context.Context) ([]pawl.TopicInfo, error) {
		return v.app.e.Topics(ctx, d.Pattern, v.query.Get("after"), topicsPerPage)
	})
	switch {
	case errors.Is(err, pawl.ErrInvalid):
		d.Wrong = v.app.faultOf(v.ctx, err).Text
		return d, nil
	case err != nil:
		return nil, err
	}
	if d.Topics = list; len(list) == topicsPerPage {
		d.Next = v.With("after", list[len(list)-1].Name)
	}
	return d, nil
}

// waitsShown is how old a transaction is that readers are said to wait for: most end within moments.
const waitsShown = 3 * time.Second

// streamWaits is the transaction that readers wait for, and how many more there are.
type streamWaits struct {
	First pawl.EventHolder
	More  int
}

// Waits says whether there is one.
func (w *streamWaits) Waits() bool { return w.First != pawl.EventHolder{} }

// loadStreamWaits reads which transactions have published, and are open for long.
func loadStreamWaits(v *view) (any, error) {
	list, err := cached(v, "event holders", 2*time.Second, v.app.e.WhyBehind)
	if err != nil {
		return nil, err
	}
	d := &streamWaits{}
	for i := range list {
		switch {
		case !list[i].Prepared && list[i].Age < waitsShown:
		case !d.Waits():
			d.First = list[i]
		default:
			d.More++
		}
	}
	return d, nil
}

// cursorRow is a cursor, and what is left of its events.
type cursorRow struct {
	pawl.CursorInfo
	pawl.CursorLeft
	Elsewhere bool // its position is of another life of the log
}

// Late says whether its next event has waited for longer than one that keeps up lets it wait.
func (r *cursorRow) Late(now time.Time) bool {
	const keepsUp = 10 * time.Second
	return !r.CaughtUp && (r.Elsewhere || now.Sub(r.Next) > keepsUp || now.Sub(r.Moved) > keepsUp)
}

// Held says whether a worker holds it now.
func (r *cursorRow) Held(now time.Time) bool { return r.Until.After(now) }

// Narrow reports whether it reads less than the events of its topics.
func (r *cursorRow) Narrow() bool {
	f := r.Filter
	f.Topic = ""
	return f != events.Filter{}
}

type cursorsData struct {
	Rows []cursorRow
	Next string
}

// streamsLead is what the page says first.
type streamsLead struct {
	Topics  int
	More    bool // there are more than are shown
	Newest  time.Time
	Cursors int
	Others  bool        // there are more
	Late    []cursorRow // that are behind
}

func loadStreamsLead(v *view) (any, error) {
	d := v.data.(*streamsData)
	c, err := loadCursors(v)
	if err != nil {
		return nil, err
	}
	cursors := c.(*cursorsData)
	l := streamsLead{Topics: len(d.Topics), More: d.Next != "" || !d.First, Cursors: len(cursors.Rows), Others: cursors.Next != "" || v.query.Get("cursor") != ""}
	for i := range d.Topics {
		if d.Topics[i].Newest.After(l.Newest) {
			l.Newest = d.Topics[i].Newest
		}
	}
	for i := range cursors.Rows {
		if cursors.Rows[i].Late(v.Now) {
			l.Late = append(l.Late, cursors.Rows[i])
		}
	}
	return l, nil
}

// loadCursors reads cursors, and of each whether it is behind: no more than 100 events are looked at for it.
func loadCursors(v *view) (any, error) {
	after := v.query.Get("cursor")
	d := &cursorsData{}
	rows, err := cached(v, "cursors\n"+after, 2*time.Second, func(ctx context.Context) (rows []cursorRow, err error) {
		list, err := v.app.e.Cursors(ctx, after, cursorsPerPage)
		if err != nil {
			return nil, err
		}
		for i := range list {
			r := cursorRow{CursorInfo: list[i]}
			r.CursorLeft, err = v.app.e.CursorLeft(ctx, &list[i])
			if r.Elsewhere = errors.Is(err, pawl.ErrPosition); err != nil && !r.Elsewhere {
				return nil, err
			}
			rows = append(rows, r)
		}
		return rows, nil
	})
	if err != nil {
		return nil, err
	}
	if d.Rows = rows; len(rows) == cursorsPerPage {
		d.Next = v.With("cursor", rows[len(rows)-1].Name)
	}
	return d, nil
}
