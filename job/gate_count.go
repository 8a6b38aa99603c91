package job

// GateCount counts what runs, by limit, where one job may be bounded by two. Add
// everything that runs from gates first.
type GateCount struct {
	Rules *GateRules
	runs  []gateRuns
	used  map[gateName]int
}

type gateName struct {
	limit string
	gate  int64
}

type gateRuns struct {
	queue, kind, key string
	count            int
}

// Add counts running jobs.
func (c *GateCount) Add(queue, kind, key string, n int) {
	c.runs = append(c.runs, gateRuns{queue, kind, key, n})
}

// Allow says whether every bound beside its own gate's has room for a job, and takes it.
func (c *GateCount) Allow(queue, kind, key string) bool {
	bounds := c.Rules.Also(queue, kind, key)
	for i := range bounds {
		if b := &bounds[i]; b.Concurrent > 0 && c.Running(b) >= b.Concurrent {
			return false
		}
	}
	for i := range bounds {
		c.Took(&bounds[i], 1)
	}
	return true
}

// Took counts jobs that were just taken for a bound. Nil counts nothing.
func (c *GateCount) Took(b *GateBound, n int) {
	if c != nil {
		c.used[gateName{b.Limit, b.Gate}] = c.Running(b) + n
	}
}

// Running is how many jobs count for a bound, with those that were just taken.
func (c *GateCount) Running(b *GateBound) int {
	at := gateName{b.Limit, b.Gate}
	n, known := c.used[at]
	if !known {
		for _, r := range c.runs {
			if c.Rules.Counts(b, r.queue, r.kind, r.key) {
				n += r.count
			}
		}
		if c.used == nil {
			c.used = map[gateName]int{}
		}
		c.used[at] = n
	}
	return n
}
