package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// workerCommand has the verbs of workers.
func (a *app) workerCommand() *cobra.Command {
	loads := pageFlags(a.verb("loads", "Show what processes took: CPU, memory, and how their store answered", counted(0, 0), (*call).workerLoads), 1000)
	loads.Flags().String("from", "", "`time` [an hour ago]")
	loads.Flags().String("to", "", "`time` [now]")
	loads.Flags().String("worker", "", "`label`, or a pattern")
	loads.Flags().String("step", "", "`time` that one line is of, whole minutes [all]")
	return group("worker", "Workers: the processes that run jobs", "",
		pageFlags(a.verb("list", "List the registered processes", counted(0, 0), (*call).workerList), 1000), loads,
	)
}

func (c *call) workerList() error {
	t := newTable("id", "label", "state", "running", "queues", "kinds", "version", "started", "beat")
	return pages(c, "/workers", nil, t, func(l *httpapi.WorkerList) string {
		for i := range l.Workers {
			w := &l.Workers[i]
			state := "live"
			if w.Lost {
				state = "lost"
			}
			var queues []string
			for _, q := range w.Queues {
				queues = append(queues, fmt.Sprintf("%s=%d", q.Name, q.Slots))
			}
			t.row(w.ID, w.Label, state, w.Running, strings.Join(queues, ","), len(w.Kinds), w.Version, c.when(w.Started), c.when(w.Beat))
		}
		return l.Next
	})
}

func (c *call) workerLoads() error {
	query := c.parameters("worker", "step")
	if err := c.times(query, "from", "to"); err != nil {
		return err
	}
	t := newTable("worker", "start", "span", "cpu", "memory", "goroutines", "calls", "mean", "p99")
	return pages(c, "/workers/loads", query, t, func(l *httpapi.WorkerLoadList) string {
		for _, w := range l.Loads {
			t.row(w.Worker, c.when(w.Start), w.Span, w.CPU, fmt.Sprintf("%d MiB", w.Memory>>20), w.Goroutines, w.Calls, w.CallMean, w.CallP99)
		}
		return l.Next
	})
}

// serviceCommand has the verb of services.
func (a *app) serviceCommand() *cobra.Command {
	return group("service", "Services: the loops of the server's own process", "",
		a.verb("list", "List what every loop has done; none while the engine does not run", counted(0, 0), (*call).serviceList),
	)
}

func (c *call) serviceList() error {
	var l httpapi.ServiceList
	if done, err := c.read("/services", nil, &l); done || err != nil {
		return err
	}
	t := newTable("service", "kind", "state", "cycles", "errors", "restarts", "last success", "next", "last error")
	for _, s := range l.Services {
		t.row(s.Name, s.Kind, s.State, s.Cycles, s.Errors, s.Restarts, c.when(s.LastSuccess), c.when(s.Next), s.LastError)
	}
	return t.write(c.out)
}
