package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Bounds of what is declared and set.
const (
	MaxDeclarations = 1000     // of a worker
	MaxSetting      = 64 << 10 // bytes of a value
	// KeepVersion is how long a version is remembered after its last worker.
	KeepVersion = 30 * 24 * time.Hour
)

// Check refuses a name that cannot be set. That of a queue may be a pattern: it holds
// for the queues that it names (Effective.Queue). So may that of a topic.
func (s *Setting) Check(field string) error {
	checkName := job.CheckName
	switch s.Kind {
	case SettingQueue:
		checkName = job.CheckPattern
	case SettingTopic:
		checkName = checkTopics
	}
	return errors.Join(job.CheckName(field+" kind", string(s.Kind)), checkName(field+" name", s.Name))
}

// checkTopics checks a topic or a pattern of topics. It is written out: "" is no pattern here.
func checkTopics(field, name string) error {
	if name == "" {
		return stream.CheckTopic(field, name)
	}
	_, err := stream.ParsePattern(field, name)
	return err
}

// Form checks a value and puts it into its one form, so that values that say the
// same are the same bytes. field says where it stands.
func (s *Setting) Form(field string, value json.RawMessage) (json.RawMessage, error) {
	if len(value) > MaxSetting {
		return nil, job.Invalid(field, fmt.Sprintf("%d bytes", len(value)), fmt.Sprintf("must have at most %d bytes", MaxSetting))
	}
	o, err := ParseObject(value)
	if err != nil {
		return nil, job.Invalid(field, string(value), "must be a JSON object: "+err.Error())
	}
	switch s.Kind {
	case SettingQueue:
		var q job.QueueSettings
		if err := json.Unmarshal(value, &q); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		if err := q.Check(field); err != nil {
			return nil, err
		}
	case SettingLimit: // whether the fields go together is known of a declaration only
		var l job.LimitSettings
		if err := json.Unmarshal(value, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		if err := l.CheckFields(field); err != nil {
			return nil, err
		}
	case SettingTopic:
		var t stream.TopicSettings
		if err := json.Unmarshal(value, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		if err := t.Check(field); err != nil {
			return nil, err
		}
	}
	return o.Text()
}

// FormDeclares checks whose code a worker runs and what that declares, and puts the
// values into their one form; of a name that is there twice, the last counts.
func (w *Worker) FormDeclares() ([]Declaration, error) {
	if w.Owner == "" && w.Version == "" && len(w.Declares) == 0 {
		return nil, nil
	}
	errs := []error{checkPart("owner", w.Owner), checkPart("version", w.Version)}
	if n := len(w.Declares); n > MaxDeclarations {
		return nil, job.Invalid("declares", fmt.Sprintf("%d declarations", n), fmt.Sprintf("must be at most %d", MaxDeclarations))
	}
	formed := make([]Declaration, 0, len(w.Declares))
	at := map[Setting]int{}
	for _, d := range w.Declares {
		if err := d.Check("declaration"); err != nil {
			errs = append(errs, err)
			continue
		}
		value, err := d.Form(fmt.Sprintf("%s %s", d.Kind, d.Name), d.Value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if d.Kind == SettingLimit {
			var l job.LimitSettings
			_ = json.Unmarshal(value, &l) // Form has read it
			if err := l.Check(fmt.Sprintf("%s %s", d.Kind, d.Name)); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		i, again := at[d.Setting]
		if !again {
			i = len(formed)
			at[d.Setting], formed = i, append(formed, Declaration{Setting: d.Setting})
		}
		formed[i].Value = value
	}
	return formed, errors.Join(errs...)
}

// checkPart checks an owner or version: a name that may also hold blanks.
func checkPart(field, text string) error { return job.CheckText(field, text, 1, job.MaxName) }

// Patch puts an operator's fields over those that were set before. It is nil when
// nothing is left; a nil value takes all of it back.
func (s *Setting) Patch(before, value json.RawMessage) (json.RawMessage, error) {
	if err := s.Check("setting"); err != nil || len(value) == 0 {
		return nil, err
	}
	field := fmt.Sprintf("%s %s", s.Kind, s.Name)
	over, err := ParseObject(value)
	if err != nil {
		return nil, job.Invalid(field, string(value), "must be a JSON object: "+err.Error())
	}
	var under Object
	if before != nil {
		if under, err = ParseObject(before); err != nil {
			under = nil // what cannot be read is replaced
		}
	}
	merged := over.Over(under)
	if len(merged) == 0 {
		return nil, nil
	}
	text, err := merged.Text()
	if err != nil {
		return nil, job.Invalid(field, string(value), "must be a JSON object: "+err.Error())
	}
	return s.Form(field, text)
}

// same reports whether two values say the same.
func same(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
