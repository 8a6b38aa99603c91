package stream

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

func TestE1_Topics(t *testing.T) {
	for _, topic := range []string{"a", "orders.placed", "Orders.v2.EU-west_1", "größe.größer", strings.Repeat("x", 255), "a/b:c.d"} {
		if err := CheckTopic("topic", topic); err != nil {
			t.Error(err)
		}
	}
	for _, topic := range []string{"", ".", "a.", ".a", "a..b", "orders.*", "orders.>", "a>b", "a b", "a\tb", "a\x00b", "a,b", "\xff", strings.Repeat("x", 256)} {
		if err := CheckTopic("topic", topic); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "topic") {
			t.Errorf("%q: %v", topic, err)
		}
	}
}

func TestE1_Patterns(t *testing.T) {
	for pattern, topics := range map[string][2]string{
		"":                {"a a.b a.b.c", ""},
		">":               {"a a.b a.b.c", ""},
		"orders.placed":   {"orders.placed", "orders orders.placed.eu orders.place orders.placed2 x.orders.placed"},
		"orders.*":        {"orders.placed orders.x", "orders orders.placed.eu order.placed ordersx.placed"},
		"orders.>":        {"orders.placed orders.placed.eu", "orders ordersx.a"},
		"*.placed":        {"orders.placed x.placed", "placed orders.placed.eu orders.x"},
		"orders.*.eu":     {"orders.placed.eu", "orders.eu orders.placed.us orders.placed.eu.x"},
		"orders.*.>":      {"orders.a.b orders.a.b.c", "orders.a orders"},
		"*":               {"a", "a.b"},
		"*.*":             {"a.b", "a a.b.c"},
		"größe.*":         {"größe.x", "größer.x"},
		"orders.placed.>": {"orders.placed.eu", "orders.placed orders.placedx.eu"},
	} {
		p, err := ParsePattern("topic", pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, topic := range strings.Fields(topics[0]) {
			if !p.Match(topic) {
				t.Errorf("%s does not match %s", pattern, topic)
			}
		}
		for _, topic := range strings.Fields(topics[1]) {
			if p.Match(topic) {
				t.Errorf("%s matches %s", pattern, topic)
			}
		}
	}
	for _, pattern := range []string{"orders.", ".*", "a..b", "or*.x", "a.>.b", "a.b>", ">.a", "a b", "**", strings.Repeat("x", 256)} {
		if _, err := ParsePattern("topic", pattern); !errors.Is(err, job.ErrInvalid) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	var all TopicPattern
	if !all.Match("a.b") || all.String() != ">" {
		t.Error("the zero pattern does not match all")
	}
}

// A pattern matches as the regular expression does that is written from the rules.
func TestE1_PatternsAgreeWithExpressions(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "a-b"})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "pattern")
		if rapid.Bool().Draw(t, "rest") {
			parts = append(parts, ">")
		}
		text := strings.Join(parts, ".")
		expression := "^" + strings.NewReplacer(`\*`, `[^.]+`, `>`, `.+`).Replace(regexp.QuoteMeta(text)) + "$"
		topic := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "abc", "a-b"}), 1, 5).Draw(t, "topic"), ".")
		p, err := ParsePattern("topic", text)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(expression).MatchString(topic)
		if got := p.Match(topic); got != want {
			t.Fatalf("%s and %s: %v, want %v", text, topic, got, want)
		}
		if want && !strings.HasPrefix(topic, p.Prefix()) {
			t.Fatalf("%s does not begin with %s", topic, p.Prefix())
		}
		if topic2, one := p.Topic(); one != !strings.ContainsAny(text, "*>") || one && topic2 != text {
			t.Fatalf("%s is one topic: %v", text, one)
		}
	})
}
