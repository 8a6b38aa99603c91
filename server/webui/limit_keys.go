package webui

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// boundKey is a key of which as many jobs run as may.
type boundKey struct {
	Limit, Key, Queue string
	Running, Of       int
	Ready             pawl.Counted
	Share             string
	Ordered           bool
	Link              string
	weight            int
}

// boundKeys are those, and how many jobs of each limit run and are ready.
type boundKeys struct {
	List   []boundKey
	PerKey bool // a limit is by key at all
	More   bool // not all running jobs were looked at
	Limits map[string]gateCount
}

type gateCount struct{ Running, Ready pawl.Counted }

// loadKeys finds the keys at their bound among the jobs that run, and how many of each are ready. Both are looked at as far as
// gateSample.
func loadKeys(v *view) (any, error) { return v.boundKeys() }

func (v *view) boundKeys() (*boundKeys, error) {
	now, err := v.queuesNow()
	if err != nil {
		return nil, err
	}
	limits, ofJobs := map[string]job.LimitSettings{}, false
	for _, l := range limitsOf(&now.Holds) {
		limits[l.Name] = l.Holds
		ofJobs = ofJobs || l.Holds.OfJobs()
	}
	if !ofJobs {
		return &boundKeys{}, nil
	}
	return cached(v, "bound keys", 2*time.Second, func(ctx context.Context) (*boundKeys, error) {
		return v.app.readKeys(ctx, job.NewGateRules(limits), limits, v.Now)
	})
}

func (a *app) readKeys(ctx context.Context, rules *job.GateRules, limits map[string]job.LimitSettings, now time.Time) (*boundKeys, error) {
	running, err := a.e.List(ctx, pawl.Filter{States: []pawl.State{job.Running}}, pawl.Page{Limit: gateSample})
	if err != nil {
		return nil, err
	}
	ready, err := a.e.List(ctx, pawl.Filter{States: []pawl.State{job.Waiting}, DueBefore: now}, pawl.Page{Limit: gateSample})
	if err != nil {
		return nil, err
	}
	type place struct{ limit, key string }
	found := map[place]*boundKey{}
	weights := map[string]int{}
	at := func(j *pawl.JobRecord) *boundKey {
		b, ok := rules.Bound(j.Queue, j.Kind, j.Key)
		if !ok || b.Key == "" || b.Concurrent == 0 {
			return nil
		}
		k := found[place{b.Limit, b.Key}]
		if k == nil {
			k = &boundKey{Limit: b.Limit, Key: b.Key, Queue: j.Queue, Of: b.Concurrent, Ordered: b.Ordered, weight: b.Weight,
				Link: a.link("/jobs", "queue", j.Queue, "key", j.Key)}
			found[place{b.Limit, b.Key}] = k
			weights[b.Limit] += b.Weight
		}
		return k
	}
	keys := &boundKeys{More: running.More, Limits: map[string]gateCount{}}
	for i := range running.Jobs {
		if k := at(&running.Jobs[i]); k != nil {
			k.Running++
		}
	}
	for i := range ready.Jobs {
		if k := at(&ready.Jobs[i]); k != nil {
			k.Ready = pawl.Counted{Jobs: k.Ready.Jobs + 1, More: ready.More}
		}
	}
	for name, l := range limits {
		if l.OfJobs() {
			keys.Limits[name] = gateCount{countCovered(&l, &running), countCovered(&l, &ready)}
			keys.PerKey = keys.PerKey || l.PerKey && l.MaxRunning() > 0
		}
	}
	for p, k := range found {
		if k.Running >= k.Of {
			k.Share = percent(float64(k.weight), float64(weights[p.limit]))
			keys.List = append(keys.List, *k)
		}
	}
	slices.SortFunc(keys.List, func(a, b boundKey) int {
		return cmp.Or(cmp.Compare(b.Ready.Jobs, a.Ready.Jobs), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Key, b.Key))
	})
	if len(keys.List) > maxBoundKeys {
		keys.List, keys.More = keys.List[:maxBoundKeys], true
	}
	return keys, nil
}

// countCovered counts the jobs that a limit bounds.
func countCovered(l *job.LimitSettings, list *pawl.Listed) pawl.Counted {
	n := pawl.Counted{More: list.More}
	for i := range list.Jobs {
		if j := &list.Jobs[i]; l.Covers(j.Queue, j.Kind) && (!l.PerKey || j.Key != "") {
			n.Jobs++
		}
	}
	return n
}
