package store

import (
	"encoding/json"
	"slices"

	"github.com/pawlwork/pawl/job"
)

// Crews puts together who shares the totals of one worker, from the totals of the
// live workers in the order of their ids.
type Crews struct {
	Worker job.WorkerID
	all    map[string]Crew
	held   map[string]int
	mine   []string
	shares bool
}

// Add takes over a live worker's totals, a list of [Total] as JSON, and whether it
// shares. One whose totals cannot be read shares none: it must not cost the
// others their heartbeat (P8).
func (c *Crews) Add(w job.WorkerID, text []byte, shares bool) {
	var totals []Total
	if json.Unmarshal(text, &totals) != nil {
		return
	}
	if w == c.Worker {
		c.shares = shares
		for _, t := range totals {
			c.mine = append(c.mine, t.Queue)
		}
	}
	if !shares {
		return
	}
	if c.all == nil {
		c.all = map[string]Crew{}
	}
	for _, t := range totals {
		crew, some := c.all[t.Queue]
		if !some || t.Total < crew.Total {
			crew.Total = t.Total
		}
		if w == c.Worker {
			crew.Index = len(crew.Workers)
		}
		crew.Workers = append(crew.Workers, t.Workers)
		if weight := max(t.Weight, 1); weight > 1 || crew.Weights != nil {
			for len(crew.Weights) < len(crew.Workers)-1 { // those before it had none
				crew.Weights = append(crew.Weights, 1)
			}
			crew.Weights = append(crew.Weights, weight)
		}
		c.all[t.Queue] = crew
	}
}

// AddHeld takes over how many runs of a queue a worker holds that left or was
// lost, and had these totals. Of one whose totals cannot be read every run counts:
// it may have shared any queue.
func (c *Crews) AddHeld(text []byte, queue string, runs int) {
	var totals []Total
	if json.Unmarshal(text, &totals) == nil && !slices.ContainsFunc(totals, func(t Total) bool { return t.Queue == queue }) {
		return
	}
	if c.held == nil {
		c.held = map[string]int{}
	}
	c.held[queue] += runs
}

// Mine are the crews of the worker's queues that have a total.
func (c *Crews) Mine() map[string]Crew {
	mine := make(map[string]Crew, len(c.mine))
	for _, queue := range c.mine {
		crew := c.all[queue]
		crew.Held = c.held[queue]
		if !c.shares {
			crew.Index = -1
		}
		mine[queue] = crew
	}
	return mine
}
