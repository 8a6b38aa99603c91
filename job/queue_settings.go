package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// QueueSettings are what code declares and operators set for one queue. A zero
// field is not set; the constants below say that there is none, which differs from
// it: an operator's "no total" stands over the total that code declares.
//
// It is kept as a JSON object, so that programs of any build and language read and
// apply it. Durations are seconds there.
type QueueSettings struct {
	Total                             int           // of its running jobs in the cluster; NoTotal
	Attempts                          int           // of jobs that are enqueued from now on
	KeepDone, KeepDead, KeepCancelled time.Duration // KeepNone
	Aging                             time.Duration // NoAging
	Backoff                           *BackoffSettings
}

// What is none, as opposed to not set.
const (
	NoTotal                = -1
	KeepNone time.Duration = -1
	NoAging  time.Duration = -1
)

// BackoffSettings are how long failed jobs of a queue wait, as data. Zero fields
// mean the defaults of Exponential.
type BackoffSettings struct {
	Off    bool // retry at once
	Base   time.Duration
	Max    time.Duration
	Factor float64 // by which the wait grows with each attempt [2]
}

// Bounds of settings.
const (
	MaxTotal  = 100_000_000
	MaxAging  = 365 * 24 * time.Hour
	MaxKeep   = 100 * 365 * 24 * time.Hour
	MaxFactor = 1000
)

// Check reports every field that is out of bounds. at is what the settings are of,
// and stands in front of each field.
func (s *QueueSettings) Check(at string) error {
	var errs []error
	bad := func(field string, value any, bound string) { errs = append(errs, Invalid(at+"."+field, value, bound)) }
	if s.Total < NoTotal || s.Total > MaxTotal {
		bad("Total", s.Total, fmt.Sprintf("must be -1 (none), 0 (not set) or 1..%d", MaxTotal))
	}
	if s.Attempts < 0 || s.Attempts > MaxAttempts {
		bad("Attempts", s.Attempts, fmt.Sprintf("must be 0 (not set) or 1..%d", MaxAttempts))
	}
	keep := func(field string, d time.Duration) {
		if d < KeepNone || d > MaxKeep {
			bad(field, d, fmt.Sprintf("must be -1 (none), 0 (not set) or at most %v", MaxKeep))
		}
	}
	keep("KeepDone", s.KeepDone)
	keep("KeepDead", s.KeepDead)
	keep("KeepCancelled", s.KeepCancelled)
	if s.Aging < NoAging || s.Aging > MaxAging {
		bad("Aging", s.Aging, fmt.Sprintf("must be -1 (strict priority), 0 (not set) or at most %v", MaxAging))
	}
	if b := s.Backoff; b != nil {
		errs = append(errs, b.check(at+".Backoff"))
	}
	return errors.Join(errs...)
}

func (b *BackoffSettings) check(at string) error {
	var errs []error
	bad := func(field string, value any, bound string) { errs = append(errs, Invalid(at+"."+field, value, bound)) }
	if b.Base < 0 || b.Base > MaxKeep {
		bad("Base", b.Base, fmt.Sprintf("must be 0 (default) or at most %v", MaxKeep))
	}
	if b.Max < 0 || b.Max > MaxKeep {
		bad("Max", b.Max, fmt.Sprintf("must be 0 (default) or at most %v", MaxKeep))
	} else if longest := cmp.Or(b.Max, BackoffMax); b.Base > longest {
		bad("Base", b.Base, fmt.Sprintf("must be at most Max, which is %v", longest))
	}
	if b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= MaxFactor) {
		bad("Factor", b.Factor, fmt.Sprintf("must be 0 (default) or 1..%d", MaxFactor))
	}
	return errors.Join(errs...)
}

// Func applies the settings, spread as by Exponential.
func (b *BackoffSettings) Func() BackoffFunc {
	if b.Off {
		return NoBackoff
	}
	return growing(cmp.Or(b.Base, BackoffBase), cmp.Or(b.Max, BackoffMax), cmp.Or(b.Factor, 2))
}

// Keep is how long finished jobs are kept.
func (s *QueueSettings) Keep() Keep {
	return Keep{Done: s.KeepDone, Dead: s.KeepDead, Cancelled: s.KeepCancelled}.WithDefaults()
}

// fields are the fields as JSON names them, with where each is kept.
func (s *QueueSettings) fields() map[string]any {
	return map[string]any{
		"total": &s.Total, "attempts": &s.Attempts,
		"keep_done": &s.KeepDone, "keep_dead": &s.KeepDead, "keep_cancelled": &s.KeepCancelled,
		"aging": &s.Aging, "backoff": &s.Backoff,
	}
}

func (b *BackoffSettings) fields() map[string]any {
	return map[string]any{"off": &b.Off, "base": &b.Base, "max": &b.Max, "factor": &b.Factor}
}

// MarshalJSON writes the fields that are set.
func (s QueueSettings) MarshalJSON() ([]byte, error) { return WriteFields(s.fields()) }

// UnmarshalJSON reads the fields that it knows. One that cannot be read is left as it
// is, and named in the error when all others were read: what a later build has
// written differently costs that field only (P8).
func (s *QueueSettings) UnmarshalJSON(text []byte) error { return ReadFields(text, s.fields()) }

// MarshalJSON writes the fields that are set.
func (b BackoffSettings) MarshalJSON() ([]byte, error) { return WriteFields(b.fields()) }

// UnmarshalJSON reads the fields that it knows.
func (b *BackoffSettings) UnmarshalJSON(text []byte) error { return ReadFields(text, b.fields()) }

// WriteFields writes settings as a JSON object: those fields that are not zero, by name.
// Durations are seconds.
func WriteFields(fields map[string]any) ([]byte, error) {
	set := map[string]any{}
	for name, field := range fields {
		switch v := field.(type) {
		case *int:
			if *v != 0 {
				set[name] = *v
			}
		case *bool:
			if *v {
				set[name] = true
			}
		case *float64:
			if *v != 0 {
				set[name] = *v
			}
		case *time.Duration:
			if *v != 0 {
				set[name] = inSeconds(*v)
			}
		case *string:
			if *v != "" {
				set[name] = *v
			}
		case *map[string]int:
			if len(*v) > 0 {
				set[name] = *v
			}
		case **BackoffSettings:
			if *v != nil {
				set[name] = *v
			}
		}
	}
	return json.Marshal(set)
}

// ReadFields reads what WriteFields wrote. One that cannot be read is left as it is, and
// named in the error when all others were read.
func ReadFields(text []byte, fields map[string]any) error {
	var found map[string]json.RawMessage
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	var errs []error
	for name, field := range fields {
		value, ok := found[name]
		if !ok {
			continue
		}
		var err error
		switch f := field.(type) {
		case *time.Duration:
			var seconds float64
			if err = json.Unmarshal(value, &seconds); err == nil {
				*f = ofSeconds(seconds)
			}
		case *map[string]int: // replaced as a whole, as every field is
			var fresh map[string]int
			if err = json.Unmarshal(value, &fresh); err == nil {
				*f = fresh
			}
		default:
			err = json.Unmarshal(value, field)
		}
		if err != nil {
			errs = append(errs, Invalid(name, string(value), "cannot be read: "+err.Error()))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// none is what a duration of -1, which means none, is as JSON, too.
const none time.Duration = -1

func inSeconds(d time.Duration) float64 {
	if d == none {
		return -1
	}
	return d.Seconds()
}

func ofSeconds(seconds float64) time.Duration {
	if seconds == -1 {
		return none
	}
	return time.Duration(math.Round(min(max(seconds, math.MinInt64/1e9), math.MaxInt64/1e9) * 1e9))
}
