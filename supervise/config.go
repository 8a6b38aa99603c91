package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Config says what to supervise and how. Zero fields take the default in brackets.
type Config struct {
	// Services are started in this order and stopped in reverse. At least one.
	Services []Service

	// Logger receives failures, restarts and skipped shards, with the attributes "service" and,
	// for a sharded tick, "shard". [slog.Default()]
	Logger *slog.Logger

	// Grace bounds every Stop, also one whose context has no deadline. [30 s]
	Grace time.Duration

	// Floor is the smallest interval a tick may have; lowering it is a decision to make
	// once for the process, not by a typing error in one interval. [100 ms]
	Floor time.Duration
}

const (
	maxName      = 100
	maxShardName = 255
)

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.Floor = cmp.Or(c.Floor, 100*time.Millisecond)
	return c
}

func (c Config) check() error {
	var faults []error
	if c.Grace < 0 {
		faults = append(faults, fmt.Errorf("Config.Grace is %v, must be above 0", c.Grace))
	}
	if c.Floor < 0 {
		faults = append(faults, fmt.Errorf("Config.Floor is %v, must be above 0", c.Floor))
	}
	found := 0
	faults = append(faults, c.checkSiblings("", c.Services, &found)...)
	if found == 0 {
		faults = append(faults, errors.New("Config.Services holds 0 services, must hold at least 1"))
	}
	return errors.Join(faults...)
}

// checkSiblings checks the members of one group, whose names must differ, and counts the services found.
func (c Config) checkSiblings(path string, services []Service, found *int) []error {
	var faults []error
	seen := make(map[string]bool)
	for position, s := range services {
		name := path + s.name
		if fault := checkName(s.name); fault != nil {
			faults = append(faults, fmt.Errorf("service %q (number %d of its group): %w", name, position+1, fault))
		} else if seen[s.name] {
			faults = append(faults, fmt.Errorf("service %q: name is used twice, names must be unique within their group", name))
		}
		seen[s.name] = true
		if s.kind == kindGroup {
			faults = append(faults, c.checkSiblings(name+"/", s.children, found)...)
			continue
		}
		*found++
		for _, fault := range s.check(c.Floor) {
			faults = append(faults, fmt.Errorf("service %q: %w", name, fault))
		}
	}
	return faults
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("name is empty, must be 1 to %d bytes", maxName)
	case len(name) > maxName:
		return fmt.Errorf("name has %d bytes, must be 1 to %d", len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, "/"):
		return errors.New(`name must be UTF-8 without "/" and control characters`)
	}
	return nil
}

// check returns the faults of one service that is no group.
func (s Service) check(floor time.Duration) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if s.kind == "" {
		fault("kind is empty, a Service is made by Every, EveryShard, Loop, Once or Group")
		return faults
	}
	if s.sharded && s.runShard == nil || !s.sharded && s.run == nil {
		fault("function is nil, must be given")
	}
	if s.kind == KindEvery && s.interval < floor {
		fault("interval is %v, must be at least Config.Floor (%v)", s.interval, floor)
	}
	if s.sharded {
		faults = append(faults, checkShards(s.shards)...)
	}
	if s.startJitter < 0 {
		fault("StartJitter is %v, must be at least 0", s.startJitter)
	}
	if s.timeout < 0 {
		fault("Timeout is %v, must be at least 0", s.timeout)
	}
	for _, option := range s.given {
		switch {
		case option == "nil":
			fault("option is nil, must be given")
		case option == "Restart" && s.policy == nil:
			fault("Restart is nil, must be Never, OnceMore, Bounded or Always")
		case option == "OnlyIfMine" && s.leadership == nil:
			fault("OnlyIfMine is nil, must be a Leadership")
		case option != "Restart" && s.kind != KindEvery:
			fault("option %s is given to a %s, it is for ticks only", option, s.kind)
		}
	}
	if s.policy != nil {
		if err := s.policy.withDefaults().check(); err != nil {
			fault("%w", err)
		}
	}
	return faults
}

func checkShards(shards []string) []error {
	var faults []error
	if len(shards) == 0 {
		faults = append(faults, errors.New("shards has 0 names, must have at least 1"))
	}
	seen := make(map[string]bool, len(shards))
	for _, shard := range shards {
		if shard == "" || len(shard) > maxShardName {
			faults = append(faults, fmt.Errorf("shard %q has a name of %d bytes, must be 1 to %d", shard, len(shard), maxShardName))
		} else if seen[shard] {
			faults = append(faults, fmt.Errorf("shard %q is named twice, shards must be unique", shard))
		}
		seen[shard] = true
	}
	return faults
}

// effectivePolicy is the policy given, or the default of the kind.
func (s Service) effectivePolicy() Policy {
	switch {
	case s.policy != nil:
		return s.policy.withDefaults()
	case s.kind == KindOnce:
		return Never{}
	default:
		return Always{}.withDefaults()
	}
}
