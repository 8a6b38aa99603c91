package job

import (
	"cmp"
	"slices"
	"time"
)

// WhyGroup is jobs that the same thing keeps from running: code, queue, kind and
// blocker are alike.
type WhyGroup struct {
	// Why has the earliest Until and the least Ahead of the group; its sentence is
	// that of the job that comes first by them.
	Why  Why  `json:"why"`
	Jobs []ID `json:"jobs"` // in the order asked
}

// ExplainAll explains situations, and puts those together that are alike: the
// largest group first, then the one that was met first.
func ExplainAll(situations []Situation) []WhyGroup {
	type alike struct {
		code                 WhyCode
		queue, kind, blocker string
	}
	at := map[alike]int{}
	var groups []WhyGroup
	for i := range situations {
		w := Explain(situations[i])
		key := alike{w.Code, w.Queue, w.Kind, w.Blocker}
		n, met := at[key]
		if !met {
			n = len(groups)
			at[key], groups = n, append(groups, WhyGroup{Why: w})
		}
		groups[n].add(&w, situations[i].Job.ID)
	}
	slices.SortStableFunc(groups, func(a, b WhyGroup) int { return cmp.Compare(len(b.Jobs), len(a.Jobs)) })
	return groups
}

// add puts a job into the group.
func (g *WhyGroup) add(w *Why, id ID) {
	g.Jobs = append(g.Jobs, id)
	if c := cmp.Or(compareUntil(w.Until, g.Why.Until), cmp.Compare(w.Ahead, g.Why.Ahead)); c < 0 {
		g.Why.Text = w.Text
	}
	if compareUntil(w.Until, g.Why.Until) < 0 {
		g.Why.Until = w.Until
	}
	if w.Ahead < g.Why.Ahead {
		g.Why.Ahead, g.Why.More = w.Ahead, w.More
	}
}

// compareUntil puts a time that is not known last.
func compareUntil(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}
