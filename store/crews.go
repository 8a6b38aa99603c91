package store

import (
	"encoding/json"

	"github.com/pawlwork/pawl/job"
)

// Crews puts together who shares the totals of one worker, from the totals of all
// live workers in the order of their ids.
type Crews struct {
	Worker job.WorkerID
	all    map[string]Crew
	mine   []string
}

// Add takes over a worker's totals, a list of [Total] as JSON. One whose totals
// cannot be read shares none: it must not cost the others their heartbeat (P8).
func (c *Crews) Add(w job.WorkerID, text []byte) {
	var totals []Total
	if json.Unmarshal(text, &totals) != nil {
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
			c.mine = append(c.mine, t.Queue)
		}
		crew.Workers = append(crew.Workers, t.Workers)
		c.all[t.Queue] = crew
	}
}

// Mine are the crews that the worker belongs to, by queue.
func (c *Crews) Mine() map[string]Crew {
	mine := make(map[string]Crew, len(c.mine))
	for _, queue := range c.mine {
		mine[queue] = c.all[queue]
	}
	return mine
}
