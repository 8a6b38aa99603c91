package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ScheduleSettings are what code declares and operators set for one schedule: when
// it is due, and the job of each due time. A zero field is not set.
//
// It is kept as a JSON object, so that programs of any build and language read and
// apply it. Durations are seconds there.
type ScheduleSettings struct {
	Cron string // see package job/cron
	Zone string // an IANA name [UTC]

	Kind         string
	Version      int // of the arguments
	Args         []byte
	Queue        string
	Priority     int           // [5]
	Attempts     int           // [the queue's]
	Timeout      time.Duration // of one attempt [the handler's]
	Key          string
	Tags         []string
	Capabilities []string
	Budget       string
	Headers      map[string]string
	Unique       Unique

	// SkipIfActive skips due times while a job of the schedule is live [false].
	SkipIfActive *bool
	CatchUp      CatchUp // [CatchUpOne]
	Paused       *bool
}

// CatchUp says what becomes of due times that nobody was there for. The words are
// stored.
type CatchUp string

// What becomes of them. See docs/cron.md.
const (
	CatchUpOne  CatchUp = "one"  // the newest is made up for, the others are not
	CatchUpNone CatchUp = "none" // none, unless it is the newest and at most LateFire ago
	CatchUpAll  CatchUp = "all"  // the newest MaxCatchUp are
)

// Bounds of schedules.
const (
	// MaxCatchUp is how many due times are made up for at most.
	MaxCatchUp = 100
	// LateFire is how late a due time is still fired with CatchUpNone: it bridges
	// the time in which one process takes over from another.
	LateFire = time.Minute
)

// Headers of jobs that schedules enqueue.
const (
	HeaderSchedule = "pawl-schedule" // its name
	HeaderDue      = "pawl-due"      // the due time, RFC 3339
)

// Check reports every field that is out of bounds but Cron and Zone, which are for
// package job/cron. at is what the settings are of.
func (s *ScheduleSettings) Check(at string) error {
	var errs []error
	bad := func(field string, value any, bound string) { errs = append(errs, Invalid(at+"."+field, value, bound)) }
	draft, err := s.Draft(NewID())
	errs = append(errs, err)
	draft.Attempts = max(draft.Attempts, 1)
	if draft.Queue == "" {
		draft.Queue = "default"
	}
	if err := draft.Check(Bounds{}); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", at, err))
	}
	if s.Attempts < 0 {
		bad("Attempts", s.Attempts, fmt.Sprintf("must be 0 (not set) or 1..%d", MaxAttempts))
	}
	switch s.CatchUp {
	case "", CatchUpOne, CatchUpNone, CatchUpAll:
	default:
		bad("CatchUp", string(s.CatchUp), "must be one, none or all")
	}
	if s.Skips() && s.Unique.Hash != nil {
		bad("SkipIfActive", true, "is a unique key, and the job has another")
	}
	return errors.Join(errs...)
}

// Skips reports whether due times are skipped while a job is live.
func (s *ScheduleSettings) Skips() bool { return s.SkipIfActive != nil && *s.SkipIfActive }

// IsPaused reports whether due times pass without a job.
func (s *ScheduleSettings) IsPaused() bool { return s.Paused != nil && *s.Paused }

// Draft is the job of a due time, without its attempts where none are set.
func (s *ScheduleSettings) Draft(id ID) (Draft, error) {
	headers, err := EncodeHeaders(s.Headers)
	d := Draft{
		ID: id, Kind: s.Kind, Version: s.Version, Args: s.Args, Queue: s.Queue, Priority: s.Priority, Attempts: s.Attempts,
		Timeout: s.Timeout, Key: s.Key, Tags: s.Tags, Capabilities: s.Capabilities, Budget: s.Budget, HeaderBytes: headers, Unique: s.Unique,
	}
	if d.Priority == 0 {
		d.Priority = DefaultPriority
	}
	return d, err
}

// ScheduleUnique is the unique key of a schedule that skips due times while a job of
// it is live.
func ScheduleUnique(name string) []byte { return UniqueHash("schedule:" + name) }

// ScheduledID is the id of the job of a due time. It is the same whenever it is asked
// for, so that a repeat of a fire brings nothing twice; like every id it begins with
// a time, the due time.
func ScheduledID(schedule string, due time.Time) ID {
	text := binary.BigEndian.AppendUint64([]byte("schedule:"+schedule+":"), uint64(due.UnixMicro()))
	return timedID(sha256.Sum256(text), due)
}

// scheduleJSON is how settings are written.
type scheduleJSON struct {
	Cron         string            `json:"cron,omitempty"`
	Zone         string            `json:"zone,omitempty"`
	Kind         string            `json:"kind,omitempty"`
	Version      int               `json:"version,omitempty"`
	Args         json.RawMessage   `json:"args,omitempty"`
	ArgsAs       string            `json:"args_as,omitempty"`
	Queue        string            `json:"queue,omitempty"`
	Priority     int               `json:"priority,omitempty"`
	Attempts     int               `json:"attempts,omitempty"`
	Timeout      float64           `json:"timeout,omitempty"`
	Key          string            `json:"key,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Budget       string            `json:"budget,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Unique       []byte            `json:"unique,omitempty"`
	UniquePeriod float64           `json:"unique_period,omitempty"`
	SkipIfActive *bool             `json:"skip_if_active,omitempty"`
	CatchUp      CatchUp           `json:"catch_up,omitempty"`
	Paused       *bool             `json:"paused,omitempty"`
}

// ScheduleFields are the fields of ScheduleSettings as JSON names them.
var ScheduleFields = []string{
	"cron", "zone", "kind", "version", "args", "args_as", "queue", "priority", "attempts", "timeout", "key", "tags", "capabilities",
	"budget", "headers", "unique", "unique_period", "skip_if_active", "catch_up", "paused",
}

// How arguments are written: as JSON where they are that, else as base64 in a string.
const (
	argsAsJSON   = "json"
	argsAsBase64 = "base64"
)

// MarshalJSON writes the fields that are set.
func (s ScheduleSettings) MarshalJSON() ([]byte, error) {
	w := scheduleJSON{
		Cron: s.Cron, Zone: s.Zone, Kind: s.Kind, Version: s.Version, Queue: s.Queue, Priority: s.Priority, Attempts: s.Attempts,
		Timeout: s.Timeout.Seconds(), Key: s.Key, Tags: s.Tags, Capabilities: s.Capabilities, Budget: s.Budget, Headers: s.Headers,
		Unique: s.Unique.Hash, UniquePeriod: s.Unique.Period.Seconds(), SkipIfActive: s.SkipIfActive, CatchUp: s.CatchUp, Paused: s.Paused,
	}
	switch {
	case s.Args == nil:
	case writesAsItself(s.Args):
		w.Args, w.ArgsAs = s.Args, argsAsJSON
	default:
		w.Args, w.ArgsAs = json.RawMessage(`"`+base64.StdEncoding.EncodeToString(s.Args)+`"`), argsAsBase64
	}
	return json.Marshal(w)
}

// writesAsItself reports whether bytes are JSON that stays the same within JSON: what
// a codec wrote must come back byte for byte. A field that is null would be one that is
// not set.
func writesAsItself(args []byte) bool {
	text, err := json.Marshal(json.RawMessage(args))
	return err == nil && bytes.Equal(text, args) && string(args) != "null"
}

// UnmarshalJSON reads the fields that it knows. One that cannot be read is left as it
// is, and named in the error when all others were read (P8).
func (s *ScheduleSettings) UnmarshalJSON(text []byte) error {
	var args json.RawMessage
	var as, catchUp string
	var hash []byte
	err := ReadFields(text, map[string]any{
		"cron": &s.Cron, "zone": &s.Zone, "kind": &s.Kind, "version": &s.Version, "args": &args, "args_as": &as, "queue": &s.Queue,
		"priority": &s.Priority, "attempts": &s.Attempts, "timeout": &s.Timeout, "key": &s.Key, "tags": &s.Tags,
		"capabilities": &s.Capabilities, "budget": &s.Budget, "headers": &s.Headers, "unique": &hash, "unique_period": &s.Unique.Period,
		"skip_if_active": &s.SkipIfActive, "catch_up": &catchUp, "paused": &s.Paused,
	})
	if catchUp != "" {
		s.CatchUp = CatchUp(catchUp)
	}
	if hash != nil {
		s.Unique.Hash = hash
	}
	switch {
	case args == nil:
	case as == argsAsBase64:
		var decoded []byte
		if bad := json.Unmarshal(args, &decoded); bad != nil {
			err = errors.Join(err, Invalid("args", string(args), "cannot be read: "+bad.Error()))
		} else {
			s.Args = decoded
		}
	case as != "" && as != argsAsJSON:
		err = errors.Join(err, Invalid("args_as", as, "must be json or base64"))
	default:
		s.Args = args
	}
	return err
}
