package job

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
)

// LimitSettings are what code declares and operators set for one limit: which jobs it
// is about, how many of them run at once, and how many begin in a time. A zero field
// is not set; NoLimit says that there is none, which differs from it: an operator's
// "no rate" stands over the rate that code declares.
//
// One that names neither Queue nor Kind is about no jobs. It is a rate to acquire from.
//
// It is kept as a JSON object, so that programs of any build and language read and
// apply it.
type LimitSettings struct {
	Queue string // the jobs of this queue
	Kind  string // the jobs of this kind, or of those that a pattern names ("render.*")
	// PerKey bounds each key of these jobs by itself. Jobs without a key are not bounded.
	PerKey     bool
	Concurrent int            // of these jobs in the cluster, or of each key; NoLimit
	Ordered    bool           // with PerKey and Concurrent 1: also while the first waits for a retry
	Weights    map[string]int // of keys, with PerKey: how much more often than others one is served [1]
	Burst      int            // tokens that a full bucket holds [as many as come in a second, at least 1]
	PerSecond  float64        // tokens that come in a second; NoLimit
}

// NoLimit is no bound, as opposed to one that is not set.
const NoLimit = -1

// Bounds of limits.
const (
	MaxConcurrent = MaxTotal
	MaxBurst      = 1_000_000_000
	MaxPerSecond  = 1_000_000
	MinPerSecond  = 1e-6 // one in twelve days
	MaxWeight     = 1000 // of a key, and of a worker in a split
	MaxWeights    = 1000
)

// Check reports every field that is out of bounds, and those that do not go together.
// at is what the settings are of, and stands in front of each field.
func (s *LimitSettings) Check(at string) error {
	errs := []error{s.CheckFields(at)}
	bad := func(field string, value any, bound string) { errs = append(errs, Invalid(at+"."+field, value, bound)) }
	if s.Concurrent == 0 && s.PerSecond == 0 && !s.PerKey { // with keys alone it is fairness between them
		bad("PerSecond", s.PerSecond, "must be set, or Concurrent")
	}
	if s.Queue == "" && s.Kind == "" {
		const bound = "needs a Queue or a Kind, which say whose"
		if s.Concurrent != 0 {
			bad("Concurrent", s.Concurrent, bound)
		}
		if s.PerKey {
			bad("PerKey", s.PerKey, bound)
		}
	}
	if s.Ordered && (!s.PerKey || s.Concurrent != 1) {
		bad("Ordered", s.Ordered, "needs PerKey, and Concurrent 1")
	}
	if len(s.Weights) > 0 && !s.PerKey {
		bad("Weights", fmt.Sprintf("of %d keys", len(s.Weights)), "need PerKey")
	}
	if s.Burst != 0 && s.PerSecond == 0 {
		bad("Burst", s.Burst, "needs PerSecond")
	}
	return errors.Join(errs...)
}

// CheckFields reports every field that is out of bounds by itself: what operators set
// is put over other fields.
func (s *LimitSettings) CheckFields(at string) error {
	var errs []error
	bad := func(field string, value any, bound string) { errs = append(errs, Invalid(at+"."+field, value, bound)) }
	if s.Queue != "" {
		errs = append(errs, CheckName(at+".Queue", s.Queue))
	}
	if s.Kind != "" {
		errs = append(errs, checkKindPattern(at+".Kind", s.Kind))
	}
	if s.Concurrent < NoLimit || s.Concurrent > MaxConcurrent {
		bad("Concurrent", s.Concurrent, fmt.Sprintf("must be -1 (none), 0 (not set) or 1..%d", MaxConcurrent))
	}
	if n := len(s.Weights); n > MaxWeights {
		bad("Weights", fmt.Sprintf("of %d keys", n), fmt.Sprintf("must be of at most %d", MaxWeights))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Weights)) {
		errs = append(errs, CheckText(at+".Weights", key, 1, MaxKey))
		if w := s.Weights[key]; w < 1 || w > MaxWeight {
			bad(fmt.Sprintf("Weights[%q]", key), w, fmt.Sprintf("must be 1..%d", MaxWeight))
		}
	}
	if s.Burst < 0 || s.Burst > MaxBurst {
		bad("Burst", s.Burst, fmt.Sprintf("must be 0 (default) or 1..%d", MaxBurst))
	}
	if r := s.PerSecond; r != 0 && r != NoLimit && !(r >= MinPerSecond && r <= MaxPerSecond) {
		bad("PerSecond", r, fmt.Sprintf("must be -1 (none), 0 (not set) or %v..%d", MinPerSecond, MaxPerSecond))
	}
	return errors.Join(errs...)
}

// checkKindPattern checks the name of a kind, or a pattern of such names.
func checkKindPattern(field, name string) error {
	if !IsPattern(name) {
		return CheckName(field, name)
	}
	if _, err := path.Match(name, ""); err != nil {
		return Invalid(field, name, "must be a kind, a prefix ending in * or a glob: "+err.Error())
	}
	return CheckText(field, name, 1, MaxName)
}

// OfJobs reports whether the limit is about jobs: its Concurrent and PerSecond close
// gates. Otherwise it is only to acquire from.
func (s *LimitSettings) OfJobs() bool { return s.Queue != "" || s.Kind != "" }

// Covers reports whether the limit is about jobs of this kind in this queue.
func (s *LimitSettings) Covers(queue, kind string) bool {
	return s.OfJobs() && (s.Queue == "" || s.Queue == queue) && (s.Kind == "" || Matches(s.Kind, kind))
}

// MaxRunning is how many of its jobs, or of each key, run at once; 0 when that has no
// bound.
func (s *LimitSettings) MaxRunning() int { return max(s.Concurrent, 0) }

// InOrder reports whether each key's jobs run one after the other, in order, also past
// a retry. What operators set may have taken the ground from Ordered.
func (s *LimitSettings) InOrder() bool { return s.Ordered && s.PerKey && s.Concurrent == 1 }

// Weight is how much more often than others a key is served.
func (s *LimitSettings) Weight(key string) int { return max(s.Weights[key], 1) }

// Rate is how fast tokens come and how many a bucket holds; the zero Rate when there
// is no bound.
func (s *LimitSettings) Rate() Rate {
	if s.PerSecond <= 0 {
		return Rate{}
	}
	return Rate{PerSecond: s.PerSecond, Burst: cmp.Or(s.Burst, max(1, int(math.Ceil(s.PerSecond))))}
}

// Rate is how fast tokens come and how many a full bucket holds.
type Rate struct {
	PerSecond float64
	Burst     int
}

// fields are the fields as JSON names them, with where each is kept.
func (s *LimitSettings) fields() map[string]any {
	return map[string]any{
		"queue": &s.Queue, "kind": &s.Kind, "per_key": &s.PerKey,
		"concurrent": &s.Concurrent, "ordered": &s.Ordered, "weights": &s.Weights,
		"burst": &s.Burst, "per_second": &s.PerSecond,
	}
}

// LimitFields are the fields of LimitSettings as JSON names them, in order.
func LimitFields() []string {
	return slices.Sorted(maps.Keys(new(LimitSettings).fields()))
}

// MarshalJSON writes the fields that are set.
func (s LimitSettings) MarshalJSON() ([]byte, error) { return WriteFields(s.fields()) }

// UnmarshalJSON reads the fields that it knows. One that cannot be read is left as it
// is, and named in the error when all others were read (P8).
func (s *LimitSettings) UnmarshalJSON(text []byte) error { return ReadFields(text, s.fields()) }
