package pawl

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// KeepNone keeps nothing of a finished job but its id for 24 hours, which stops
// a resend of it.
const KeepNone = job.KeepNone

// Config is how an engine works. Zero fields mean the default in brackets.
type Config struct {
	// Queues are what this process works on when it runs. An engine that only
	// enqueues needs none. When empty, PAWL_QUEUES is read: "mail=40,default"
	// names queues with their workers in this process [10]. A pattern ("*",
	// "mail.*") serves every queue that it names and that is not here by its own
	// name, up to 1,000, each with the pattern's Workers; of several patterns the
	// longest counts. Such a queue is served as soon as it has a job or settings.
	Queues Queues
	// Routes choose the queue of a kind when neither call nor type does.
	Routes []Route
	// Limits bound how many jobs run at once, and rates. They are declared as Queues
	// are, and hold for the whole cluster.
	Limits []Limit
	// Topics say which topics have versions, and how long events are kept. They are declared as
	// Queues are. A topic needs no entry.
	Topics []Topic
	// Schedules enqueue jobs at the due times of cron expressions. A process that
	// only schedules needs neither queues nor handlers.
	Schedules []Schedule
	// Namespace separates tenants of one database ["default"].
	Namespace string
	// Migrate says what opening may do to the schema [MigrateAuto].
	Migrate Migrate
	// Owner is whose code this is [the program's name, that of its file: give it by
	// hand where the file's name holds the version], and Version which
	// [PAWL_WORKER_VERSION, else the revision it was built from, else a hash of what
	// it declares]. What Queues, Limits and Topics say is declared under both when Run begins: among
	// versions that run, the one first seen last counts; of two owners that declare
	// one name differently, the first.
	Owner, Version string
	// Worker labels this process: {Prefix}-worker-{Version}-{ID}. Empty fields are
	// read from PAWL_WORKER_PREFIX [the host name] and PAWL_WORKER_ID [random].
	Worker Worker
	// Capabilities of this machine, for jobs that need them.
	Capabilities []string

	Codec  Codec  // [JSON]
	Bounds Bounds // on what is accepted

	Attempts int           // of a job that this process enqueues [25]
	Timeout  time.Duration // of one attempt [none]
	// Backoff of jobs whose queue has none [what operators have set, else exponential
	// from 1 s to 6 h: 25 attempts take about three days].
	Backoff BackoffFunc
	MaxLost int // runs lost with their process before a job dies [5]

	Beat time.Duration // between heartbeats [5 s]
	// LostAfter is how long a worker may be silent before it is lost [30 s]: at
	// least three beats, and two beats and 5 s. One that died on a machine where
	// another lives is lost at once.
	LostAfter time.Duration
	// Grace is how long handlers may go on when Run stops [20 s]. Run returns within
	// Grace and 8 s, whatever goes wrong: handlers that it cancels then get 5 s to
	// return, and the last writes have the rest, also when the store is down. Who
	// kills the process must leave it that long: 28 s of Kubernetes' 30 s.
	Grace time.Duration
	// StuckAfter a handler still ignores its cancelled context it is reported [10 s].
	StuckAfter time.Duration
	// MetricsEvery is how often what this process measures is handed to the store
	// [1 min]. Below a minute the minute that is not over is handed over in parts, so
	// that others see it grow, at a write each time. At least 1 s.
	MetricsEvery time.Duration

	Middleware []Middleware // around every handler, outermost first
	Hooks      Hooks
	Logger     *slog.Logger // [slog.Default()]
}

// Queues are the queues a process serves, by name.
type Queues map[string]QueueConfig

// QueueConfig is how one queue is worked on, or each queue that a pattern names.
// Workers, Weight and Backoff are this process's own. All else is declared for the
// whole cluster, and operators can change it while it runs (QueueHandle.Set): what a
// pattern says holds for the queues that it names and that nobody declares by their
// own name; of several patterns the longest counts.
type QueueConfig struct {
	// Workers is how many jobs of the queue run at once in this process; with a
	// pattern, of each queue that it names.
	Workers int
	// Total is how many of them run at once in the whole cluster [no bound]. It is
	// split over the processes that serve the queue, by their Weights and as far as
	// their Workers allow. That of a pattern is a total of each queue by itself. A process that comes gets its portion when it has lived for a Beat,
	// unless it is the first, and all others have heard of it, which takes
	// milliseconds, or until the lease of a silent one is over.
	// Jobs that began under a larger portion are not interrupted: until they end
	// more than Total may run. While processes have not all heard of a change, the
	// lowest holds, and one without a Total does not take part.
	Total int
	// Weight of this process where a Total is split [1]: with 3 its portion is three
	// times that of a process with 1, but never more than its Workers; 1..1000. Without
	// a Total it means nothing.
	Weight int
	// How long finished jobs are kept: KeepDone [7 days], KeepDead [30 days],
	// KeepCancelled [7 days]. KeepNone keeps nothing.
	KeepDone, KeepDead, KeepCancelled time.Duration
	// Attempts of a job [the engine's]. They are written into the job by the process
	// that enqueues it, which learns of them from the store, within a second or so.
	Attempts int
	// Backoff wins over what operators set [the engine's].
	Backoff BackoffFunc
	// Aging lets a job of priority p count as due p × Aging later, so that low
	// priority is not starved by high [strict priority].
	Aging time.Duration
}

// Worker is the label of a process.
type Worker struct{ Prefix, ID string }

// Bounds are the limits of what an engine accepts; more is an error at the caller.
type Bounds struct {
	Payload int // bytes of encoded arguments or of a result [1 MiB]
	// Event is how many bytes of data an event may have [4 MiB].
	Event int
}

// Limits of a Config.
const (
	minBeat         = 100 * time.Millisecond
	minMetricsEvery = time.Second
	defaultWorkers  = 10
	maxWorkers      = 100_000
	maxPayload      = 64 << 20
)

// withDefaults fills zero fields and reads the environment.
func (c Config) withDefaults() (Config, error) {
	// What the caller does to its own maps and slices later is its own business.
	c.Queues, c.Routes = maps.Clone(c.Queues), slices.Clone(c.Routes)
	c.Topics = slices.Clone(c.Topics)
	c.Limits = slices.Clone(c.Limits)
	for i := range c.Limits {
		c.Limits[i].Weights = maps.Clone(c.Limits[i].Weights)
	}
	c.Schedules = slices.Clone(c.Schedules)
	c.Capabilities, c.Middleware = slices.Clone(c.Capabilities), slices.Clone(c.Middleware)
	c.Namespace = cmp.Or(c.Namespace, "default")
	if c.Codec == nil {
		c.Codec = JSON
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Bounds.Payload = cmp.Or(c.Bounds.Payload, job.DefaultPayload)
	c.Bounds.Event = cmp.Or(c.Bounds.Event, stream.DefaultData)
	c.Attempts = cmp.Or(c.Attempts, job.DefaultAttempts)
	c.MaxLost = cmp.Or(c.MaxLost, job.MaxLost)
	c.Beat = cmp.Or(c.Beat, 5*time.Second)
	c.LostAfter = cmp.Or(c.LostAfter, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 20*time.Second)
	c.StuckAfter = cmp.Or(c.StuckAfter, 10*time.Second)
	c.MetricsEvery = cmp.Or(c.MetricsEvery, time.Minute)
	host, _ := os.Hostname()
	c.Worker.Prefix = cmp.Or(c.Worker.Prefix, os.Getenv("PAWL_WORKER_PREFIX"), host, "pawl")
	c.Worker.ID = cmp.Or(c.Worker.ID, os.Getenv("PAWL_WORKER_ID"), uuid.NewString()[:8])
	if len(c.Queues) == 0 {
		q, err := parseQueues(os.Getenv("PAWL_QUEUES"))
		if err != nil {
			return c, err
		}
		c.Queues = q
	}
	c.Owner = cmp.Or(c.Owner, programName())
	c.Version = cmp.Or(c.Version, os.Getenv("PAWL_WORKER_VERSION"), buildVersion(c.declares()))
	return c, nil
}

// label is how the process shows itself.
func (c *Config) label() string {
	return fmt.Sprintf("%s-worker-%s-%s", c.Worker.Prefix, c.Version, c.Worker.ID)
}

// parseQueues reads PAWL_QUEUES: names with optional workers, "mail=40,default".
// Blanks and empty parts are passed over. A name may come again, as when a chart
// appends to a list; the last number given for it counts.
func parseQueues(text string) (Queues, error) {
	queues := Queues{}
	for part := range strings.SplitSeq(text, ",") {
		name, workers, given := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); name == "" && !given {
			continue
		}
		if err := job.CheckPattern("PAWL_QUEUES", name); err != nil {
			return nil, err
		}
		n := cmp.Or(queues[name].Workers, defaultWorkers)
		if given {
			var err error
			if n, err = strconv.Atoi(strings.TrimSpace(workers)); err != nil || n < 1 || n > maxWorkers {
				return nil, job.Invalid("PAWL_QUEUES", strings.TrimSpace(part), fmt.Sprintf("must be a name, or a name with 1..%d workers: name=workers", maxWorkers))
			}
		}
		queues[name] = QueueConfig{Workers: n}
	}
	return queues, nil
}

// check reports every fault of the configuration at once, each with the Go field
// it is in.
func (c *Config) check() error {
	var errs []error
	bad := func(field string, value any, bound string) { errs = append(errs, job.Invalid(field, value, bound)) }
	errs = append(errs, job.CheckName("Config.Namespace", c.Namespace))
	if c.Migrate < store.MigrateAuto || c.Migrate > store.MigrateOff {
		bad("Config.Migrate", int(c.Migrate), "must be MigrateAuto, MigrateCheck or MigrateOff")
	}
	if c.Bounds.Event < 1 || c.Bounds.Event > maxPayload {
		bad("Config.Bounds.Event", c.Bounds.Event, fmt.Sprintf("must be 1..%d bytes", maxPayload))
	}
	if c.Bounds.Payload < 1 || c.Bounds.Payload > maxPayload {
		bad("Config.Bounds.Payload", c.Bounds.Payload, fmt.Sprintf("must be 1..%d bytes", maxPayload))
	}
	if c.Attempts < 1 || c.Attempts > job.MaxAttempts {
		bad("Config.Attempts", c.Attempts, fmt.Sprintf("must be 1..%d", job.MaxAttempts))
	}
	if c.MaxLost < 1 {
		bad("Config.MaxLost", c.MaxLost, "must be 1 or more")
	}
	if c.Timeout < 0 {
		bad("Config.Timeout", c.Timeout, "must be 0 (none) or more")
	}
	if c.Beat < minBeat {
		bad("Config.Beat", c.Beat, fmt.Sprintf("must be %v or more", minBeat))
	}
	if least := member.LeastLostAfter(c.Beat); c.LostAfter < least {
		bad("Config.LostAfter", c.LostAfter, fmt.Sprintf("must be %v or more with a Config.Beat of %v: three beats, and two beats and 5s", least, c.Beat))
	}
	if c.Grace < 0 {
		bad("Config.Grace", c.Grace, "must be 0 (default) or more")
	}
	if c.StuckAfter < 0 {
		bad("Config.StuckAfter", c.StuckAfter, "must be 0 (default) or more")
	}
	if c.MetricsEvery < minMetricsEvery {
		bad("Config.MetricsEvery", c.MetricsEvery, fmt.Sprintf("must be 0 (default) or %v or more", minMetricsEvery))
	}
	errs = append(errs, job.CheckText("Config.Owner", c.Owner, 1, job.MaxName), job.CheckText("Config.Version", c.Version, 1, job.MaxName))
	for _, name := range c.queueNames() {
		q := c.Queues[name]
		errs = append(errs, job.CheckPattern("Config.Queues", name))
		at := fmt.Sprintf("Config.Queues[%q].", name)
		if q.Workers < 1 || q.Workers > maxWorkers {
			bad(at+"Workers", q.Workers, fmt.Sprintf("must be 1..%d", maxWorkers))
		}
		if q.Total < 0 || q.Total > job.MaxTotal {
			bad(at+"Total", q.Total, fmt.Sprintf("must be 0 (no bound) or 1..%d", job.MaxTotal))
		}
		if q.Weight < 0 || q.Weight > job.MaxWeight {
			bad(at+"Weight", q.Weight, fmt.Sprintf("must be 0 (1) or 1..%d", job.MaxWeight))
		}
		if q.Attempts < 0 || q.Attempts > job.MaxAttempts {
			bad(at+"Attempts", q.Attempts, fmt.Sprintf("must be 0 (the engine's) or 1..%d", job.MaxAttempts))
		}
		if q.Aging < 0 || q.Aging > job.MaxAging {
			bad(at+"Aging", q.Aging, fmt.Sprintf("must be 0 (strict) to %v", job.MaxAging))
		}
		keep := func(field string, d time.Duration) {
			if d < 0 && d != KeepNone {
				bad(at+field, d, "must be KeepNone, 0 (default) or more")
			}
		}
		keep("KeepDone", q.KeepDone)
		keep("KeepDead", q.KeepDead)
		keep("KeepCancelled", q.KeepCancelled)
	}
	errs = append(errs, c.checkLimits())
	if n := len(c.Limits); n+len(c.Queues) > store.MaxDeclarations {
		bad("Config.Limits", fmt.Sprintf("%d limits", n), fmt.Sprintf("must, with Config.Queues, be at most %d", store.MaxDeclarations))
	}
	if n := len(c.Queues); n > store.MaxDeclarations {
		bad("Config.Queues", fmt.Sprintf("%d queues", n), fmt.Sprintf("must be at most %d; a pattern serves more", store.MaxDeclarations))
	}
	errs = append(errs, c.checkTopics())
	errs = append(errs, c.checkSchedules())
	for i, r := range c.Routes {
		errs = append(errs, r.Check(fmt.Sprintf("Config.Routes[%d]", i)))
	}
	for i, layer := range c.Middleware {
		if layer == nil {
			bad(fmt.Sprintf("Config.Middleware[%d]", i), "nil", "must be a function")
		}
	}
	for i, capability := range c.Capabilities {
		errs = append(errs, job.CheckName(fmt.Sprintf("Config.Capabilities[%d]", i), capability))
	}
	return errors.Join(errs...)
}

// queueNames lists the queues in order, so that everything made from them is
// the same in every run.
func (c *Config) queueNames() []string {
	names := make([]string, 0, len(c.Queues))
	for name := range c.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func sizeText(n int) string { return strconv.Itoa(n) + " bytes" }
