package demo

import (
	"context"
	"strings"
	"sync"

	"github.com/pawlwork/pawl"
)

// Try is something to try out, for who looks at the demo. Words in **stars** stand out, those in `ticks` are code. A title fits into one line.
type Try struct {
	Title string `json:"title"`
	Hint  string `json:"hint"`
	Done  bool   `json:"done"`
	Ships string `json:"-"` // it needs 1.8.3, which Company.Ship ships: what that is good for; empty: it does not
}

// The things to try, in their order.
const (
	tryLegacy = iota
	tryMail
	tryInvoices
	tryReport
	tryGeo
	tryLag
	tryReplay
	tryKill
	tries
)

var trials = [tries]Try{
	tryLegacy: {
		Title: "See why **legacy.push** does not run.",
		Hint:  "Then start a worker for its queue: `pawl demo worker legacy-sync`.",
	},
	tryMail: {
		Title: "Pause **mail**, then resume it.",
		Hint:  "Queues, mail, Pause. What runs finishes, its backlog grows; Resume, and it is gone.",
	},
	tryInvoices: {
		Title: "Retry every dead **invoice.render**.",
		Hint:  "They lack a VAT id, and die again before 1.8.3 is shipped. Then Dead, the group, Retry.",
		Ships: "renders orders without a VAT id: retries succeed.",
	},
	tryReport: {
		Title: "Cancel **report.nightly** while it runs.",
		Hint:  "Jobs, Running. It logs as it goes; its last line says after which page it stopped.",
	},
	tryGeo: {
		Title: "Give **geo** a rate of 5 a second.",
		Hint:  "Limits, geo, Rate. The service allows 6 a second: the throttles end.",
	},
	tryLag: {
		Title: "See how far **warehouse** is behind.",
		Hint:  "Streams, warehouse. It falls behind while it works by hand, and catches up by machine.",
	},
	tryReplay: {
		Title: "Replay what **loyalty** has parked.",
		Hint:  "Streams, loyalty, its reason. Ship 1.8.3 first, else it is parked again; then Replay.",
	},
	tryKill: {
		Title: "Kill the demo with `kill -9`.",
		Hint:  "Then start it again: the running jobs are rescued and nothing is lost.",
	},
}

// tried remembers what was done: what has been seen stays done, whatever is deleted later.
type tried struct {
	mu   sync.Mutex
	done [tries]bool
}

func (t *tried) mark(try int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[try] = true
}

func (t *tried) is(try int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done[try]
}

// killed looks, before any worker has begun, for one that was here and has not left: its process
// was killed.
func (t *tried) killed(ctx context.Context, e *pawl.Engine) {
	list, err := e.Workers(ctx)
	if err != nil {
		return // it is only a tick in a list
	}
	for i := range list {
		if list[i].Worker.Owner == owner {
			t.mark(tryKill)
		}
	}
}

// Visited is told which page somebody looks at, by its path below Mission Control.
func (c *Company) Visited(path string) {
	if path == "/workers" || strings.HasPrefix(path, "/workers/") || path == "/queues/"+QueueLegacy {
		c.tried.mark(tryLegacy)
	}
	if path == "/groups/"+groupWarehouse {
		c.tried.mark(tryLag)
	}
}

// Tries are the things to try out, with those ticked off that somebody has done: by what the
// audit log says, and by visits. Each call costs a few bounded reads for what is not done yet; what
// cannot be read counts as not done.
func (c *Company) Tries(ctx context.Context) []Try {
	list := make([]Try, tries)
	for try := range list {
		list[try] = trials[try]
		list[try].Hint = strings.ReplaceAll(list[try].Hint, "`pawl ", "`"+c.config.Program+" ")
		if !c.tried.is(try) {
			if done, err := c.seen(ctx, try); err == nil && done {
				c.tried.mark(try)
			}
		}
		list[try].Done = c.tried.is(try)
	}
	return list
}

// look is how many entries of the audit log are looked at.
const look = 10

// seen looks whether something has been tried.
func (c *Company) seen(ctx context.Context, try int) (bool, error) {
	e := c.config.Front
	person := func(e *pawl.AuditEntry) bool { return e.By != "ops" && e.By != "code" }
	switch try {
	case tryLegacy:
		queues, err := e.Queues(ctx, QueueLegacy)
		return err == nil && len(queues) == 1 && queues[0].Workers > 0, err
	case tryMail:
		return c.audited(ctx, pawl.AuditFilter{Target: "mail", Action: "resume"}, look, person)
	case tryInvoices:
		return c.changed(ctx, "retry", invoiceKind, pawl.StateDone)
	case tryReport:
		return c.changed(ctx, "cancel", reportKind, pawl.StateCancelled)
	case tryGeo:
		return c.audited(ctx, pawl.AuditFilter{Target: "geo", Action: "set limit"}, look, func(e *pawl.AuditEntry) bool {
			return person(e) && strings.Contains(e.Detail, "per_second")
		})
	case tryReplay:
		if done, err := c.audited(ctx, pawl.AuditFilter{Target: groupLoyalty, Action: "replay group"}, look, person); err != nil || !done {
			return false, err
		}
		g, err := e.Group(groupLoyalty).Info(ctx)
		return err == nil && g.Parked+g.Waiting == 0, err
	}
	return false, nil
}

// changed reports whether somebody has done something to a job of a kind, and it came to a state.
func (c *Company) changed(ctx context.Context, action, kind string, state pawl.State) (bool, error) {
	return c.audited(ctx, pawl.AuditFilter{Action: action}, look, func(e *pawl.AuditEntry) bool {
		id, err := pawl.ParseID(e.Target)
		if err != nil {
			return false
		}
		j, err := c.config.Front.Get(ctx, id)
		return err == nil && j.Kind == kind && j.State == state
	})
}
