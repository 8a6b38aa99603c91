package webui

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// openQueue is what the open row of a queue tells.
type openQueue struct {
	Why      template.HTML
	Glyph    string
	Settings []settingRow
	Kinds    []queueKind
	MoreKind int    // kinds that are not shown
	Counted  string // of what time its numbers are
	Crew     []crewRow
	MoreCrew int
	Jobs     string // link to its jobs
	Page     string // to its own page; empty there
	Audit    string
	Conflict string // whose other declaration does not count
}

// Bounds of what an open row lists.
const (
	maxQueueKinds = 25
	maxQueueCrew  = 25
	kindSample    = 100 // newest jobs of a queue that are looked at for their kinds
)

// queueKind is a kind of which jobs are in the queue.
type queueKind struct {
	Kind             string
	Rate             string
	Retried          int
	QueueP95, RunP95 time.Duration
	Done             uint64
	Known            bool
	Pause            *pawl.Pause
	Link             string
}

// crewRow is a worker that serves the queue.
type crewRow struct {
	Label, Version, Link string
	Slots                int // of the queue, in this process
}

func (v *view) openQueue(r *queueRow, now *queuesNow) (*openQueue, error) {
	o := &openQueue{Glyph: r.State, Jobs: v.app.link("/jobs", "queue", r.Name), Audit: v.PageLink("audit", "/audit", "target", r.Name)}
	if v.params["name"] == "" {
		o.Page = v.app.link("/queues/{}", r.Name, "range", v.query.Get("range"))
	}
	o.Why = v.queueWhy(r, now)
	if !r.Held {
		if o.Glyph = "serving"; r.Ready.Jobs > 0 {
			o.Glyph = "ready"
		}
	}
	changes, err := v.queueChanges(r.Name)
	if err != nil {
		return nil, err
	}
	if err := v.queueCrew(o, r); err != nil {
		return nil, err
	}
	o.Settings = v.queueSettings(r, now, o.Crew, changes)
	holds, _ := now.Holds.Queue(r.Name)
	if len(holds.Conflicts) > 0 {
		o.Conflict = holds.Conflicts[0].Owner
	}
	return o, v.queueKinds(o, r, now)
}

// queueChanges are the newest entries of the audit log that are about the queue's settings.
func (v *view) queueChanges(name string) ([]pawl.AuditEntry, error) {
	return cached(v, "changes\n"+name, 5*time.Second, func(ctx context.Context) ([]pawl.AuditEntry, error) {
		list, err := v.app.e.Audit(ctx, pawl.AuditFilter{Target: name}, pawl.AuditPage{Limit: 50})
		return list.Entries, err
	})
}

// queueKinds are those that were counted in the span, and those of the newest jobs: what was enqueued just now is not counted yet.
func (v *view) queueKinds(o *openQueue, r *queueRow, now *queuesNow) error {
	sample, err := cached(v, "kinds of\n"+r.Name, 5*time.Second, func(ctx context.Context) (map[string]int, error) {
		kinds := map[string]int{}
		list, err := v.app.e.List(ctx, pawl.Filter{Queue: r.Name}, pawl.Page{Limit: kindSample})
		for i := range list.Jobs {
			kinds[list.Jobs[i].Kind]++
		}
		return kinds, err
	})
	if err != nil {
		return err
	}
	for kind, m := range r.Flow.Kinds {
		k := queueKind{Kind: kind, Known: true, Done: m.Count(pawl.MetricDone), Retried: int(m.Count(pawl.MetricFailed)),
			QueueP95: m.QueueTime.Quantile(.95), RunP95: m.RunTime.Quantile(.95)}
		number, unit := rate(k.Done, r.Flow.In)
		k.Rate = number + " " + unit
		o.Kinds = append(o.Kinds, k)
	}
	if s := v.span(); r.Flow.Known && s.Name == "" {
		o.Counted = "Counted " + s.within() + "."
	} else if r.Flow.Known {
		o.Counted = "Counted in the last " + duration(r.Flow.In) + "."
	}
	for kind := range sample {
		if r.Flow.Kinds[kind] == nil {
			o.Kinds = append(o.Kinds, queueKind{Kind: kind})
		}
	}
	for i := range o.Kinds {
		k := &o.Kinds[i]
		k.Link = v.app.link("/jobs", "queue", r.Name, "kind", k.Kind)
		for n := range now.Reply.Pauses {
			if p := &now.Reply.Pauses[n]; p.Scope == job.PauseKind && p.Name == k.Kind {
				k.Pause = p
			}
		}
	}
	slices.SortFunc(o.Kinds, func(a, b queueKind) int { return cmp.Or(cmp.Compare(b.Done, a.Done), cmp.Compare(a.Kind, b.Kind)) })
	if n := len(o.Kinds); n > maxQueueKinds {
		o.Kinds, o.MoreKind = o.Kinds[:maxQueueKinds], n-maxQueueKinds
	}
	return nil
}

// queueCrew are the live workers that serve the queue.
func (v *view) queueCrew(o *openQueue, r *queueRow) error {
	l, err := v.look()
	if err != nil {
		return err
	}
	for i := range l.Workers {
		w := &l.Workers[i]
		n := slices.Index(w.Worker.Queues, r.Name)
		if n < 0 {
			n = slices.IndexFunc(w.Worker.Queues, func(p string) bool { return job.Matches(p, r.Name) })
		}
		if w.Lost || n < 0 || n >= len(w.Worker.Slots) {
			continue
		}
		c := crewRow{Label: w.Worker.Label, Version: w.Worker.Version, Slots: w.Worker.Slots[n], Link: v.PageLink("worker", "/workers/{}", w.ID)}
		o.Crew = append(o.Crew, c)
	}
	slices.SortFunc(o.Crew, func(a, b crewRow) int { return cmp.Or(cmp.Compare(b.Slots, a.Slots), cmp.Compare(a.Label, b.Label)) })
	if n := len(o.Crew); n > maxQueueCrew {
		o.Crew, o.MoreCrew = o.Crew[:maxQueueCrew], n-maxQueueCrew
	}
	return nil
}

// queueWhy says how the queue stands, and where that leads.
func (v *view) queueWhy(r *queueRow, now *queuesNow) template.HTML {
	ready := ": " + plural(r.Ready, "ready job waits", "ready jobs wait")
	if r.Ready.Jobs == 0 {
		ready = ""
	}
	running := ""
	if r.Running.Jobs > 0 {
		running = " " + plural(r.Running, "running job finishes.", "running jobs finish.")
	}
	switch r.State {
	case "frozen":
		return says("Everything is frozen", pausedBy(v, r.Pause), ". No job starts on any queue", ready, ".", running)
	case "paused":
		return says("It is paused", pausedBy(v, r.Pause), ". Nothing new starts", ready, ".", running)
	case "unserved":
		later := ""
		if r.Scheduled.Jobs > 0 {
			later = " " + plural(r.Scheduled, "job is due later.", "jobs are due later.")
		}
		return says("No live worker serves it", ready, ".", later)
	case "cooling":
		times := "once"
		if n := r.CoolDown.Throttles; n > 1 {
			times = count(n) + " times in a row"
		}
		return says("It cools down for another ", left(v.Now, r.CoolDown.Until),
			": its handlers were throttled ", times, ". Then it starts again by itself.")
	}
	switch {
	case r.Ready.Jobs == 0 && r.Workers == 0:
		return says("Nothing is in it, and no live worker serves it.")
	case r.Ready.Jobs == 0:
		text := "Nothing waits for a slot."
		if r.Scheduled.Jobs > 0 {
			text = "Nothing is ready. " + plural(r.Scheduled, "job is due later.", "jobs are due later.")
		}
		return says(text)
	case r.Capacity > 0 && r.Running.Jobs >= r.Capacity:
		bound := ": all " + count(r.Capacity) + " slots are busy."
		if r.Total > 0 && r.Total < r.Slots {
			bound = ": all " + count(r.Total) + " that may run at once in the cluster do."
		}
		return says("Ready jobs wait for a free slot", bound, v.backlog(r))
	case v.limited(r, now):
		return says(count(r.Capacity-r.Running.Jobs), " of ", count(r.Capacity), " slots are free: what is ready waits behind a ",
			anchored(v.PageLink("limits", "/limits"), "limit"), ".", v.backlog(r))
	case v.limitedByKind(now):
		return says(count(r.Capacity-r.Running.Jobs), " of ", count(r.Capacity), " slots are free: what is ready is being taken, or waits behind a ",
			anchored(v.PageLink("limits", "/limits"), "limit"), " of its kind.", v.backlog(r))
	}
	return says("Ready jobs are being taken: ", count(max(r.Capacity-r.Running.Jobs, 0)), " of ", count(r.Capacity), " slots are free.",
		v.backlog(r))
}

// limited reports whether a limit is about all jobs of the queue.
func (v *view) limited(r *queueRow, now *queuesNow) bool {
	return slices.ContainsFunc(limitsOf(&now.Holds), func(l limitNow) bool { return l.Holds.Queue == r.Name && l.Holds.Kind == "" })
}

// limitedByKind reports whether a limit is about a kind, which the queue may have jobs of.
func (v *view) limitedByKind(now *queuesNow) bool {
	return slices.ContainsFunc(limitsOf(&now.Holds), func(l limitNow) bool { return l.Holds.Kind != "" })
}

// backlog says where the backlog goes, where that is known.
func (v *view) backlog(r *queueRow) template.HTML {
	if r.Ready.More {
		return ""
	}
	perMinute, known := v.app.trends.of(r.Name)
	switch {
	case !known && r.Flow.PerMinute >= 1:
		return says(" ", count(int(r.Flow.PerMinute+.5)), " are done a minute.")
	case !known:
		return ""
	case perMinute <= -1:
		return says(" At this pace the backlog is gone in ", template.HTML("<b>"), "about ",
			duration(roughly(time.Duration(float64(r.Ready.Jobs)/-perMinute*float64(time.Minute)))), template.HTML("</b>"), ".")
	case perMinute >= 1:
		return says(" It grows by ", template.HTML("<b>"), "about ", count(int(perMinute+.5)), " a minute", template.HTML("</b>"), ".")
	}
	return says(" The backlog neither grows nor shrinks.")
}

// roughly rounds an estimate to what can be known of it.
func roughly(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return max(d.Round(time.Second), time.Second)
	case d < 10*time.Minute:
		return d.Round(10 * time.Second)
	case d < 3*time.Hour:
		return d.Round(time.Minute)
	}
	return d.Round(time.Hour)
}

// pausedBy says who paused something, since when and why.
func pausedBy(v *view, p *pawl.Pause) template.HTML {
	var parts []any
	if p.By != "" {
		parts = append(parts, " by ", show(p.By, 60))
	}
	parts = append(parts, " since ", at(v.Now, p.Since))
	if p.Note != "" {
		parts = append(parts, ": “", show(p.Note, 160), "”")
	}
	return says(parts...)
}
