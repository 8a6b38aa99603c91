package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// TopicSettings are what code declares and operators set for a topic, or for the topics that
// a pattern names. A zero field is not set; job.NoLimit says that there is no bound, which
// differs from it: an operator's "keep all" stands over the bound that code declares.
//
// It is kept as a JSON object, so that programs of any build and language read and apply it.
// Durations are seconds there.
type TopicSettings struct {
	// Versioned topics count the events of each key, and append one only where its
	// publisher's Expect allows it. A topic that has been versioned once stays so.
	Versioned bool
	KeepFor   time.Duration // after its append, by the store's clock [for ever]; NoLimit
	KeepCount int           // the newest so many [all]; NoLimit
}

// Bounds of topics' settings.
const (
	MinKeepFor   = time.Second
	MaxKeepCount = 1_000_000_000_000
)

// Check reports every field that is out of bounds. at is what the settings are of, and
// stands in front of each field.
func (s *TopicSettings) Check(at string) error {
	var errs []error
	if d := s.KeepFor; d != 0 && d != job.NoLimit && (d < MinKeepFor || d > job.MaxKeep) {
		errs = append(errs, job.Invalid(at+".KeepFor", d, fmt.Sprintf("must be -1 (for ever), 0 (not set) or %v..%v", MinKeepFor, job.MaxKeep)))
	}
	if n := s.KeepCount; n < job.NoLimit || n > MaxKeepCount {
		errs = append(errs, job.Invalid(at+".KeepCount", n, fmt.Sprintf("must be -1 (all), 0 (not set) or 1..%d", MaxKeepCount)))
	}
	return errors.Join(errs...)
}

// Trims reports whether events go by age or count.
func (s *TopicSettings) Trims() bool { return s.KeepFor > 0 || s.KeepCount > 0 }

func (s *TopicSettings) fields() map[string]any {
	return map[string]any{"versioned": &s.Versioned, "keep_for": &s.KeepFor, "keep_count": &s.KeepCount}
}

// TopicFields are the fields as JSON names them.
func TopicFields() []string { return []string{"versioned", "keep_for", "keep_count"} }

// MarshalJSON writes the fields that are set.
func (s TopicSettings) MarshalJSON() ([]byte, error) { return job.WriteFields(s.fields()) }

// UnmarshalJSON reads the fields that it knows. One that cannot be read is left as it is, and
// named in the error when all others were read (P8).
func (s *TopicSettings) UnmarshalJSON(text []byte) error { return job.ReadFields(text, s.fields()) }
