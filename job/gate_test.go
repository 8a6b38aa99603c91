package job

import "testing"

func TestJ19_AJobHasTheGateOfTheLimitThatSaysMost(t *testing.T) {
	rules := NewGateRules(map[string]LimitSettings{
		"queue":   {Queue: "q", Concurrent: 9},
		"kind":    {Kind: "render.*", Concurrent: 8},
		"both":    {Queue: "q", Kind: "render.big", Concurrent: 7},
		"tenants": {Queue: "q", PerKey: true, Concurrent: 6},
		"acquire": {PerSecond: 5},
	})
	for _, c := range []struct {
		queue, kind, key, limit string
		also                    int
	}{
		{"q", "mail", "", "queue", 0},
		{"q", "render.small", "", "kind", 1},
		{"q", "render.big", "", "both", 2},
		{"q", "render.big", "acme", "tenants", 3},
		{"other", "render.small", "acme", "kind", 0},
		{"other", "mail", "acme", "", 0},
	} {
		b, ok := rules.Bound(c.queue, c.kind, c.key)
		if b.Limit != c.limit || ok != (c.limit != "") || b.Gate != rules.Gate(c.queue, c.kind, c.key) || ok != (b.Gate != 0) {
			t.Errorf("%+v: bound by %+v", c, b)
		}
		if also := rules.Also(c.queue, c.kind, c.key); len(also) != c.also {
			t.Errorf("%+v: also bound by %+v", c, also)
		}
	}
	if !rules.Overlap() || !rules.Touches("other") || NewGateRules(nil).Touches("q") {
		t.Error("what the rules touch")
	}
	if a, b := rules.Gate("q", "mail", "a"), rules.Gate("q", "mail", "b"); a == b {
		t.Error("two keys share a gate")
	}
}

// The numbers are stored: a build that made others would not find its jobs.
func TestJ19_GatesKeepTheirNumbers(t *testing.T) {
	rules := NewGateRules(map[string]LimitSettings{"tenants": {Queue: "q", PerKey: true, Concurrent: 1}, "render": {Kind: "render", Concurrent: 1}})
	if a, b := rules.Gate("q", "mail", "acme"), rules.Gate("x", "render", ""); a != 2345978449009553345 || b != -4132483059799898090 {
		t.Errorf("gates %d and %d", a, b)
	}
}

func TestJ19_LimitsThatCannotMeetDoNotOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b LimitSettings
		want bool
	}{
		{LimitSettings{Queue: "a", Concurrent: 1}, LimitSettings{Queue: "b", Concurrent: 1}, false},
		{LimitSettings{Kind: "a", Concurrent: 1}, LimitSettings{Kind: "b", Concurrent: 1}, false},
		{LimitSettings{Kind: "a.*", Concurrent: 1}, LimitSettings{Kind: "a.b", Concurrent: 1}, true},
		{LimitSettings{Kind: "a.*", Concurrent: 1}, LimitSettings{Queue: "q", Concurrent: 1}, true},
		{LimitSettings{Queue: "q", Kind: "a", Concurrent: 1}, LimitSettings{Queue: "q", Kind: "b.*", Concurrent: 1}, false},
	} {
		if got := NewGateRules(map[string]LimitSettings{"a": c.a, "b": c.b}).Overlap(); got != c.want {
			t.Errorf("%+v and %+v: overlap %v", c.a, c.b, got)
		}
	}
}

// A gate lets through no more than burst + rate × time, and not less by more than one.
func TestJ17_TokensOfAGate(t *testing.T) {
	rate := Rate{PerSecond: 3, Burst: 5}
	tokens := rate.Full(0)
	taken := 0
	for now := int64(0); now < 100_000_000; now += 7_919 {
		tokens.Fill(rate, now)
		n := tokens.There()
		tokens.Take(n)
		taken += n
		if most := 5 + 3*float64(now)/1e6; float64(taken) > most {
			t.Fatalf("%d after %d µs, at most %v", taken, now, most)
		}
	}
	if taken < 300 {
		t.Errorf("%d in 100 s, want about 305", taken)
	}
	before := tokens.Level
	if tokens.Fill(rate, 1_000); tokens.Level > before {
		t.Error("a clock that was set back brings tokens")
	}
	tokens = GateTokens{Level: 0.25, At: 0}
	if w := tokens.Wait(rate); w.Microseconds() != 250_001 {
		t.Errorf("the next one comes in %v", w)
	}
}
