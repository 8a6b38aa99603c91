package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/runner"
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

	running atomic.Bool // Run runs, and hears of changes

	mu     sync.Mutex
	runner *runner.Runner   // while Run runs
	finder *settings.Finder // while Run runs and there are patterns
	every  map[string]time.Duration
	told   map[string]bool // conflicts that were logged
	gated  bool            // the runner goes by limits on jobs
}

// queueRules are what holds for queues as this process knows it. They are replaced,
// never changed: each enqueue reads them.
type queueRules struct {
	cfg      *Config
	patterns []string                 // of cfg.Queues, the longest first
	holds    map[string]QueueSettings // by queue, where anything is declared or set
}

// rulesOf reads what holds, of what is known; nil before that.
func (c *Config) rulesOf(known *store.Effective) *queueRules {
	r := &queueRules{cfg: c, patterns: c.patterns(), holds: map[string]QueueSettings{}}
	if known == nil {
		return r
	}
	for _, s := range known.Settings {
		if s.Kind != store.SettingQueue {
			continue
		}
		holds := QueueSettings{}
		if s.Owner == "" { // only operators say something: the rest is the code's own
			own, _ := r.config(s.Name)
			holds = own.settings()
		}
		if err := json.Unmarshal(s.Value, &holds); err != nil { // those fields only (P8)
			c.Logger.Warn("settings of a queue cannot be read", "queue", s.Name, "error", err)
		}
		r.holds[s.Name] = holds
	}
	return r
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
// with what operators have set over it; else what the code of this process says.
func (r *queueRules) settings(name string) QueueSettings {
	if s, ok := r.holds[name]; ok {
		return s
	}
	own, _ := r.config(name)
	return own.settings()
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
		Name: name, Workers: own.Workers, Total: max(s.Total, 0), Keep: s.Keep(),
		Backoff: backoff, CoolDown: s.Backoff, Aging: max(s.Aging, 0), Found: found,
	}
}

// runnerQueues are all that this process serves: those that it names, and of those
// that its patterns name the ones that have settings or were found to have jobs.
func (r *queueRules) runnerQueues(found []string) []runner.QueueConfig {
	var queues []runner.QueueConfig
	for _, name := range r.cfg.queueNames() {
		if !job.IsPattern(name) {
			queues = append(queues, r.runnerQueue(name, false))
		}
	}
	if len(r.patterns) == 0 {
		return queues
	}
	for name := range r.holds {
		found = append(found, name)
	}
	slices.Sort(found)
	found = slices.DeleteFunc(slices.Compact(found), func(name string) bool {
		_, named := r.cfg.Queues[name]
		return named || !job.MatchesAny(r.patterns, name)
	})
	for _, name := range found[:min(len(found), settings.MaxFound)] {
		queues = append(queues, r.runnerQueue(name, true))
	}
	return queues
}

// settingsChanged acts on what holds now.
func (e *Engine) settingsChanged(now *store.Effective) {
	e.followed.rules.Store(e.cfg.rulesOf(now))
	e.followed.limits.Store(e.cfg.limitRulesOf(now))
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
	if err := f.runner.SetQueues(f.rules.Load().runnerQueues(found)); err != nil {
		e.cfg.Logger.Error("the settings of queues cannot be followed", "error", err)
	}
	gates := f.limits.Load().gates
	f.runner.SetGates(gates)
	if gates != nil || f.gated {
		f.runner.Wake(keeper.Tick("gates")) // jobs may wait where they do not belong any more
	}
	f.gated = gates != nil
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
	for _, c := range conflicts(now) {
		told[c] = true
		if !e.followed.told[c] {
			e.cfg.Logger.Warn("settings are declared by two owners: " + c)
		}
	}
	e.followed.told = told
}

// conflicts says which names two owners declare differently.
func conflicts(now *store.Effective) (list []string) {
	for _, s := range now.Settings {
		for _, c := range s.Conflicts {
			list = append(list, fmt.Sprintf("%s %s is declared by %s, and differently by %s %s, which does not count",
				s.Kind, s.Name, s.Owner, c.Owner, strings.TrimSpace(c.Version)))
		}
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
	f.runner, f.finder = r, finder
	f.running.Store(true)
	e.apply(f.mirror.Known())
	services = append(services, f.mirror.Service())
	if finder != nil {
		services = append(services, finder.Service())
	}
	return services
}

// unfollow ends that.
func (e *Engine) unfollow() {
	f := &e.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runner, f.finder, f.every = nil, nil, nil
	f.running.Store(false)
}
