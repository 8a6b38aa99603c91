package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// Tick is the name of the service, for who wakes it.
const Tick = "schedules"

const (
	// period is how soon a failed look is repeated.
	period = 1500 * time.Millisecond
	// lateBy is how long those who do not lead leave a due time to the leader.
	lateBy = 3 * period
	// longest is the longest sleep of the leader; others sleep three times as long.
	longest = time.Minute
	others  = 3
	// soon is when one looks again that another was faster than.
	soon = 50 * time.Millisecond
	// What one transaction takes, beside the first firing.
	maxJobs  = 1000
	maxBytes = 1 << 20
	// A schedule that could not be fired is tried again after firstPause, then twice
	// as long each time, up to longest.
	firstPause = time.Second
)

// Config says what to fire. All of it must be given, but for Logger and Leads.
type Config struct {
	Store  store.Schedules
	Begin  Beginner
	Logger *slog.Logger // [slog.Default()]
	// Known is what is declared and set, nil before that is known; Look reads it anew.
	Known func() *store.Effective
	Look  func(ctx context.Context) error
	// Leads says whether this process is the leader [always].
	Leads func() bool
	// Drafts makes the jobs of due times.
	Drafts func(ctx context.Context, e *Entry, due []time.Time) ([]job.Draft, error)
}

// Beginner is who works on jobs in this process.
type Beginner interface {
	// HandOver has those of the drafts ask to begin in the commit that accepts them for
	// which a slot is free (J34).
	HandOver(drafts []job.Draft)
	// Accepted takes note of drafts that the store has accepted.
	Accepted(drafts []job.Draft)
}

// Scheduler fires schedules. Its Service does the ticking.
type Scheduler struct {
	config Config
	log    *slog.Logger

	// Of RunOnce, which is called by one goroutine at a time.
	revision int64 // of entries
	read     bool
	entries  []Entry

	mu     sync.Mutex
	failed map[string]*refusal // by name: those that could not be fired
	told   map[string]string   // faults that were logged
}

// refusal is why a schedule could not be fired.
type refusal struct {
	times int
	err   error
	until time.Time // of this process's clock
}

// New makes one.
func New(c Config) *Scheduler {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Leads == nil {
		c.Leads = func() bool { return true }
	}
	return &Scheduler{config: c, log: c.Logger, failed: map[string]*refusal{}, told: map[string]string{}}
}

// Service fires whenever something is due.
func (s *Scheduler) Service() supervise.Service {
	return supervise.Every(Tick, period, func(ctx context.Context) error {
		wait, err := s.RunOnce(ctx)
		if err != nil {
			return err
		}
		return supervise.NextIn(wait)
	}, supervise.Timeout(30*time.Second))
}

// RunOnce looks once, fires what is due, and says when to look again.
func (s *Scheduler) RunOnce(ctx context.Context) (time.Duration, error) {
	leads := s.config.Leads()
	wait := longest
	if !leads {
		wait *= others
	}
	changed, some := s.readEntries()
	switch {
	case !some:
		return wait, nil // whoever declares one wakes us
	case changed && !leads:
		return lateBy, nil // the leader comes first
	}
	begin := time.Now()
	states, err := s.config.Store.ScheduleStates(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for schedules: %w", err)
	}
	if states.Revision != s.revision {
		if err := s.config.Look(ctx); err != nil {
			return 0, err
		}
		s.readEntries()
	}
	next, err := s.fireDue(ctx, &states)
	if err != nil {
		return 0, err
	}
	if next.IsZero() {
		return wait, nil
	}
	until := next.Sub(states.Now) - time.Since(begin)
	if !leads {
		until = max(until, 0) + lateBy
	}
	return min(max(until, 0), wait), nil
}

// readEntries reads what is declared and set, if that has changed since it was read
// before. It reports whether it has, but for the first time, and whether there is
// anything to fire.
func (s *Scheduler) readEntries() (changed, some bool) {
	known := s.config.Known()
	if known == nil {
		return false, false
	}
	if !s.read || known.Revision != s.revision {
		changed = s.read
		s.entries, s.revision, s.read = Read(known), known.Revision, true
		s.tell()
	}
	for i := range s.entries {
		if s.entries[i].Fault == nil {
			return changed, true
		}
	}
	return changed, false
}

// tell logs each fault once.
func (s *Scheduler) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := map[string]string{}
	for i := range s.entries {
		e := &s.entries[i]
		if e.Fault == nil {
			continue
		}
		told[e.Name] = e.Fault.Error()
		if s.told[e.Name] != told[e.Name] {
			s.log.Error("a schedule cannot be fired", "schedule", e.Name, "error", e.Fault)
		}
	}
	s.told = told
}

// pending is a firing with what it is of.
type pending struct {
	entry *Entry
	decision
}

// fireDue fires what is due, and answers when something is to be done next, by the
// store's clock; zero: never.
func (s *Scheduler) fireDue(ctx context.Context, states *store.ScheduleStates) (next time.Time, err error) {
	earliest := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	by := make(map[string]*store.ScheduleState, len(states.List))
	for i := range states.List {
		by[states.List[i].Name] = &states.List[i]
	}
	var list []pending
	for i := range s.entries {
		e := &s.entries[i]
		if e.Fault != nil {
			continue
		}
		if wait := s.putOff(e.Name); wait > 0 {
			earliest(states.Now.Add(wait))
			continue
		}
		p := pending{e, decide(e, by[e.Name], states.Now)}
		switch {
		case !p.needed:
			if state := by[e.Name]; state != nil {
				earliest(state.Next)
			}
			continue
		case len(p.due) > 0:
			if p.firing.Jobs, err = s.config.Drafts(ctx, e, p.due); err != nil {
				earliest(states.Now.Add(s.fail(e.Name, err)))
				continue
			}
		}
		list = append(list, p)
	}
	// Those that could not be fired before go alone, after the others.
	slices.SortStableFunc(list, func(a, b pending) int { return cmp.Compare(s.failures(a.entry.Name), s.failures(b.entry.Name)) })
	for len(list) > 0 {
		n := s.portion(list)
		moved, err := s.fire(ctx, list[:n])
		if err != nil {
			return time.Time{}, err
		}
		for i, p := range list[:n] {
			wait := s.putOff(p.entry.Name)
			switch {
			case moved[i]:
				earliest(p.firing.Next)
				continue
			case wait <= 0 && p.firing.New:
				wait = firstPause // its state may be one too many to be read
			case wait <= 0: // another was faster, or the settings have changed
				wait = soon
			}
			earliest(states.Now.Add(wait))
		}
		list = list[n:]
	}
	return next, nil
}

// portion is how many of them one transaction takes: some firings, jobs and bytes.
func (s *Scheduler) portion(list []pending) int {
	jobs, bytes := 0, 0
	for i := range list {
		f := &list[i].firing
		jobs += len(f.Jobs)
		for j := range f.Jobs {
			bytes += len(f.Jobs[j].Args) + len(f.Jobs[j].HeaderBytes)
		}
		alone := s.failures(list[i].entry.Name) > 0
		if i > 0 && (alone || i == store.MaxFirings || jobs > maxJobs || bytes > maxBytes) {
			return i
		}
		if alone {
			return 1
		}
	}
	return len(list)
}

// fire fires together, and each alone when that fails: one that cannot be fired
// costs itself only (P8).
func (s *Scheduler) fire(ctx context.Context, list []pending) (moved []bool, err error) {
	moved = make([]bool, len(list))
	firings := make([]store.Firing, len(list))
	for i := range list {
		firings[i] = list[i].firing
	}
	fired, err := s.begin(ctx, firings)
	if err == nil {
		for i := range fired {
			moved[i] = s.note(ctx, &list[i], &fired[i])
		}
		return moved, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if _, down := s.config.Store.ScheduleStates(ctx); down != nil {
		return nil, fmt.Errorf("fire schedules: %w", errors.Join(err, down))
	}
	for i := range list {
		if len(list) > 1 {
			fired, err = s.begin(ctx, firings[i:i+1])
		}
		if err != nil {
			s.fail(list[i].entry.Name, err)
			continue
		}
		moved[i] = s.note(ctx, &list[i], &fired[0])
	}
	return moved, nil
}

// begin has the store fire. Jobs for which a handler of this process is free begin in the
// same commit.
func (s *Scheduler) begin(ctx context.Context, firings []store.Firing) ([]store.Fired, error) {
	for i := range firings {
		s.config.Begin.HandOver(firings[i].Jobs)
	}
	settle := func(h job.HandedOver) { // what the store did not
		for i := range firings {
			job.SettleHandOvers(firings[i].Jobs, h)
		}
	}
	returned := false
	defer func() {
		if !returned { // it panicked: nobody knows
			settle(job.HandedOver{Unknown: true})
		}
	}()
	fired, err := s.config.Store.Fire(ctx, s.revision, firings)
	returned = true
	if !errors.Is(err, job.ErrOutcomeUnknown) {
		settle(job.HandedOver{})
	}
	return fired, err
}

// note logs what a firing has come to, and lets claims know of its jobs.
func (s *Scheduler) note(ctx context.Context, p *pending, fired *store.Fired) bool {
	if !fired.Moved {
		return false
	}
	s.mu.Lock()
	delete(s.failed, p.entry.Name)
	s.mu.Unlock()
	s.config.Begin.Accepted(p.firing.Jobs)
	for i, r := range fired.Receipts {
		text := "a schedule has fired"
		if r.Duplicate {
			text = "a schedule was skipped: a job of it is live"
		}
		s.log.LogAttrs(ctx, slog.LevelDebug, text, slog.String("schedule", p.entry.Name), slog.Time("due", p.due[i]), slog.String("job", r.ID.String()))
	}
	return true
}

// fail notes that a schedule could not be fired, and for how long it is put off. Its
// due times stay: CatchUp says what becomes of them.
func (s *Scheduler) fail(name string, err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failed[name]
	if f == nil {
		f = &refusal{}
		s.failed[name] = f
	}
	if f.err == nil || f.err.Error() != err.Error() {
		s.log.Error("a schedule could not be fired; it is tried again", "schedule", name, "error", err)
	}
	pause := min(firstPause<<min(f.times, 10), longest)
	f.times, f.err, f.until = f.times+1, err, time.Now().Add(pause)
	return pause
}

// putOff is how long a schedule that could not be fired is left alone.
func (s *Scheduler) putOff(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failed[name]; f != nil {
		return time.Until(f.until)
	}
	return 0
}

// failures is how often a schedule could not be fired, in a row.
func (s *Scheduler) failures(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failed[name]; f != nil {
		return f.times
	}
	return 0
}

// Failure is why this process could not fire a schedule the last time; nil when it
// could.
func (s *Scheduler) Failure(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failed[name]; f != nil {
		return f.err
	}
	return nil
}
