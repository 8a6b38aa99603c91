package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// QueueSettings are what is declared or set for a queue: the fields that are there.
type QueueSettings struct {
	Total         *int     `json:"total,omitempty" minimum:"-1" maximum:"100000000" doc:"of its running jobs in the cluster; -1: no bound"`
	Attempts      *int     `json:"attempts,omitempty" minimum:"1" maximum:"10000" doc:"of jobs that are enqueued from now on"`
	KeepDone      string   `json:"keep_done,omitempty" minLength:"1" maxLength:"32" doc:"how long done jobs are kept, such as 24h, or none"`
	KeepDead      string   `json:"keep_dead,omitempty" minLength:"1" maxLength:"32" doc:"or none"`
	KeepCancelled string   `json:"keep_cancelled,omitempty" minLength:"1" maxLength:"32" doc:"or none"`
	Aging         string   `json:"aging,omitempty" minLength:"1" maxLength:"32" doc:"after which wait a job rises by a priority, or none"`
	Backoff       *Backoff `json:"backoff,omitempty" doc:"set as a whole"`
}

// Backoff is how long failed jobs wait.
type Backoff struct {
	Off    bool    `json:"off,omitempty" doc:"retry at once"`
	Base   string  `json:"base,omitempty" maxLength:"32" doc:"the first wait"`
	Max    string  `json:"max,omitempty" maxLength:"32" doc:"the longest"`
	Factor float64 `json:"factor,omitempty" minimum:"1" maximum:"1000" doc:"by which it grows with each attempt; 2 without it"`
}

// EffectiveQueue is what holds for a queue, or is said for a pattern, and where it comes
// from.
type EffectiveQueue struct {
	Name     string        `json:"name"`
	Pattern  string        `json:"pattern,omitempty" doc:"the one whose declaration holds for a queue that has none of its own"`
	Holds    QueueSettings `json:"holds" doc:"what is declared, with the fields over it that operators have set; defaults are not shown"`
	Declared QueueSettings `json:"declared" doc:"what code says"`
	Source
}

func effectiveQueueOf(q *pawl.EffectiveQueue) EffectiveQueue {
	return EffectiveQueue{
		Name: q.Name, Pattern: q.Pattern, Holds: queueSettingsOf(&q.Holds), Declared: queueSettingsOf(&q.Declared),
		Source: sourceOf(q.Owner, q.Version, q.Overridden, q.By, q.Note, q.Since, q.Conflicts),
	}
}

func queueSettingsOf(s *pawl.QueueSettings) QueueSettings {
	w := QueueSettings{
		KeepDone: settingTime(s.KeepDone), KeepDead: settingTime(s.KeepDead), KeepCancelled: settingTime(s.KeepCancelled),
		Aging: settingTime(s.Aging),
	}
	if s.Total != 0 {
		w.Total = &s.Total
	}
	if s.Attempts != 0 {
		w.Attempts = &s.Attempts
	}
	if b := s.Backoff; b != nil {
		w.Backoff = &Backoff{Off: b.Off, Base: settingTime(b.Base), Max: settingTime(b.Max), Factor: b.Factor}
	}
	return w
}

// UnmarshalJSON refuses null.
func (w *QueueSettings) UnmarshalJSON(text []byte) error {
	if err := noNull(text, ""); err != nil {
		return err
	}
	type plain QueueSettings
	return json.Unmarshal(text, (*plain)(w))
}

// of is what was sent, with all its faults.
func (w *QueueSettings) of() (s pawl.QueueSettings, err error) {
	var errs []error
	at := func(field, text string, to *time.Duration) {
		var err error
		*to, err = readSettingTime(field, text)
		errs = append(errs, err)
	}
	s.Total, err = readSetting("total", w.Total, "must be -1 (no bound) or 1..100000000")
	errs = append(errs, err)
	if w.Attempts != nil {
		s.Attempts = *w.Attempts
	}
	at("keep_done", w.KeepDone, &s.KeepDone)
	at("keep_dead", w.KeepDead, &s.KeepDead)
	at("keep_cancelled", w.KeepCancelled, &s.KeepCancelled)
	at("aging", w.Aging, &s.Aging)
	if b := w.Backoff; b != nil {
		s.Backoff = &job.BackoffSettings{Off: b.Off, Factor: b.Factor}
		at("backoff.base", b.Base, &s.Backoff.Base)
		at("backoff.max", b.Max, &s.Backoff.Max)
	}
	return s, errors.Join(errs...)
}

func (a *api) getQueueSettings(ctx context.Context, in *NamePath) (*body[EffectiveQueue], error) {
	if err := job.CheckPattern("queue", in.Name); err != nil {
		return nil, err
	}
	return a.effectiveQueue(ctx, in.Name)
}

func (a *api) effectiveQueue(ctx context.Context, name string) (*body[EffectiveQueue], error) {
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	holds := s.Queue(name)
	return answer(effectiveQueueOf(&holds)), nil
}

type setQueueInput struct {
	NamePath
	Body QueueSettings
}

func (a *api) setQueue(ctx context.Context, in *setQueueInput) (*body[EffectiveQueue], error) {
	s, err := in.Body.of()
	if err != nil {
		return nil, err
	}
	if err := a.e.Queue(in.Name).Set(ctx, s); err != nil {
		return nil, err
	}
	return a.effectiveQueue(ctx, in.Name)
}

type resetQueueInput struct {
	NamePath
	Fields []string `query:"field" maxItems:"7" enum:"total,attempts,keep_done,keep_dead,keep_cancelled,aging,backoff" doc:"all without it"`
}

func (a *api) resetQueue(ctx context.Context, in *resetQueueInput) (*body[EffectiveQueue], error) {
	if err := a.e.Queue(in.Name).Reset(ctx, in.Fields...); err != nil {
		return nil, err
	}
	return a.effectiveQueue(ctx, in.Name)
}
