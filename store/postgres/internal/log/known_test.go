package log

import "testing"

// In two epochs a number may stand for two topics: calls of both share no commit of either.
func TestE6_CallsOfTwoEpochsAreOfNone(t *testing.T) {
	old, now := &numbered{9, map[string]int32{"a": 1}}, &numbered{5, map[string]int32{"b": 1}}
	for _, both := range []*numbered{old.with(now), now.with(old)} {
		if both.epoch != 0 {
			t.Errorf("epoch %d, want none", both.epoch)
		}
	}
	if len(old.of) != 1 || len(now.of) != 1 {
		t.Error("what calls share was changed")
	}
	same := (&numbered{5, map[string]int32{"a": 1}}).with(now)
	if same.epoch != 5 || same.of["a"] != 1 || same.of["b"] != 1 {
		t.Errorf("%+v", same)
	}
}

// An answer that comes when the epoch is another is not remembered.
func TestE6_ALateAnswerOfAnotherEpochIsForgotten(t *testing.T) {
	var known topics
	known.enter(1)
	epoch, asOf := known.stand()
	known.enter(2)
	known.learn(epoch, "a", 1, false, asOf)
	epoch, asOf = known.stand()
	known.learn(epoch, "b", 1, false, asOf)
	if known.alone("a") != nil {
		t.Error("a topic of another epoch is known")
	}
	if b := known.alone("b"); b == nil || b.epoch != 2 || b.of["b"] != 1 {
		t.Errorf("%+v", b)
	}
}
