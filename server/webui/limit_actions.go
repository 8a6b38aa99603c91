package webui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// limitActions are done to a limit: the field name says which.
var limitActions = []action{
	{noun: "limit", verb: "set", role: auth.Operator, label: "Save", class: "pri", ask: askLimitSetting, do: setLimit},
	{noun: "limit", verb: "back", role: auth.Operator, label: "Set back", class: "s quiet", do: setLimitBack},
	{noun: "limit", verb: "drain", role: auth.Operator, label: "Drain…", class: "s quiet", ask: askDrain, do: drainLimit},
	{noun: "limit", verb: "undrain", role: auth.Operator, label: "End the drain", class: "s", do: undrainLimit},
}

// limitField is a setting of limits that can be changed while it runs.
type limitField struct {
	name, text string
	bounds     string
	show       func(*job.LimitSettings) string
	exact      func(*job.LimitSettings) string
	set        func(*job.LimitSettings, string) error
	fits       func(*job.LimitSettings) bool
}

var limitFields = []limitField{
	{
		"per_second", "Rate", "tokens a second, 0.000001 to 1,000,000, such as 5 or 0.5; or none",
		func(s *job.LimitSettings) string {
			if s.PerSecond <= 0 {
				return "none"
			}
			return perSecond(s.PerSecond)
		},
		func(s *job.LimitSettings) string {
			if s.PerSecond <= 0 {
				return "none"
			}
			return strconv.FormatFloat(s.PerSecond, 'f', -1, 64)
		},
		func(s *job.LimitSettings, text string) (err error) {
			if isNone(text) {
				s.PerSecond = job.NoLimit
				return nil
			}
			s.PerSecond, err = strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
			if err == nil && !(s.PerSecond >= job.MinPerSecond && s.PerSecond <= job.MaxPerSecond) {
				err = strconv.ErrRange
			}
			return err
		},
		func(s *job.LimitSettings) bool { return true },
	},
	{
		"burst", "Burst", "1 to 1,000,000,000",
		func(s *job.LimitSettings) string { return countOrNone(s.Rate().Burst) },
		func(s *job.LimitSettings) string { return countOrNone(s.Rate().Burst) },
		func(s *job.LimitSettings, text string) (err error) {
			s.Burst, err = readCount(text, job.MaxBurst, false)
			return err
		},
		func(s *job.LimitSettings) bool { return s.PerSecond != 0 },
	},
	{
		"concurrent", "At once", "1 to 100,000,000, or none",
		func(s *job.LimitSettings) string { return countOrNone(s.Concurrent) },
		func(s *job.LimitSettings) string { return countOrNone(s.Concurrent) },
		func(s *job.LimitSettings, text string) (err error) {
			s.Concurrent, err = readCount(text, job.MaxConcurrent, true)
			return err
		},
		func(s *job.LimitSettings) bool { return s.OfJobs() },
	},
}

func limitFieldOf(name string) (*limitField, error) {
	for i := range limitFields {
		if limitFields[i].name == name {
			return &limitFields[i], nil
		}
	}
	return nil, job.Invalid("field", name, "must be a setting of limits that can be changed here")
}

// theLimit reads the limit and the field that an action is about.
func (a *act) theLimit() (f *limitField, l limitNow, err error) {
	if err = job.CheckName("limit", a.whose()); err != nil {
		return f, l, err
	}
	if a.form.Has("field") {
		if f, err = limitFieldOf(a.get("field")); err != nil {
			return f, l, err
		}
	}
	reply, err := a.app.e.Store().Settings(a.ctx)
	if err != nil {
		return f, l, err
	}
	holds := store.Resolve(reply)
	all := limitsOf(&holds)
	i := slices.IndexFunc(all, func(l limitNow) bool { return l.Name == a.whose() })
	if i < 0 {
		return f, l, job.NotFound("limit", a.whose())
	}
	return f, all[i], nil
}

func limitCall(verb, name, field, value string) *call {
	c := &call{Noun: "limit", Verb: verb, Fields: map[string]string{"name": name}}
	if field != "" {
		c.Fields["field"] = field
	}
	if value != "" {
		c.Fields["value"] = value
	}
	return c
}

func askLimitSetting(a *act) (*dialog, error) {
	f, l, err := a.theLimit()
	if err != nil || f == nil {
		return nil, orField(err)
	}
	value := f.exact(&l.Holds)
	if a.form.Has("value") {
		value = a.get("value")
	}
	return &dialog{
		Title: "Change " + lowerFirst(f.text) + " of " + plain(l.Name, 80) + "?", Text: "Code declares " + f.show(&l.Declared) +
			". What you set holds in the whole cluster until it is set back.",
		Fields: []field{{Name: "value", Label: f.text, Value: value, Hint: "Allowed: " + f.bounds + "."}}, Note: "optional", Button: "Save",
	}, nil
}

// orField is an error, or that no field was named.
func orField(err error) error {
	if err == nil {
		err = job.Invalid("field", "", "must be named")
	}
	return err
}

func setLimit(a *act) (*outcome, error) {
	f, l, err := a.theLimit()
	if err != nil || f == nil {
		return nil, orField(err)
	}
	var s job.LimitSettings
	value := strings.TrimSpace(a.get("value"))
	if err := f.set(&s, value); err != nil || s.CheckFields(f.text) != nil {
		return nil, wrong(f.text, value, f.bounds)
	}
	if err := a.app.e.Limit(l.Name).Set(a.ctx, s); err != nil {
		return nil, err
	}
	merged := l.Holds
	_ = f.set(&merged, value)
	out := &outcome{Text: f.text + " of " + plain(l.Name, 60) + " is " + f.show(&merged) + " now.",
		Undo: limitCall("back", l.Name, f.name, "")}
	if slices.Contains(l.Overridden, f.name) {
		out.Undo = limitCall("set", l.Name, f.name, f.exact(&l.Holds))
	}
	if a.form.Has("close") { // the form is
		out.Goto = a.app.back(a.get("back"))
	}
	return out, nil
}

func setLimitBack(a *act) (*outcome, error) {
	f, l, err := a.theLimit()
	if err != nil || f == nil {
		return nil, orField(err)
	}
	if !slices.Contains(l.Overridden, f.name) {
		return &outcome{Text: "Nothing changed: " + lowerFirst(f.text) + " of " + plain(l.Name, 60) + " was not set."}, nil
	}
	if err := a.app.e.Limit(l.Name).Reset(a.ctx, f.name); err != nil {
		return nil, err
	}
	if l.Owner == "" && len(l.Overridden) == 1 {
		return &outcome{Text: plain(l.Name, 60) + " is gone: no code declares it.", Undo: undoWhole(&l, f)}, nil
	}
	return &outcome{Text: f.text + " is " + f.show(&l.Declared) + " again, as code declares.", Undo: undoWhole(&l, f)}, nil
}

func undoWhole(l *limitNow, f *limitField) *call {
	var fields map[string]json.RawMessage
	if l.Override != nil && json.Unmarshal(l.Override.Value, &fields) == nil && len(fields) == 1 && l.Owner == "" {
		return nil // it cannot be made anew by one field alone
	}
	return limitCall("set", l.Name, f.name, f.exact(&l.Holds))
}

func askDrain(a *act) (*dialog, error) {
	_, l, err := a.theLimit()
	if err != nil {
		return nil, err
	}
	value := "1m"
	if a.form.Has("for") {
		value = a.get("for")
	}
	return &dialog{
		Title:  "Drain " + plain(l.Name, 80) + "?",
		Text:   "Nothing is to be had of it until then, and it begins empty. Processes use what they have taken for a second at most.",
		Fields: []field{{Name: "for", Label: "For how long", Value: value, Hint: "Such as 30s, 5m or 1h; 24h at most."}},
		Note:   "optional", Button: "Drain it",
	}, nil
}

func drainLimit(a *act) (*outcome, error) {
	_, l, err := a.theLimit()
	if err != nil {
		return nil, err
	}
	d, err := readSpan(a.get("for"))
	if err != nil || d < time.Second || d > store.MaxDrain {
		return nil, &fault{http.StatusUnprocessableEntity, "Nothing changed.", fmt.Sprintf("It cannot be drained for %s. Allowed: 1s to 24h.",
			plain(a.get("for"), 40))}
	}
	if err := a.app.e.Limit(l.Name).Key(a.get("key")).Drain(a.ctx, d); err != nil {
		return nil, err
	}
	return &outcome{Text: plain(l.Name, 60) + " is drained for " + spanWords(d) + ".", Undo: limitCall("undrain", l.Name, "", "")}, nil
}

func undrainLimit(a *act) (*outcome, error) {
	_, l, err := a.theLimit()
	if err != nil {
		return nil, err
	}
	if err := a.app.e.Limit(l.Name).Key(a.get("key")).Undrain(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "Tokens of " + plain(l.Name, 60) + " come again."}, nil
}
