package store_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestJ30_Resolve(t *testing.T) {
	begin := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }
	a := store.Setting{Kind: store.SettingQueue, Name: "a"}
	declared := func(owner, version, value string, since, seen int) store.Declared {
		return store.Declared{Declaration: store.Declaration{Setting: a, Value: json.RawMessage(value)}, Owner: owner, Version: version, Since: at(since), Seen: at(seen)}
	}
	over := func(value string) []store.Override {
		return []store.Override{{Setting: a, Value: json.RawMessage(value), By: "ann"}}
	}
	for _, c := range []struct {
		name       string
		reply      store.SettingsReply
		value      string
		version    string
		overridden []string
		conflicts  []string
	}{
		{name: "one", reply: store.SettingsReply{Declared: []store.Declared{declared("shop", "1", `{"total":1}`, 0, 0)}}, value: `{"total":1}`, version: "shop 1"},
		{name: "the one seen last", reply: store.SettingsReply{Declared: []store.Declared{
			declared("shop", "2", `{"total":2}`, 0, 5), declared("shop", "3", `{"total":3}`, 0, 1),
		}}, value: `{"total":2}`, version: "shop 2"},
		{name: "the first owner", reply: store.SettingsReply{Declared: []store.Declared{
			declared("mail", "1", `{"total":9}`, 3, 3), declared("shop", "1", `{"total":1}`, 1, 1), declared("same", "1", `{"total":1}`, 2, 2),
		}}, value: `{"total":1}`, version: "shop 1", conflicts: []string{"mail"}},
		{name: "an override", reply: store.SettingsReply{
			Declared: []store.Declared{declared("shop", "1", `{"total":1,"x":[1]}`, 0, 0)}, Overrides: over(`{"total":7,"attempts":2}`),
		}, value: `{"attempts":2,"total":7,"x":[1]}`, version: "shop 1", overridden: []string{"attempts", "total"}},
		{name: "an override alone", reply: store.SettingsReply{Overrides: over(`{"total":7}`)}, value: `{"total":7}`, version: " ", overridden: []string{"total"}},
		{name: "an override that cannot be read", reply: store.SettingsReply{
			Declared: []store.Declared{declared("shop", "1", `{"total":1}`, 0, 0)}, Overrides: over(`[`),
		}, value: `{"total":1}`, version: "shop 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := store.Resolve(c.reply)
			s, found := e.Of(a)
			if !found {
				t.Fatal("it comes to nothing")
			}
			if string(s.Value) != c.value || s.Owner+" "+s.Version != c.version {
				t.Errorf("got %s by %s %s, want %s by %s", s.Value, s.Owner, s.Version, c.value, c.version)
			}
			if !slices.Equal(s.Overridden, c.overridden) {
				t.Errorf("overridden are %v, want %v", s.Overridden, c.overridden)
			}
			var others []string
			for _, x := range s.Conflicts {
				others = append(others, x.Owner)
			}
			if !slices.Equal(others, c.conflicts) {
				t.Errorf("conflicts are with %v, want %v", others, c.conflicts)
			}
			if _, found := e.Of(store.Setting{Kind: store.SettingQueue, Name: "b"}); found {
				t.Error("what nobody has named comes to something")
			}
		})
	}
}

func TestJ30_TheWidestPauseIsNamed(t *testing.T) {
	kind, queue, all := store.Pause{Scope: store.PauseKind, Name: "k"}, store.OfQueue("q"), store.Pause{Scope: store.PauseAll}
	for _, c := range []struct {
		pauses []store.Pause
		want   store.PauseScope
	}{
		{[]store.Pause{kind}, store.PauseKind}, {[]store.Pause{kind, queue}, store.PauseQueue}, {[]store.Pause{kind, queue, all}, store.PauseAll},
		{[]store.Pause{store.OfQueue("k"), {Scope: store.PauseKind, Name: "q"}}, 0},
	} {
		got := store.PauseOf(c.pauses, "q", "k")
		if (got == nil) != (c.want == 0) || got != nil && got.Scope != c.want {
			t.Errorf("of %v, %v stops it, want %v", c.pauses, got, c.want)
		}
	}
}

func TestJ30_APatchOfAnOverride(t *testing.T) {
	s := store.Setting{Kind: store.SettingQueue, Name: "a"}
	for _, c := range []struct{ before, value, want string }{
		{``, `{"total":1}`, `{"total":1}`}, {`{"total":1}`, `{"attempts":2}`, `{"attempts":2,"total":1}`},
		{`{"total":1,"x":1}`, `{"total":null}`, `{"x":1}`}, {`{"total":1}`, `{"total":null}`, ``}, {`not JSON`, `{"total":1}`, `{"total":1}`},
		{`{"total":1}`, ``, ``},
	} {
		raw := func(text string) json.RawMessage {
			if text == "" {
				return nil
			}
			return json.RawMessage(text)
		}
		got, err := s.Patch(raw(c.before), raw(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%s over %s is %s (error %v), want %s", c.value, c.before, got, err, c.want)
		}
	}
	if _, err := s.Patch(nil, json.RawMessage(`{"total":"many"}`)); !errors.Is(err, job.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}
