package webui

import (
	"encoding/json"
	"net/http"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// queueActions are done to a queue, a kind or everything: the field name says which.
var queueActions = []action{
	{noun: "queue", verb: "pause", role: auth.Operator, label: "Pause", key: "p", do: pauseQueue},
	{noun: "queue", verb: "resume", role: auth.Operator, label: "Resume", key: "p", do: resumeQueue},
	{noun: "queue", verb: "note", role: auth.Operator, label: "Add a note…", ask: askNote, do: noteQueue},
	{noun: "queue", verb: "reset", role: auth.Operator, label: "Reset…", ask: askCoolDown, do: resetCoolDown},
	{noun: "queue", verb: "set", role: auth.Operator, label: "Save", class: "pri", ask: askQueueSetting, do: setQueue},
	{noun: "queue", verb: "back", role: auth.Operator, label: "Set back", class: "s quiet", do: setQueueBack},
	{noun: "kind", verb: "pause", role: auth.Operator, label: "Pause kind", class: "s quiet", do: pauseKind},
	{noun: "kind", verb: "resume", role: auth.Operator, label: "Resume kind", class: "s", do: resumeKind},
	{noun: "queue", verb: "freeze", role: auth.Admin, label: "Freeze everything…", class: "bad", ask: askFreeze, do: freeze},
	{noun: "queue", verb: "unfreeze", role: auth.Admin, label: "Unfreeze", class: "s", do: unfreeze},
}

// whose is the field name, of a queue or kind.
func (a *act) whose() string { return a.get("name") }

// queueCall is an action of a queue for Undo.
func queueCall(noun, verb, name string) *call {
	return &call{Noun: noun, Verb: verb, Fields: map[string]string{"name": name}}
}

// theQueue reads how the queue stands.
func (a *act) theQueue() (pawl.QueueState, error) {
	if err := job.CheckName("queue", a.whose()); err != nil {
		return pawl.QueueState{}, err
	}
	states, err := a.app.e.Queues(a.ctx, a.whose())
	if err != nil || len(states) != 1 {
		return pawl.QueueState{Name: a.whose()}, err
	}
	return states[0], nil
}

func pauseQueue(a *act) (*outcome, error) {
	q, err := a.theQueue()
	if err != nil {
		return nil, err
	}
	if q.Pause != nil && q.Pause.Scope == job.PauseQueue {
		return &outcome{Text: "Nothing changed: " + plain(q.Name, 60) + " is paused already."}, nil
	}
	if err := a.app.e.Queue(q.Name).Pause(a.ctx); err != nil {
		return nil, err
	}
	out := &outcome{Text: plain(q.Name, 60) + " is paused. " + finish(q.Running) + "Nothing new starts.",
		Undo: queueCall("queue", "resume", q.Name)}
	if a.get("note") == "" {
		out.Link = anchor{"Say why, for the audit log", a.app.link("/ask/queue/note", "name", q.Name, "back", a.app.back(a.get("back")))}
	}
	return out, nil
}

// finish says that what runs goes on.
func finish(running pawl.Counted) string {
	if running.Jobs == 0 {
		return ""
	}
	return plural(running, "running job finishes. ", "running jobs finish. ")
}

func resumeQueue(a *act) (*outcome, error) {
	q, err := a.theQueue()
	if err != nil {
		return nil, err
	}
	if q.Pause == nil || q.Pause.Scope != job.PauseQueue {
		return &outcome{Text: "Nothing changed: " + plain(q.Name, 60) + " is not paused."}, nil
	}
	if err := a.app.e.Queue(q.Name).Resume(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(q.Name, 60) + " starts jobs again.", Undo: queueCall("queue", "pause", q.Name)}, nil
}

func askNote(a *act) (*dialog, error) {
	return &dialog{Title: "Why is " + plain(a.whose(), 80) + " paused?",
		Text: "It stays paused. The note is in the audit log, beside your name.", Note: "required", Button: "Add the note"}, nil
}

// noteQueue pauses once more: that changes nothing but the audit log, which has the note.
func noteQueue(a *act) (*outcome, error) {
	q, err := a.theQueue()
	switch {
	case err != nil:
		return nil, err
	case q.Pause == nil || q.Pause.Scope != job.PauseQueue:
		return &outcome{Text: "Nothing changed: " + plain(q.Name, 60) + " is not paused any more."}, nil
	}
	if err := a.app.e.Queue(q.Name).Pause(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "The note is in the audit log."}, nil
}

func askCoolDown(a *act) (*dialog, error) {
	q, err := a.theQueue()
	if err != nil {
		return nil, err
	}
	if q.CoolDown == nil {
		return &dialog{Title: plain(q.Name, 80) + " does not cool down.", Text: "It starts jobs already."}, nil
	}
	times := "once"
	if n := q.CoolDown.Throttles; n > 1 {
		times = count(n) + " times"
	}
	return &dialog{
		Title: "Let " + plain(q.Name, 80) + " start at once?", Text: "It was throttled " + times + "; the next throttle counts from 1.",
		Note: "optional", Button: "Start at once",
	}, nil
}

func resetCoolDown(a *act) (*outcome, error) {
	if err := a.app.e.Queue(a.whose()).ResetCoolDown(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(a.whose(), 60) + " starts again."}, nil
}

func pauseKind(a *act) (*outcome, error) {
	if err := a.app.e.Kind(a.whose()).Pause(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "Kind " + plain(a.whose(), 60) + " is paused in every queue. Running jobs finish.",
		Undo: queueCall("kind", "resume", a.whose())}, nil
}

func resumeKind(a *act) (*outcome, error) {
	if err := a.app.e.Kind(a.whose()).Resume(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "Jobs of kind " + plain(a.whose(), 60) + " start again.", Undo: queueCall("kind", "pause", a.whose())}, nil
}

func askFreeze(a *act) (*dialog, error) {
	l, err := a.look()
	if err != nil {
		return nil, err
	}
	if l.Frozen != nil {
		return &dialog{Title: "Everything is frozen already.", Text: "No job starts on any queue until somebody unfreezes."}, nil
	}
	return &dialog{
		Title: "Freeze everything?", Text: "No job starts on any queue until you unfreeze. " + finish(l.Running),
		Type: "freeze", Note: "required", Button: "Freeze everything", Bad: true,
	}, nil
}

func freeze(a *act) (*outcome, error) {
	if a.get("typed") != "freeze" {
		return nil, &fault{http.StatusUnprocessableEntity, "Nothing changed.", "Type freeze to confirm."}
	}
	if a.get("note") == "" {
		return nil, &fault{http.StatusUnprocessableEntity, "Nothing changed.", "Say why: the note is for the audit log."}
	}
	if err := a.app.e.Freeze(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "Everything is frozen. No job starts on any queue."}, nil
}

func unfreeze(a *act) (*outcome, error) {
	if err := a.app.e.Unfreeze(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "Jobs start again, but for what is paused by itself."}, nil
}

// before is what was set for a queue, and what holds.
func (a *act) before() (f *queueField, own bool, is, declared job.QueueSettings, err error) {
	if f, err = queueFieldOf(a.get("field")); err != nil {
		return f, own, is, declared, err
	}
	if err = job.CheckName("queue", a.whose()); err != nil {
		return f, own, is, declared, err
	}
	reply, err := a.app.e.Store().Settings(a.ctx)
	if err != nil {
		return f, own, is, declared, err
	}
	all := store.Resolve(reply)
	holds, _ := all.Queue(a.whose())
	_ = json.Unmarshal(holds.Value, &is)
	_ = json.Unmarshal(holds.Declared, &declared)
	override, _ := overridesOf(&reply, a.whose())
	return f, override != nil && hasField(override.Value, f.name), is, declared, nil
}

func askQueueSetting(a *act) (*dialog, error) {
	f, _, is, declared, err := a.before()
	if err != nil {
		return nil, err
	}
	value := f.exact(&is)
	if a.form.Has("value") {
		value = a.get("value")
	}
	return &dialog{
		Title: "Change " + lowerFirst(f.text) + " of " + plain(a.whose(), 80) + "?", Text: "Code declares " + f.show(&declared) +
			". What you set holds in the whole cluster until it is set back.",
		Fields: []field{{Name: "value", Label: f.text, Value: value, Hint: "Allowed: " + f.bounds + "."}}, Note: "optional", Button: "Save",
	}, nil
}

func setQueue(a *act) (*outcome, error) {
	f, own, is, _, err := a.before()
	if err != nil {
		return nil, err
	}
	s, err := f.read(a.get("value"))
	if err != nil {
		return nil, err
	}
	if err := a.app.e.Queue(a.whose()).Set(a.ctx, s); err != nil {
		return nil, err
	}
	out := &outcome{Text: f.text + " of " + plain(a.whose(), 60) + " is " + f.show(&s) + " now.", Undo: queueCall("queue", "back", a.whose())}
	out.Undo.Fields["field"] = f.name
	if own {
		out.Undo.Verb, out.Undo.Fields["value"] = "set", f.exact(&is)
	}
	if a.form.Has("close") { // the form is
		out.Goto = a.app.back(a.get("back"))
	}
	return out, nil
}

func setQueueBack(a *act) (*outcome, error) {
	f, own, is, _, err := a.before()
	if err != nil {
		return nil, err
	}
	if !own {
		return &outcome{Text: "Nothing changed: " + lowerFirst(f.text) + " of " + plain(a.whose(), 60) + " was not set."}, nil
	}
	if err := a.app.e.Queue(a.whose()).Reset(a.ctx, f.name); err != nil {
		return nil, err
	}
	_, _, now, declared, err := a.before()
	if err != nil {
		return nil, err
	}
	out := &outcome{Text: f.text + " is " + f.show(&now) + " again", Undo: queueCall("queue", "set", a.whose())}
	if f.show(&now) == f.show(&declared) {
		out.Text += ", as code declares"
	}
	out.Text += "."
	out.Undo.Fields["field"], out.Undo.Fields["value"] = f.name, f.exact(&is)
	return out, nil
}

// lowerFirst is a name of ours within a sentence.
func lowerFirst(s string) string { return string(s[0]|0x20) + s[1:] }
