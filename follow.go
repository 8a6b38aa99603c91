package pawl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/internal/schedules"
	"github.com/pawlwork/pawl/internal/settings"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// followed is what an engine makes of what is declared and set.
type followed struct {
	mirror *settings.Mirror
	rules  atomic.Pointer[queueRules]
	limits atomic.Pointer[limitRules]
	topics atomic.Pointer[topicRules]

	running atomic.Bool // Run runs, and hears of changes

	mu        sync.Mutex
	runner    *runner.Runner       // while Run runs
	finder    *settings.Finder     // while Run runs and there are patterns
	scheduler *schedules.Scheduler // while Run runs, nil where the store keeps no schedules
	every     map[string]time.Duration
	told      map[string]bool // conflicts that were logged
	gates     string          // the limits on jobs that the runner goes by: their Print
	alike     bool            // it was logged that owners look like versions of one program
}

// queueRules are what holds for queues as this process knows it. They are replaced
// when that changes: each enqueue reads them.
type queueRules struct {
	cfg      *Config
	patterns []string         // of cfg.Queues, the longest first
	known    *store.Effective // nil before it was read

	worked  sync.Map     // what settings worked out, by queue
	keeping atomic.Int32 // how many of them
}

// maxWorked bounds the queues whose settings are kept worked out; those of more are
// worked out each time.
const maxWorked = 10_000

// rulesOf reads what holds, of what is known; nil before that.
func (c *Config) rulesOf(known *store.Effective) *queueRules {
	return &queueRules{cfg: c, patterns: c.patterns(), known: known}
}

// patterns are the queues of the configuration that name others, the longest first.
func (c *Config) patterns() []string {
	list := slices.DeleteFunc(c.queueNames(), func(name string) bool { return !job.IsPattern(name) })
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// config is what the code of this process says for a queue: by its name, else by the
// longest pattern that names it. served is false when it says nothing.
func (r *queueRules) config(name string) (q QueueConfig, served bool) {
	if q, served = r.cfg.Queues[name]; served || len(r.patterns) == 0 {
		return q, served
	}
	for _, p := range r.patterns {
		if job.Matches(p, name) {
			return r.cfg.Queues[p], true
		}
	}
	return QueueConfig{}, false
}

// settings is what holds for a queue: what is declared, by whichever version counts,
// for it or for a pattern that names it, else what the code of this process says; over
// it lies what operators have set.
func (r *queueRules) settings(name string) QueueSettings {
	if s, ok := r.worked.Load(name); ok {
		return s.(QueueSettings)
	}
	holds, err := r.workOut(name)
	if r.keeping.Load() >= maxWorked {
		return holds
	}
	if _, before := r.worked.LoadOrStore(name, holds); !before {
		r.keeping.Add(1)
		if err != nil {
			r.cfg.Logger.Warn("settings of a queue cannot be read", "queue", name, "error", err)
		}
	}
	return holds
}

// workOut is settings from the beginning. Fields that cannot be read are not set (P8).
func (r *queueRules) workOut(name string) (holds QueueSettings, err error) {
	var s store.EffectiveSetting
	if r.known != nil {
		s, _ = r.known.Queue(name)
	}
	if s.Owner == "" { // nobody declares anything: the code's own holds
		own, _ := r.config(name)
		holds = own.settings()
	}
	if len(s.Value) > 0 {
		err = json.Unmarshal(s.Value, &holds)
	}
	return holds, err
}

// keep is how long ended jobs of a queue are kept, now.
func (r *queueRules) keep(queue string) job.Keep {
	s := r.settings(queue)
	return s.Keep()
}

// attempts are those of a job that is enqueued now.
func (r *queueRules) attempts(queue string) int {
	return cmp.Or(r.settings(queue).Attempts, r.cfg.Attempts)
}

// runnerQueue is how this process works on a queue.
func (r *queueRules) runnerQueue(name string, found bool) runner.QueueConfig {
	own, _ := r.config(name)
	s := r.settings(name)
	backoff := own.Backoff
	if backoff == nil {
		backoff = r.cfg.Backoff
	}
	if backoff == nil && s.Backoff != nil {
		backoff = s.Backoff.Func()
	}
	return runner.QueueConfig{
		Name: name, Workers: own.Workers, Weight: own.Weight, Total: max(s.Total, 0), Keep: s.Keep(),
		Backoff: backoff, CoolDown: s.Backoff, Aging: max(s.Aging, 0), Found: found,
	}
}

// runnerQueues are all that this process serves: those that it names, and of those
// that its patterns name the ones that were found to have jobs or that have settings,
// settings.MaxFound at most. Of more than that, those stay whose jobs this process
// holds, then those that have jobs: a queue without slots would strand what it holds
// of it.
func (r *queueRules) runnerQueues(found []string, holds func(queue string) bool) []runner.QueueConfig {
	var queues []runner.QueueConfig
	for _, name := range r.cfg.queueNames() {
		if !job.IsPattern(name) {
			queues = append(queues, r.runnerQueue(name, false))
		}
	}
	if len(r.patterns) == 0 {
		return queues
	}
	names := slices.Clone(found)
	if r.known != nil {
		for _, s := range r.known.Settings {
			if s.Kind == store.SettingQueue && !job.IsPattern(s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		_, named := r.cfg.Queues[name]
		return named || !job.MatchesAny(r.patterns, name)
	})
	if len(names) > settings.MaxFound {
		rank := make(map[string]int, len(names))
		for _, name := range names {
			rank[name] = 2
		}
		for _, name := range found {
			rank[name] = 1
		}
		for _, name := range names {
			if holds(name) {
				rank[name] = 0
			}
		}
		slices.SortStableFunc(names, func(a, b string) int { return rank[a] - rank[b] })
		names = names[:settings.MaxFound]
		slices.Sort(names)
	}
	for _, name := range names {
		queues = append(queues, r.runnerQueue(name, true))
	}
	return queues
}

// settingsChanged acts on what holds now.
func (e *Engine) settingsChanged(now *store.Effective) {
	e.followed.rules.Store(e.cfg.rulesOf(now))
	e.followed.limits.Store(e.cfg.limitRulesOf(now))
	e.followed.topics.Store(e.cfg.topicRulesOf(now))
	if e.limiters != nil {
		e.limiters.Changed()
	}
	e.followed.mu.Lock()
	defer e.followed.mu.Unlock()
	e.tellConflicts(now)
	e.apply(now)
}

// queuesFound acts on queues that patterns name, and that came or went.
func (e *Engine) queuesFound() {
	e.followed.mu.Lock()
	defer e.followed.mu.Unlock()
	e.apply(e.followed.mirror.Known())
}

// apply makes the runner follow. The caller holds followed.mu.
func (e *Engine) apply(now *store.Effective) {
	f := &e.followed
	if f.runner == nil {
		return
	}
	var found []string
	if f.finder != nil {
		found = f.finder.Found()
	}
	if err := f.runner.SetQueues(f.rules.Load().runnerQueues(found, f.runner.Holds)); err != nil {
		e.cfg.Logger.Error("the settings of queues cannot be followed", "error", err)
	}
	gates := f.limits.Load().gates
	f.runner.SetGates(gates)
	if print := gates.Print(); print != f.gates {
		for _, fault := range gates.Faults() { // once, not with every other change
			e.cfg.Logger.Warn("limits: " + fault)
		}
		f.runner.Wake(keeper.Tick("gates")) // jobs may wait where they do not belong any more
		f.gates = print
	}
	if now == nil {
		return
	}
	var pauses runner.Pauses
	every := map[string]time.Duration{}
	for _, p := range now.Pauses {
		switch p.Scope {
		case store.PauseAll:
			pauses.All = true
		case store.PauseQueue:
			pauses.Queues = append(pauses.Queues, p.Name)
		case store.PauseKind:
			pauses.Kinds = append(pauses.Kinds, p.Name)
		}
	}
	f.runner.SetPauses(pauses)
	f.runner.GoBy(now.Revision)
	if f.scheduler != nil {
		f.runner.Wake(schedules.Tick)
	}
	for _, s := range now.Settings {
		if s.Kind == store.SettingUpkeep {
			if d := upkeepEvery(s.Value); d > 0 {
				every[s.Name] = d
			}
		}
	}
	before := f.every
	f.every = every
	for _, round := range keeper.Names() {
		if before[round] != every[round] {
			f.runner.Wake(keeper.Tick(round))
		}
	}
}

// every is how often a round is done by its settings; 0 where there are none.
func (e *Engine) every(round string) time.Duration {
	e.followed.mu.Lock()
	defer e.followed.mu.Unlock()
	return e.followed.every[round]
}

// tellConflicts logs each conflict once. The caller holds followed.mu.
func (e *Engine) tellConflicts(now *store.Effective) {
	told := map[string]bool{}
	for _, c := range e.conflicts(now) {
		told[c] = true
		if !e.followed.told[c] {
			e.cfg.Logger.Warn("settings are declared differently: " + c)
		}
	}
	e.followed.told = told
	for _, s := range now.Settings {
		for _, c := range s.Conflicts {
			if !e.followed.alike && programOf(s.Owner) == programOf(c.Owner) {
				e.followed.alike = true
				e.cfg.Logger.Warn("two owners look like versions of one program, and are taken for two programs: "+
					"the first keeps what both declare until its last process has left; give both the same Config.Owner",
					"owner", s.Owner, "other", c.Owner)
			}
		}
	}
}

// versionSuffix is what the name of a binary often ends with: -1.2, _v3, .20261116.
var versionSuffix = regexp.MustCompile(`[-_.@]v?[0-9][0-9A-Za-z.+_-]*$`)

// programOf is an owner without what looks like a version.
func programOf(owner string) string {
	if at := versionSuffix.FindStringIndex(owner); at != nil && at[0] > 0 {
		return owner[:at[0]]
	}
	return owner
}

// conflicts says which names two owners declare differently, and which of those that
// this process declares another one of its own version does.
func (e *Engine) conflicts(now *store.Effective) (list []string) {
	if now == nil {
		return nil
	}
	for _, s := range now.Settings {
		for _, c := range s.Conflicts {
			list = append(list, fmt.Sprintf("%s %s is declared by %s, and differently by %s %s, which does not count",
				s.Kind, s.Name, s.Owner, c.Owner, strings.TrimSpace(c.Version)))
		}
	}
	if !e.followed.running.Load() {
		return list // it declares nothing
	}
	for _, own := range e.cfg.declares() {
		value, err := own.Form(own.Name, own.Value)
		s, known := now.Of(own.Setting)
		if err != nil || !known || s.Owner != e.cfg.Owner || s.Version != e.cfg.Version || bytes.Equal(s.Declared, value) {
			continue
		}
		list = append(list, fmt.Sprintf("%s %s is declared as %s by this process of %s %s, and as %s by another one of that version, which started later and counts",
			s.Kind, s.Name, value, s.Owner, s.Version, s.Declared))
	}
	return list
}

// follow begins to follow what is declared and set as a runner is to work. Until it
// is known what is paused, nothing is claimed.
func (e *Engine) follow(ctx context.Context, r *runner.Runner) (services []supervise.Service) {
	f := &e.followed
	var finder *settings.Finder
	if len(e.cfg.patterns()) > 0 {
		if lister, ok := e.store.(store.QueueLister); ok {
			finder = settings.NewFinder(settings.FinderConfig{
				Store: lister, Hub: e.hub, Logger: e.cfg.Logger, Patterns: e.cfg.patterns(), Named: e.cfg.queueNames(),
				Poll: runner.DefaultPoll, PollOnly: runner.DefaultPollOnly, Holds: r.Holds, Changed: e.queuesFound,
			})
		}
	}
	if err := f.mirror.Look(ctx); err != nil && ctx.Err() == nil {
		e.cfg.Logger.Warn("nothing is claimed before the settings can be read", "error", err)
		f.mirror.Forget()
		r.SetPauses(runner.Pauses{All: true, Kinds: r.Kinds()})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runner, f.finder, f.scheduler = r, finder, e.scheduler(r)
	f.running.Store(true)
	e.apply(f.mirror.Known())
	services = append(services, f.mirror.Service())
	if finder != nil {
		services = append(services, finder.Service())
	}
	if f.scheduler != nil {
		services = append(services, f.scheduler.Service())
	}
	return services
}

// unfollow ends that.
func (e *Engine) unfollow() {
	f := &e.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runner, f.finder, f.scheduler, f.every = nil, nil, nil, nil
	f.running.Store(false)
}
