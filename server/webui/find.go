package webui

import (
	"errors"
	"strings"

	"github.com/pawlwork/pawl"
)

var findPages = []page{{path: "/find", name: "find", title: "Find", load: loadFind}}

// findData is what was looked for, and what was found of each noun.
type findData struct {
	Query string
	Found []found
}

// found is one thing with its page.
type found struct {
	Noun, Name, Link string
}

// loadFind leads to what is meant where it is clear: the id of a job, or the exact name of one thing. Else it lists what has a name like
// it. Names come from what is known by now; no job is searched.
func loadFind(v *view) (any, error) {
	d := findData{Query: strings.TrimSpace(v.query.Get("q"))}
	v.Title = "Find"
	if d.Query == "" {
		return d, nil
	}
	if id, err := pawl.ParseID(strings.ToLower(d.Query)); err == nil {
		_, err := v.app.e.Get(v.ctx, id)
		if err == nil {
			return elsewhere(v.app.link("/jobs/{}", id)), nil
		}
		if !errors.Is(err, pawl.ErrNotFound) {
			return nil, err
		}
	}
	all, err := v.names()
	if err != nil {
		return nil, err
	}
	var exact []found
	for _, f := range all {
		switch {
		case f.Name == d.Query:
			exact = append(exact, f)
		case strings.Contains(strings.ToLower(f.Name), strings.ToLower(d.Query)) && len(d.Found) < 50:
			d.Found = append(d.Found, f)
		}
	}
	if d.Found = append(exact, d.Found...); len(exact) == 1 {
		return elsewhere(exact[0].Link), nil
	}
	if key, err := v.app.e.Count(v.ctx, pawl.Filter{Key: d.Query}, 1); err == nil && key.Jobs > 0 {
		link := v.app.link("/jobs", "key", d.Query)
		if len(d.Found) == 0 {
			return elsewhere(link), nil
		}
		d.Found = append([]found{{"key", d.Query, link}}, d.Found...)
	}
	return d, nil
}

// names are all that are known: queues, kinds, workers and schedules.
func (v *view) names() (list []found, err error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	for i := range l.Queues {
		name := l.Queues[i].Name
		link := v.PageLink("queues", "/queues/{}", name)
		if link == "" {
			link = v.app.link("/jobs", "queue", name)
		}
		list = append(list, found{"queue", name, link})
	}
	kinds := map[string]bool{}
	if known, _, err := v.kinds(); err == nil {
		for i := range known {
			kinds[known[i].Kind] = true
		}
	}
	for i := range l.Workers {
		for kind := range l.Workers[i].Worker.Offer.Kinds {
			kinds[kind] = true
		}
		if link := v.PageLink("workers", "/workers/{}", l.Workers[i].ID); link != "" {
			list = append(list, found{"worker", l.Workers[i].Worker.Label, link})
		}
	}
	for _, kind := range sorted(kinds) {
		list = append(list, found{"kind", kind, v.app.link("/jobs", "kind", kind)})
	}
	if schedules, err := v.app.e.Schedules(v.ctx); err == nil {
		for i := range schedules {
			if link := v.PageLink("cron", "/cron/{}", schedules[i].Name); link != "" {
				list = append(list, found{"schedule", schedules[i].Name, link})
			}
		}
	}
	return list, nil
}
