package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// limits adds the routes of limits.
func (a *api) limits() {
	route(a, operation{
		method: http.MethodGet, path: "/limits", id: "list-limits", tag: "limits", role: auth.Viewer,
		summary: "List limits by name: what holds, and where it comes from",
	}, a.listLimits)
	route(a, operation{
		method: http.MethodGet, path: "/limits/{name}", id: "get-limit", tag: "limits", role: auth.Viewer,
		summary: "Read a limit",
	}, a.getLimit)
	route(a, operation{
		method: http.MethodPatch, path: "/limits/{name}/settings", id: "set-limit", tag: "limits", role: auth.Operator,
		summary: "Put settings over what code declares for a limit, or make one that none declares",
	}, a.setLimit)
	route(a, operation{
		method: http.MethodDelete, path: "/limits/{name}/settings", id: "reset-limit", tag: "limits", role: auth.Operator,
		summary: "Take back what was set, or some fields of it; a limit that no code declares is gone with the last",
	}, a.resetLimit)
	route(a, operation{
		method: http.MethodPost, path: "/limits/{name}/drain", id: "drain-limit", tag: "limits", role: auth.Operator,
		status: http.StatusNoContent, summary: "Empty a limit's bucket for a time: nothing is to be had of it until then",
	}, a.drainLimit)
	route(a, operation{
		method: http.MethodPost, path: "/limits/{name}/undrain", id: "undrain-limit", tag: "limits", role: auth.Operator,
		status: http.StatusNoContent, summary: "End a drain before its time: tokens come again",
	}, a.undrainLimit)
	route(a, operation{
		method: http.MethodPost, path: "/limits/{name}/acquire", id: "acquire-limit", tag: "limits", role: auth.Operator,
		summary: "Take tokens of a limit's rate, or be told at once when they come (rate-limited); repeated without a key, it takes others",
	}, a.acquireLimit)
}

// Limit is what holds for a limit, and where it comes from.
type Limit struct {
	Name     string        `json:"name"`
	Holds    LimitSettings `json:"holds" doc:"what is declared, with the fields over it that operators have set"`
	Declared LimitSettings `json:"declared" doc:"what code says"`
	Source
}

// LimitSettings are what is declared or set for a limit: the fields that are there.
type LimitSettings struct {
	Queue      string         `json:"queue,omitempty" minLength:"1" maxLength:"128" doc:"the jobs of this queue"`
	Kind       string         `json:"kind,omitempty" minLength:"1" maxLength:"128" doc:"of this kind, or of a pattern of them: render.*"`
	PerKey     *bool          `json:"per_key,omitempty" enum:"true" doc:"bound each key by itself"`
	Concurrent *int           `json:"concurrent,omitempty" minimum:"-1" maximum:"100000000" doc:"that run at once; -1: no bound"`
	Ordered    *bool          `json:"ordered,omitempty" enum:"true" doc:"keep the jobs of a key in order: with per_key and concurrent 1"`
	Weights    map[string]int `json:"weights,omitempty" minProperties:"1" maxProperties:"1000" doc:"of keys, 1..1000; set as a whole"`
	Burst      *int           `json:"burst,omitempty" minimum:"1" maximum:"1000000000" doc:"tokens that a full bucket holds"`
	PerSecond  *float64       `json:"per_second,omitempty" minimum:"-1" maximum:"1000000" doc:"tokens that come in a second; -1: no bound"`
}

func limitOf(l *pawl.EffectiveLimit) Limit {
	return Limit{
		Name: l.Name, Holds: limitSettingsOf(&l.Holds), Declared: limitSettingsOf(&l.Declared),
		Source: sourceOf(l.Owner, l.Version, l.Overridden, l.By, l.Note, l.Since, l.Conflicts),
	}
}

func limitSettingsOf(s *pawl.LimitSettings) LimitSettings {
	return LimitSettings{
		Queue: s.Queue, Kind: s.Kind, PerKey: given(s.PerKey), Concurrent: given(s.Concurrent), Ordered: given(s.Ordered), Weights: s.Weights,
		Burst: given(s.Burst), PerSecond: given(s.PerSecond),
	}
}

// given is a field that is set; nil where it is zero.
func given[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// UnmarshalJSON refuses null.
func (w *LimitSettings) UnmarshalJSON(text []byte) error {
	if err := noNull(text, ""); err != nil {
		return err
	}
	type plain LimitSettings
	return json.Unmarshal(text, (*plain)(w))
}

// of is what was sent, with all its faults.
func (w *LimitSettings) of() (pawl.LimitSettings, error) {
	s := pawl.LimitSettings{Queue: w.Queue, Kind: w.Kind, PerKey: w.PerKey != nil, Ordered: w.Ordered != nil, Weights: w.Weights}
	var concurrent, burst, perSecond error
	s.Concurrent, concurrent = readSetting("concurrent", w.Concurrent, "must be -1 (no bound) or 1..100000000")
	s.Burst, burst = readSetting("burst", w.Burst, "must be 1..1000000000")
	s.PerSecond, perSecond = readSetting("per_second", w.PerSecond, "must be -1 (no bound) or 0.000001..1000000")
	return s, errors.Join(concurrent, burst, perSecond)
}

// LimitList is one page of limits.
type LimitList struct {
	Limits []Limit `json:"limits" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listLimits(ctx context.Context, in *Paging) (*body[LimitList], error) {
	all, err := a.e.Limits(ctx)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(in, all, func(l *pawl.EffectiveLimit) string { return l.Name })
	if err != nil {
		return nil, err
	}
	return answer(LimitList{wireOf(page, limitOf), next}), nil
}

func (a *api) getLimit(ctx context.Context, in *NamePath) (*body[Limit], error) {
	l, err := a.limit(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return answer(l), nil
}

// limit reads one.
func (a *api) limit(ctx context.Context, name string) (Limit, error) {
	if err := job.CheckName("limit", name); err != nil {
		return Limit{}, err
	}
	all, err := a.e.Limits(ctx)
	if err != nil {
		return Limit{}, err
	}
	i := slices.IndexFunc(all, func(l pawl.EffectiveLimit) bool { return l.Name == name })
	if i < 0 {
		return Limit{}, job.NotFound("limit", name)
	}
	return limitOf(&all[i]), nil
}

type setLimitInput struct {
	NamePath
	Body LimitSettings
}

func (a *api) setLimit(ctx context.Context, in *setLimitInput) (*body[Limit], error) {
	s, err := in.Body.of()
	if err != nil {
		return nil, err
	}
	if err := a.e.Limit(in.Name).Set(ctx, s); err != nil {
		return nil, err
	}
	return a.getLimit(ctx, &in.NamePath)
}

type resetLimitInput struct {
	NamePath
	Fields []string `query:"field" maxItems:"8" enum:"queue,kind,per_key,concurrent,ordered,weights,burst,per_second" doc:"all without it"`
}

func (a *api) resetLimit(ctx context.Context, in *resetLimitInput) (*body[Limit], error) {
	if _, err := a.limit(ctx, in.Name); err != nil {
		return nil, err
	}
	if err := a.e.Limit(in.Name).Reset(ctx, in.Fields...); err != nil {
		return nil, err
	}
	l, err := a.limit(ctx, in.Name)
	if errors.Is(err, pawl.ErrNotFound) { // nobody says anything about it any more
		return answer(limitOf(&pawl.EffectiveLimit{Name: in.Name})), nil
	}
	return answer(l), err
}

type drainInput struct {
	NamePath
	Body struct {
		For string `json:"for" minLength:"1" maxLength:"32" doc:"how long, such as 30s; a day is the most"`
		Key string `json:"key,omitempty" maxLength:"255" doc:"of a limit that is per key"`
	}
}

func (a *api) drainLimit(ctx context.Context, in *drainInput) (*struct{}, error) {
	d, err := readDuration("for", in.Body.For, store.MaxDrain)
	if err != nil {
		return nil, err
	}
	return nil, a.ofLimit(ctx, in.Name, a.e.Limit(in.Name).Key(in.Body.Key).Drain(ctx, d))
}

type undrainInput struct {
	NamePath
	Key string `query:"key" maxLength:"255" doc:"of a limit that is per key"`
}

func (a *api) undrainLimit(ctx context.Context, in *undrainInput) (*struct{}, error) {
	return nil, a.ofLimit(ctx, in.Name, a.e.Limit(in.Name).Key(in.Key).Undrain(ctx))
}

type acquireInput struct {
	NamePath
	Body struct {
		Tokens int    `json:"tokens,omitempty" minimum:"1" maximum:"1000000000" default:"1"`
		Wait   string `json:"wait,omitempty" minLength:"1" maxLength:"32" default:"1s" doc:"how long at most; a minute is the most"`
		Key    string `json:"key,omitempty" maxLength:"255" doc:"of a limit that is per key"`
	}
}

// Acquired is tokens that were taken.
type Acquired struct {
	Tokens int `json:"tokens"`
}

func (a *api) acquireLimit(ctx context.Context, in *acquireInput) (*body[Acquired], error) {
	patience, err := readDuration("wait", in.Body.Wait, longestWait)
	if err != nil {
		return nil, err
	}
	if patience < time.Millisecond {
		return nil, job.Invalid("wait", in.Body.Wait, "must be 1ms or more")
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again, err := a.e.Limit(in.Name).Key(in.Body.Key).Acquire(waiting, in.Body.Tokens)
	switch {
	case errors.Is(err, pawl.ErrRateLimited):
		p := newProblem(http.StatusTooManyRequests, "rate-limited", err.Error())
		p.retry = again
		return nil, p
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // nothing was taken
		return nil, newProblem(http.StatusTooManyRequests, "rate-limited",
			fmt.Sprintf("%d of limit %s did not come within %v", in.Body.Tokens, in.Name, patience))
	case err != nil:
		return nil, a.ofLimit(ctx, in.Name, err)
	}
	return answer(Acquired{in.Body.Tokens}), nil
}

// ofLimit is what the engine's error is about a limit: one that nobody knows is not
// found, rather than invalid.
func (a *api) ofLimit(ctx context.Context, name string, err error) error {
	if !errors.Is(err, pawl.ErrInvalid) {
		return err
	}
	if _, missing := a.limit(ctx, name); errors.Is(missing, pawl.ErrNotFound) {
		return missing
	}
	return err
}
