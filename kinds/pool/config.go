package pool

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/kinds/internal/guard"
)

// Config says what children do, and how many there are. Zero means the default in brackets.
type Config struct {
	Kinds []string // of the jobs that children do; their arguments are JSON, of version 0

	Path string   // of the children's program, absolute
	Args []string // of the program
	// Env is the whole environment of children. PATH is [/usr/local/bin:/usr/bin:/bin] unless it is given here.
	Env map[string]string
	Dir string // that children run in [/]

	Size int // children at once [4]
	// Ready says that each child writes {"status":"ready"} when it can take its first job, within Start. Without it a child
	// counts as ready once it runs, so that the first job waits for what it loads, and fails if that fails.
	Ready bool
	Start time.Duration // until a child is ready [1 min]
	// Wait is how long a job waits for an idle child before it is put off for a time [1 min]. It holds a slot of its queue
	// meanwhile: a queue that only has these kinds needs no more workers than Size.
	Wait    time.Duration
	Timeout time.Duration // of one answer [10 min]
	Grace   time.Duration // between SIGTERM and SIGKILL [3 s]
	Line    int           // bytes of one line, either way [1 MiB]

	// UID and GID are the user and group that children run as [the worker's own]. Only root may set them.
	UID, GID uint32

	// Logger is told what children write to stderr without a job, and why they are replaced [slog.Default()].
	Logger *slog.Logger
}

// Bounds of a Config.
const (
	maxSize     = 1_000
	minLine     = 1 << 10
	maxLine     = 64 << 20
	maxGrace    = time.Minute
	defaultPath = "/usr/local/bin:/usr/bin:/bin"
)

// Guard makes children end with the worker, however it ends. It must be the first call of main, and of TestMain in tests
// that have a pool: in a process that was started as a guard it does not return. In all others it does nothing. It is the
// same as command.Guard; one call serves both.
func Guard() { guard.Main() }

// Register starts the children and adds a handler for each kind to an engine or to handlers. After an error nothing is
// added. Close the pool after the engine.
func Register(to pawl.Registrar, config Config) (*Pool, error) {
	c := config.withDefaults()
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	p := newPool(c, time.After)
	for _, kind := range c.Kinds {
		// The timeout is ours, so that it is told from the engine's, which only stands behind it.
		pawl.HandleRawResult(to, kind, p.work, pawl.Timeout(c.Wait+c.Timeout+c.Grace+killLimit+time.Minute))
	}
	p.open()
	return p, nil
}

func (c Config) withDefaults() Config {
	c.Kinds, c.Args = slices.Clone(c.Kinds), slices.Clone(c.Args)
	env := map[string]string{"PATH": defaultPath}
	maps.Copy(env, c.Env)
	c.Env = env
	c.Dir = cmp.Or(c.Dir, "/")
	c.Size = cmp.Or(c.Size, 4)
	c.Start = cmp.Or(c.Start, time.Minute)
	c.Wait = cmp.Or(c.Wait, time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Minute)
	c.Grace = cmp.Or(c.Grace, 3*time.Second)
	c.Line = cmp.Or(c.Line, job.DefaultPayload)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// check finds all faults at once.
func (c Config) check() error {
	errs := []error{guard.Ready()}
	bad := func(field string, value any, bound string) {
		errs = append(errs, job.Invalid("Config."+field, value, bound))
	}
	if len(c.Kinds) == 0 {
		bad("Kinds", "", "must name the kinds of jobs that children do")
	}
	for i, kind := range c.Kinds {
		errs = append(errs, job.CheckName(fmt.Sprintf("Config.Kinds[%d]", i), kind))
		if slices.Contains(c.Kinds[:i], kind) {
			bad("Kinds", kind, "is there twice")
		}
	}
	switch info, err := os.Stat(c.Path); {
	case !filepath.IsAbs(c.Path):
		bad("Path", c.Path, "must be the absolute path of a program")
	case err != nil:
		bad("Path", c.Path, err.Error())
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		bad("Path", c.Path, "must be a program")
	}
	switch info, err := os.Stat(c.Dir); {
	case err != nil:
		bad("Dir", c.Dir, err.Error())
	case !info.IsDir():
		bad("Dir", c.Dir, "must be a folder")
	}
	for _, arg := range c.Args {
		if strings.ContainsRune(arg, 0) {
			bad("Args", arg, "must not contain a zero byte")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Env[name], 0) {
			bad("Env", name, "must be a name without = and a value without a zero byte")
		}
	}
	if c.Size < 1 || c.Size > maxSize {
		bad("Size", c.Size, fmt.Sprintf("must be 0 (default) or 1..%d", maxSize))
	}
	for field, d := range map[string]time.Duration{"Start": c.Start, "Wait": c.Wait, "Timeout": c.Timeout} {
		if d < 0 {
			bad(field, d, "must be 0 (default) or more")
		}
	}
	if !guard.MayRunAs(c.UID, c.GID) {
		bad("UID and GID", fmt.Sprint(c.UID, " ", c.GID), "may only be set by root")
	}
	if c.Grace < 0 || c.Grace > maxGrace {
		bad("Grace", c.Grace, fmt.Sprintf("must be 0 (default) to %v", maxGrace))
	}
	if c.Line < minLine || c.Line > maxLine {
		bad("Line", c.Line, fmt.Sprintf("must be 0 (default) or %d..%d bytes", minLine, maxLine))
	}
	return errors.Join(errs...)
}
