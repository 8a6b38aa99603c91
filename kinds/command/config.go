package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/kinds/internal/guard"
)

// Config says which programs jobs may run, and how. Zero means the default in brackets.
type Config struct {
	// Allow are the programs that jobs may name. Without any, Register refuses.
	Allow []Program
	// Root is the folder that programs run in; the Dir of a job is below it.
	Root string
	// Env is the environment of every program. PATH is [/usr/local/bin:/usr/bin:/bin] unless it is given here.
	Env map[string]string

	Timeout time.Duration // of a run, which a job may shorten [10 min]
	Grace   time.Duration // between SIGTERM and SIGKILL; at most 5 s is what a stopping worker waits for [3 s]
	// Output bounds what is kept of stdout and stderr together, in bytes of the result as JSON [1 MiB]. It must not be
	// more than Config.Bounds.Payload of the engine.
	Output int
	Log    bool // every line of output goes to the job's log, too

	// UID and GID are the user and group that programs run as, [the worker's own]. Only root may set them.
	UID, GID uint32
}

// A Program is one that jobs may run.
type Program struct {
	Name string   // what jobs call it
	Path string   // of the file, absolute
	Args []string // before those of the job
	Env  []string // the variables that a job may set
	// Check refuses arguments of jobs: an error makes the job dead. Nil takes all.
	Check func(args []string) error
	// Exit says what an exit code makes of the job: nil is done, an error is what a handler would return: pawl.Snooze,
	// pawl.Dead, pawl.RetryIn. Codes that are not in it: 0 is done, others fail and are tried again.
	Exit map[int]error
}

// Bounds of a job, and what Config may say.
const (
	maxArgs     = 1_000
	maxArgBytes = 256 << 10 // of arguments and environment
	minOutput   = 1 << 10
	maxOutput   = 64 << 20
	maxGrace    = time.Minute
	defaultPath = "/usr/local/bin:/usr/bin:/bin"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Guard makes programs end with the worker, however it ends. It must be the first call of main, and of TestMain in tests
// that run programs: in a process that was started as a guard it does not return. In all others it does nothing.
func Guard() { guard.Main() }

// Register adds the handler of pawl.command to an engine or to handlers. After an error nothing is added, so that such
// jobs wait.
func Register(to pawl.Registrar, config Config) error {
	c, err := config.withDefaults().check()
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	h := &launcher{config: c, programs: map[string]Program{}}
	for _, p := range c.Allow {
		h.programs[p.Name] = p
	}
	// A job's timeout is ours, so that it is told from the engine's, which only stands behind it.
	pawl.HandleResult(to, h.work, pawl.Timeout(c.Timeout+c.Grace+killLimit+time.Minute))
	return nil
}

func (c Config) withDefaults() Config {
	c.Allow = slices.Clone(c.Allow)
	for i := range c.Allow { // what the caller does to its own maps and slices later is its own business
		p := &c.Allow[i]
		p.Args, p.Env, p.Exit = slices.Clone(p.Args), slices.Clone(p.Env), maps.Clone(p.Exit)
	}
	env := map[string]string{"PATH": defaultPath}
	maps.Copy(env, c.Env)
	c.Env = env
	c.Timeout = cmp.Or(c.Timeout, 10*time.Minute)
	c.Grace = cmp.Or(c.Grace, 3*time.Second)
	c.Output = cmp.Or(c.Output, job.DefaultPayload)
	return c
}

// check finds all faults at once.
func (c Config) check() (Config, error) {
	var errs []error
	bad := func(field string, value any, bound string) {
		errs = append(errs, job.Invalid("Config."+field, value, bound))
	}
	errs = append(errs, guard.Ready())
	if len(c.Allow) == 0 {
		bad("Allow", "", "must name the programs that jobs may run")
	}
	names := map[string]bool{}
	for i, p := range c.Allow {
		at := fmt.Sprintf("Allow[%d].", i)
		if err := job.CheckName("Config."+at+"Name", p.Name); err != nil {
			errs = append(errs, err)
		} else if names[p.Name] {
			bad(at+"Name", p.Name, "is there twice")
		}
		names[p.Name] = true
		if why := notRunnable(p.Path); why != "" {
			bad(at+"Path", p.Path, why)
		}
		for _, arg := range p.Args {
			if strings.ContainsRune(arg, 0) {
				bad(at+"Args", arg, "must not contain a zero byte")
			}
		}
		for _, name := range p.Env {
			if !variable.MatchString(name) {
				bad(at+"Env", name, "must be letters, digits and _")
			}
		}
	}
	switch info, err := os.Stat(c.Root); {
	case !filepath.IsAbs(c.Root):
		bad("Root", c.Root, "must be the absolute path of a folder")
	case err != nil:
		bad("Root", c.Root, err.Error())
	case !info.IsDir():
		bad("Root", c.Root, "must be a folder")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if !variable.MatchString(name) {
			bad("Env", name, "must be letters, digits and _")
		}
		if strings.ContainsRune(c.Env[name], 0) {
			bad("Env["+name+"]", c.Env[name], "must not contain a zero byte")
		}
	}
	if c.Timeout < 0 {
		bad("Timeout", c.Timeout, "must be 0 (default) or more")
	}
	if !guard.MayRunAs(c.UID, c.GID) {
		bad("UID and GID", fmt.Sprint(c.UID, " ", c.GID), "may only be set by root")
	}
	if c.Grace < 0 || c.Grace > maxGrace {
		bad("Grace", c.Grace, fmt.Sprintf("must be 0 (default) to %v", maxGrace))
	}
	if c.Output < minOutput || c.Output > maxOutput {
		bad("Output", c.Output, fmt.Sprintf("must be 0 (default) or %d..%d bytes", minOutput, maxOutput))
	}
	return c, errors.Join(errs...)
}

// notRunnable says why a path is no program.
func notRunnable(path string) string {
	if !filepath.IsAbs(path) {
		return "must be absolute: what PATH finds may be another program tomorrow"
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err.Error()
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "must be a program"
	}
	return ""
}
