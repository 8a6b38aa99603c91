package main

// target is a ratio that Pawl must reach. More is better, whatever is measured.
type target struct {
	against string
	atLeast float64
	aim     float64
	ours    string   // contender
	theirs  string   // contender, or "" for the fixed figure
	best    []string // contenders of which the best counts, instead of theirs
	fixed   float64
	unit    unit
	fewer   bool // a smaller figure is the better one: the ratio is theirs to ours
}

// ratio compares the medians of two contenders. It reports false when one of them did not run.
func (t target) ratio(rows map[string]measurement) (float64, bool) {
	ours := t.unit.of(rows[t.ours])
	theirs := &t.fixed
	if t.theirs != "" {
		theirs = t.unit.of(rows[t.theirs])
	}
	for _, name := range t.best {
		if of := t.unit.of(rows[name]); of != nil && (*of > *theirs) {
			theirs = of
		}
	}
	if ours == nil || theirs == nil || *ours == 0 || *theirs == 0 {
		return 0, false
	}
	if t.fewer {
		return *theirs / *ours, true
	}
	return *ours / *theirs, true
}

// faster: more per second than a peer.
func faster(against, theirs string, atLeast, aim float64) target {
	return target{against: against, theirs: theirs, atLeast: atLeast, aim: aim, ours: pawlName, unit: perSecond}
}

// fasterThanBest: more per second than a peer with whichever of its settings is the best.
func fasterThanBest(against string, best []string, atLeast, aim float64) target {
	return target{against: against, best: best, atLeast: atLeast, aim: aim, ours: pawlName, unit: perSecond}
}

// sooner: a lower median latency than a peer.
func sooner(against, theirs string, atLeast, aim float64) target {
	return target{against: against, theirs: theirs, atLeast: atLeast, aim: aim, ours: pawlName, unit: p50, fewer: true}
}

// below: less of something than a fixed limit.
func below(against string, limit float64, u unit, atLeast, aim float64) target {
	return target{against: against, fixed: limit, atLeast: atLeast, aim: aim, ours: pawlName, unit: u, fewer: true}
}

// pawlName is our name among the systems.
const pawlName = "pawl"
