package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestMedian_CountsEachFigureByItself(t *testing.T) {
	runs := []measurement{
		{PerSecond: new(30.0), P50: new(1.0)},
		{PerSecond: new(10.0), P50: new(3.0)},
		{PerSecond: new(20.0), P50: new(2.0)},
	}
	m := medianOf(runs)
	if *m.PerSecond != 20 || *m.P50 != 2 || m.RSS != nil {
		t.Errorf("median %v per s, %v ms, rss %v; want 20, 2, nil", *m.PerSecond, *m.P50, m.RSS)
	}
	if m := medianOf(runs[:2]); *m.PerSecond != 20 {
		t.Errorf("median of 30 and 10 is %v, want 20", *m.PerSecond)
	}
	if lowest, most := spread(perSecond, runs); lowest != 10 || most != 30 {
		t.Errorf("spread %v..%v, want 10..30", lowest, most)
	}
}

func TestTarget_MoreIsBetterWhateverIsMeasured(t *testing.T) {
	rows := map[string]measurement{
		pawlName: {PerSecond: new(100.0), P50: new(2.0), RSS: new(50.0)},
		"peer":   {PerSecond: new(25.0), P50: new(5.0), RSS: new(75.0)},
	}
	for _, c := range []struct {
		name   string
		target target
		want   float64
	}{
		{"rate", faster("peer", "peer", 1, 1), 4},
		{"latency", sooner("peer", "peer", 1, 1), 2.5},
		{"limit", below("limit", 150, rss, 1, 1), 3},
		{"memory", target{ours: pawlName, theirs: "peer", unit: rss, fewer: true}, 1.5},
		{"ideal", target{ours: pawlName, fixed: 400, unit: perSecond}, 0.25},
	} {
		if got, ok := c.target.ratio(rows); !ok || got != c.want {
			t.Errorf("%s: ratio %v, %v; want %v", c.name, got, ok, c.want)
		}
	}
	if _, ok := faster("absent", "absent", 1, 1).ratio(rows); ok {
		t.Error("a peer that did not run gives a ratio")
	}
}

// The fields are those that PERFORMANCE.md names, and what was not measured is null, not 0.
func TestReport_HasTheFieldsOfTheSpecification(t *testing.T) {
	text, err := json.Marshal(report{
		Rows:   []row{{Work: "w", System: "s", measurement: measurement{PerSecond: new(1.5)}, Runs: 3}},
		Ratios: []ratioRow{{Work: "w", Against: "a", Ratio: 2, AtLeast: 1, Aim: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"work":"w","system":"s","per_s":1.5,"p50_ms":null,"p99_ms":null,"rss_mb":null,"cpu_us_per_op":null,"runs":3`,
		`"ratios":[{"work":"w","against":"a","ratio":2,"at_least":1,"aim":3}]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nis not in\n%s", want, text)
		}
	}
}

// A target that names a system which the work does not run would never be judged.
func TestWorks_TargetsNameTheirSystems(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range works() {
		if seen[w.name] {
			t.Errorf("work %s is there twice", w.name)
		}
		seen[w.name] = true
		has := func(system string) bool {
			return slices.ContainsFunc(w.systems, func(c contender) bool { return c.name == system })
		}
		if len(w.targets) == 0 {
			t.Errorf("%s has no target", w.name)
		}
		for _, g := range w.targets {
			for _, name := range g.best {
				if !has(name) {
					t.Errorf("%s: target %q compares with %q", w.name, g.against, name)
				}
			}
			if !has(g.ours) || g.theirs != "" && !has(g.theirs) || g.theirs == "" && g.fixed == 0 && len(g.best) == 0 {
				t.Errorf("%s: target %q compares %q with %q", w.name, g.against, g.ours, g.theirs)
			}
			if g.atLeast <= 0 || g.aim < g.atLeast {
				t.Errorf("%s: target %q wants %v and aims at %v", w.name, g.against, g.atLeast, g.aim)
			}
		}
		for _, c := range w.systems {
			if _, err := findContender(w.name, c.name); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(all, func(w work) bool { return w.name == "sqlite-million" }) {
		t.Error("the table runs a work that is on demand")
	}
	if some, err := choose("sqlite-million,batch-do-64"); err != nil || len(some) != 2 {
		t.Errorf("%d works, %v; want the two named", len(some), err)
	}
	if _, err := choose("sqlite-drain"); err == nil || !strings.Contains(err.Error(), `"sqlite-drain"`) {
		t.Errorf("error %v, want one that names the work", err)
	}
}
