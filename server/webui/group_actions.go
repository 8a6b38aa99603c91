package webui

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	events "github.com/pawlwork/pawl/stream"
)

// groupActions are done to a group: the field name says which.
var groupActions = []action{
	{noun: "group", verb: "pause", role: auth.Operator, label: "Pause", do: pauseGroup},
	{noun: "group", verb: "resume", role: auth.Operator, label: "Resume", do: resumeGroup},
	{noun: "group", verb: "seek", role: auth.Operator, label: "Seek…", ask: askSeekGroup, do: seekGroup},
	{noun: "group", verb: "delete", role: auth.Operator, label: "Delete…", class: "bad", ask: askDeleteGroup, do: deleteGroup},
	{noun: "group", verb: "replay", role: auth.Operator, label: "Replay", class: "s", do: replayOne},
	{noun: "group", verb: "replay-all", role: auth.Operator, label: "Replay all…", ask: askReplayAll, do: replayAll},
	{noun: "group", verb: "replay-letter", role: auth.Operator, label: "Replay", class: "s", do: replayLetter},
}

// theGroup is the one that an action is about.
func (a *act) theGroup() (pawl.Group, pawl.GroupInfo, error) {
	g := a.app.e.Group(a.whose())
	if err := job.CheckText("group", g.Name(), 1, events.MaxText); err != nil {
		return g, pawl.GroupInfo{}, err
	}
	info, err := g.Info(a.ctx)
	return g, info, err
}

func pauseGroup(a *act) (*outcome, error) {
	g, info, err := a.theGroup()
	switch {
	case err != nil:
		return nil, err
	case info.Paused:
		return &outcome{Text: "Nothing changed: " + plain(g.Name(), 60) + " is paused already."}, nil
	}
	if err := g.Pause(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(g.Name(), 60) + " is paused. What is being handled ends; no more events are taken.",
		Undo: queueCall("group", "resume", g.Name())}, nil
}

func resumeGroup(a *act) (*outcome, error) {
	g, info, err := a.theGroup()
	switch {
	case err != nil:
		return nil, err
	case !info.Paused:
		return &outcome{Text: "Nothing changed: " + plain(g.Name(), 60) + " is not paused."}, nil
	}
	if err := g.Resume(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(g.Name(), 60) + " takes events again.", Undo: queueCall("group", "pause", g.Name())}, nil
}

func askSeekGroup(a *act) (*dialog, error) {
	g, info, err := a.theGroup()
	if err != nil {
		return nil, err
	}
	value := "end"
	if a.form.Has("to") {
		value = a.get("to")
	}
	d := &dialog{
		Title: "Put " + plain(g.Name(), 80) + " somewhere else?",
		Text: "Its members begin anew there: what lies before is not read, and what lies behind is read, also a second time. " +
			"What they have in hand may be handled twice. What is parked stays.",
		Fields: []field{{Name: "to", Label: "Where to", Value: value, Hint: "start, end, a time such as 2026-01-31T12:00:00Z, or a position."}},
		Note:   "optional", Button: "Put it there", Bad: true,
	}
	if info.Waiting > 0 {
		d.Facts = []fact{{"Forgotten", plural(upTo(info.Waiting), "event that waits to be tried again", "events that wait to be tried again")}}
	}
	return d, nil
}

func seekGroup(a *act) (*outcome, error) {
	text := strings.TrimSpace(a.get("to"))
	to, ok := readStart(text)
	if !ok {
		return nil, &fault{http.StatusUnprocessableEntity, "Nothing changed.",
			"It cannot be put at " + plain(text, 60) + ". Allowed: start, end, a time such as 2026-01-31T12:00:00Z, or a position."}
	}
	g, _, err := a.theGroup()
	if err != nil {
		return nil, err
	}
	if err := g.Seek(a.ctx, to); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(g.Name(), 60) + " is at " + plain(text, 60) + " now."}, nil
}

func askDeleteGroup(a *act) (*dialog, error) {
	g, info, err := a.theGroup()
	if err != nil {
		return nil, err
	}
	d := &dialog{
		Title: "Delete " + plain(g.Name(), 80) + " for good?",
		Text:  "How far it has read is forgotten. Members that run make it anew, from where their code says.",
		Note:  "optional", Button: "Delete the group", Bad: true,
	}
	if info.Parked > 0 {
		d.Facts = []fact{{"Forgotten too", plural(upTo(info.Parked), "parked event", "parked events")}}
	}
	return a.typed(d, info.Parked), nil
}

func deleteGroup(a *act) (*outcome, error) {
	g, info, err := a.theGroup()
	if err == nil {
		err = a.typedRight(info.Parked)
	}
	if err == nil {
		err = g.Delete(a.ctx)
	}
	if err != nil {
		return nil, err
	}
	return &outcome{Text: plain(g.Name(), 60) + " is deleted.", Goto: a.app.link("/streams")}, nil
}

// typed lets a dialog about many events ask for their number, and for a note.
func (a *act) typed(d *dialog, n int) *dialog {
	if n > typedOver {
		d.Type, d.Note = strconv.Itoa(n), "required"
	}
	return d
}

// typedRight wants the number that was typed, and a note, where there are many.
func (a *act) typedRight(n int) error {
	if n <= typedOver {
		return nil
	}
	typed, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(a.get("typed")), ",", ""))
	if err != nil || typed < n*9/10 || typed > n*11/10 { // they come and go meanwhile
		return &fault{http.StatusUnprocessableEntity, "Not confirmed.", fmt.Sprintf("Type %d: so many events are meant now.", n)}
	}
	if strings.TrimSpace(a.get("note")) == "" {
		return &fault{http.StatusUnprocessableEntity, "Not confirmed.", fmt.Sprintf("Over %d events need a note for the audit log.", typedOver)}
	}
	return nil
}

func askReplayAll(a *act) (*dialog, error) {
	g, info, err := a.theGroup()
	if err != nil {
		return nil, err
	}
	if info.Parked == 0 {
		return &dialog{Title: "Nothing is parked.", Text: plain(g.Name(), 80) + " has given up no event that it has not got again."}, nil
	}
	n := plural(upTo(info.Parked), "parked event", "parked events")
	d := &dialog{
		Title: "Replay " + n + "?", Text: plain(g.Name(), 80) + " gets them again, as if they had never failed. Other groups do not.",
		Note: "optional", Button: "Replay " + plural(upTo(info.Parked), "event", "events"),
	}
	if info.Members == 0 {
		d.Facts = []fact{{"Beware", "no process is a member: they wait until one is"}}
	}
	return a.typed(d, info.Parked), nil
}

// replayAll replays in calls of a bound each, up to as many as were counted.
func replayAll(a *act) (*outcome, error) {
	g, info, err := a.theGroup()
	if err == nil {
		err = a.typedRight(info.Parked)
	}
	if err != nil {
		return nil, err
	}
	var all pawl.ReplayReply
	for range store.MaxGroupCount/store.MaxReplay + 1 {
		r, err := g.Replay(a.ctx)
		if err != nil && all.Replayed == 0 {
			return nil, err
		}
		all.Replayed, all.Gone, all.More = all.Replayed+r.Replayed, r.Gone, r.More || err != nil
		if !r.More || r.Replayed == 0 || err != nil {
			break
		}
	}
	return replayed(g, all), nil
}

// replayed says what came of it.
func replayed(g pawl.Group, r pawl.ReplayReply) *outcome {
	out := &outcome{Text: "Replayed " + plural(exactly(r.Replayed), "event", "events") + ": " + plain(g.Name(), 60) + " gets " +
		verb(r.Replayed, "it", "them") + " again."}
	if r.Replayed == 0 {
		out.Text = "Nothing changed: no such event is parked any more."
	}
	if r.Gone > 0 {
		out.More = count(r.Gone) + verb(r.Gone, " is", " are") + " not in the log any more, and cannot be replayed."
	}
	if r.More {
		out.More = strings.TrimSpace(out.More + " There are more: replay again.")
	}
	return out
}

func replayOne(a *act) (*outcome, error) {
	at, err := events.ParsePosition(a.get("position"))
	if err == nil && at.IsZero() {
		err = job.Invalid("position", "", "must be that of an event")
	}
	if err != nil {
		return nil, err
	}
	g := a.app.e.Group(a.whose())
	r, err := g.Replay(a.ctx, at)
	if err != nil {
		return nil, err
	}
	return replayed(g, r), nil
}

// replayLetter replays the event that a dead letter on a topic names.
func replayLetter(a *act) (*outcome, error) {
	o, err := a.openEvent(a.get("topic"), a.get("position"))
	if err != nil {
		return nil, err
	}
	g := a.app.e.Group(a.whose())
	r, err := g.ReplayLetters(a.ctx, *o.Event)
	if err != nil {
		return nil, err
	}
	out := replayed(g, r)
	if r.Replayed == 0 && r.Gone == 0 {
		out.Text = "Nothing changed: it waits for " + plain(g.Name(), 60) + " already."
	}
	return out, nil
}

// letterOf is the group whose dead letter an event is; empty where it is none, or there is no such group.
func (v *view) letterOf(e *events.Event) (string, error) {
	name := e.Headers[events.DeadGroup]
	if name == "" || job.CheckText("group", name, 1, events.MaxText) != nil {
		return "", nil
	}
	_, err := v.app.e.Group(name).Members(v.ctx, 0, 1)
	if errors.Is(err, pawl.ErrNotFound) {
		return "", nil
	}
	return name, err
}
