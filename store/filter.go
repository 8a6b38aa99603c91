package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Bounds of what finding jobs may cost, however many there are. A page walks an
// index in its order; where none has that order, it sorts the few jobs that an
// index names, or walks another. Both are looked at twice: once to see that they
// are few.
const (
	MaxPage    = 1_000  // jobs on a page
	MaxWalked  = 10_000 // rows of an index that one page walks
	MaxSorted  = 2_500  // jobs that are sorted for one page: the waiting ones of a queue, the running ones
	MaxCounted = 10_000 // jobs that a count comes to
	MaxQueues  = 1_000  // queues that one answer goes through, one after the other
	MaxVisits  = MaxWalked + 4*MaxSorted
)

// Filter chooses jobs; zero fields match everything.
type Filter struct {
	States []job.State  `json:"states,omitempty"`
	Queue  string       `json:"queue,omitempty"`
	Kind   string       `json:"kind,omitempty"` // exactly, or the beginning of several: "mail.*"
	Key    string       `json:"key,omitempty"`
	Tag    string       `json:"tag,omitempty"`
	Wait   job.Wait     `json:"wait,omitempty"`   // what a suspended job waits for
	Worker job.WorkerID `json:"worker,omitempty"` // who runs it; only running jobs match
	// Fingerprint is that of the last failure, see job.Failure.
	Fingerprint string `json:"fingerprint,omitempty"`
	// DueBefore and DueAfter tell ready from scheduled among waiting jobs.
	DueBefore time.Time `json:"due_before,omitzero"`
	DueAfter  time.Time `json:"due_after,omitzero"`
	// CreatedBefore and CreatedAfter bound the time of Enqueue.
	CreatedBefore time.Time `json:"created_before,omitzero"`
	CreatedAfter  time.Time `json:"created_after,omitzero"`
	// FinishedBefore and FinishedAfter bound the time of the end; only jobs that
	// have ended match.
	FinishedBefore time.Time `json:"finished_before,omitzero"`
	FinishedAfter  time.Time `json:"finished_after,omitzero"`
}

// Check refuses what no job can match: it is a mistake, and would look as if there
// were none.
func (f *Filter) Check() error {
	var errs []error
	name := func(field, value string) {
		if value != "" {
			errs = append(errs, job.CheckName(field, value))
		}
	}
	text := func(field, value string) {
		if value != "" {
			errs = append(errs, job.CheckText(field, value, 0, job.MaxKey))
		}
	}
	name("Filter.Queue", f.Queue)
	prefix, _ := f.KindPrefix()
	name("Filter.Kind", prefix)
	name("Filter.Tag", f.Tag)
	text("Filter.Key", f.Key)
	text("Filter.Fingerprint", f.Fingerprint)
	for _, s := range f.States {
		if !slices.Contains(job.States(), s) {
			errs = append(errs, job.Invalid("Filter.States", s, "must be states of jobs"))
		}
	}
	if f.Worker < 0 {
		errs = append(errs, job.Invalid("Filter.Worker", f.Worker, "must be 0 (any) or the number of a worker"))
	}
	for field, at := range map[string]time.Time{
		"Filter.DueBefore": f.DueBefore, "Filter.DueAfter": f.DueAfter, "Filter.CreatedBefore": f.CreatedBefore,
		"Filter.CreatedAfter": f.CreatedAfter, "Filter.FinishedBefore": f.FinishedBefore, "Filter.FinishedAfter": f.FinishedAfter,
	} {
		errs = append(errs, job.CheckTime(field, at))
	}
	return errors.Join(errs...)
}

// KindPrefix is the kind that is asked for, and whether it is only the beginning.
func (f *Filter) KindPrefix() (string, bool) { return strings.CutSuffix(f.Kind, "*") }

// Reads is which states of the live jobs and of the archive a filter reads. A
// single 0 stands for all of that table, in no order of states.
func (f *Filter) Reads() (live, archived []job.State) {
	if len(f.States) == 0 && f.Queue == "" && f.Wait == job.NoWait && f.Worker == 0 {
		live, archived = []job.State{0}, []job.State{0}
	} else {
		for _, s := range job.States() {
			switch {
			case len(f.States) > 0 && !slices.Contains(f.States, s):
			case f.Wait != job.NoWait && s != job.Suspended:
			case f.Worker != 0 && s != job.Running:
			case s.Final():
				archived = append(archived, s)
			default:
				live = append(live, s)
			}
		}
	}
	if !f.FinishedBefore.IsZero() || !f.FinishedAfter.IsZero() {
		live = nil
	}
	return live, archived
}

// ReadsLive reports whether a filter reads live jobs of a state.
func (f *Filter) ReadsLive(s job.State) bool {
	live, _ := f.Reads()
	return slices.Contains(live, s)
}

// Matches looks at what a store cannot compare in a statement: the last failure.
func (f *Filter) Matches(failures job.Failures) bool {
	if f.Fingerprint == "" {
		return true
	}
	last, ok := failures.Last()
	return ok && last.Fingerprint == f.Fingerprint
}

// JSON is the filter as it is kept and shown.
func (f *Filter) JSON() string {
	text, err := json.Marshal(f)
	if err != nil {
		return "{}" // of a state that Check refuses
	}
	return string(text)
}
