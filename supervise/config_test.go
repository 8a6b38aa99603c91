package supervise_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

func noShard(context.Context, string) error { return nil }

func TestNew_NamesFieldValueAndBoundOfEveryFault(t *testing.T) {
	tick := func(options ...supervise.Option) supervise.Service {
		return supervise.Every("s", time.Second, nothing, options...)
	}
	cases := map[string]struct {
		services []supervise.Service
		want     []string
	}{
		"no services":        {nil, []string{"Services", "0", "at least 1"}},
		"empty groups only":  {[]supervise.Service{supervise.Group("g")}, []string{"Services", "0", "at least 1"}},
		"empty name":         {[]supervise.Service{supervise.Loop("", nothing)}, []string{"name is empty", "number 1"}},
		"long name":          {[]supervise.Service{supervise.Loop(strings.Repeat("n", 101), nothing)}, []string{"101 bytes", "1 to 100"}},
		"name with a slash":  {[]supervise.Service{supervise.Loop("a/b", nothing)}, []string{`"a/b"`, `without "/"`}},
		"name with newline":  {[]supervise.Service{supervise.Loop("a\nb", nothing)}, []string{`"a\nb"`, "control"}},
		"duplicate name":     {[]supervise.Service{tick(), supervise.Loop("s", nothing)}, []string{`"s"`, "unique"}},
		"duplicate in group": {[]supervise.Service{supervise.Group("g", tick(), tick())}, []string{`"g/s"`, "unique"}},
		"duplicate group":    {[]supervise.Service{supervise.Group("g", tick()), supervise.Group("g", tick())}, []string{`"g"`, "unique"}},
		"nil Every":          {[]supervise.Service{supervise.Every("s", time.Second, nil)}, []string{`"s"`, "function is nil"}},
		"nil EveryShard":     {[]supervise.Service{supervise.EveryShard("s", time.Second, []string{"a"}, nil)}, []string{`"s"`, "function is nil"}},
		"nil Loop":           {[]supervise.Service{supervise.Loop("s", nil)}, []string{`"s"`, "function is nil"}},
		"nil Once":           {[]supervise.Service{supervise.Once("s", nil)}, []string{`"s"`, "function is nil"}},
		"zero interval":      {[]supervise.Service{supervise.Every("s", 0, nothing)}, []string{"interval is 0s", "100ms"}},
		"negative interval":  {[]supervise.Service{supervise.Every("s", -time.Second, nothing)}, []string{"interval is -1s", "100ms"}},
		"no shards":          {[]supervise.Service{supervise.EveryShard("s", time.Second, nil, noShard)}, []string{"shards has 0", "at least 1"}},
		"duplicate shard":    {[]supervise.Service{supervise.EveryShard("s", time.Second, []string{"x", "x"}, noShard)}, []string{`shard "x"`, "unique"}},
		"empty shard":        {[]supervise.Service{supervise.EveryShard("s", time.Second, []string{""}, noShard)}, []string{`shard ""`, "1 to 255"}},
		"negative jitter":    {[]supervise.Service{tick(supervise.StartJitter(-1))}, []string{"StartJitter is -1ns", "at least 0"}},
		"negative timeout":   {[]supervise.Service{tick(supervise.Timeout(-1))}, []string{"Timeout is -1ns", "at least 0"}},
		"nil policy":         {[]supervise.Service{tick(supervise.Restart(nil))}, []string{"Restart is nil", "Bounded"}},
		"nil leadership":     {[]supervise.Service{tick(supervise.OnlyIfMine(nil))}, []string{"OnlyIfMine is nil"}},
		"nil option":         {[]supervise.Service{tick(nil)}, []string{"option is nil"}},
		"jitter of a loop":   {[]supervise.Service{supervise.Loop("s", nothing, supervise.StartJitter(1))}, []string{"StartJitter", "loop", "ticks only"}},
		"timeout of a once":  {[]supervise.Service{supervise.Once("s", nothing, supervise.Timeout(1))}, []string{"Timeout", "once", "ticks only"}},
		"negative max":       {[]supervise.Service{tick(supervise.Restart(supervise.Bounded{Max: -1}))}, []string{"Bounded.Max is -1", "1 to 10000"}},
		"huge max":           {[]supervise.Service{tick(supervise.Restart(supervise.Bounded{Max: 10_001}))}, []string{"Bounded.Max is 10001", "1 to 10000"}},
		"negative window":    {[]supervise.Service{tick(supervise.Restart(supervise.Bounded{Window: -1}))}, []string{"Bounded.Window is -1ns", "above 0"}},
		"negative first":     {[]supervise.Service{tick(supervise.Restart(supervise.Always{First: -1}))}, []string{"Always.First is -1ns", "above 0"}},
		"limit below first":  {[]supervise.Service{tick(supervise.Restart(supervise.Always{First: time.Minute}))}, []string{"Always.Limit is 30s", "1m0s"}},
		"zero Service":       {[]supervise.Service{{}}, []string{"kind is empty", "Every"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := supervise.New(supervise.Config{Services: c.services})
			if err == nil {
				t.Fatal("New accepted it")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestNew_ReportsAllFaultsAtOnce(t *testing.T) {
	_, err := supervise.New(supervise.Config{
		Grace: -time.Second,
		Floor: -time.Minute,
		Services: []supervise.Service{
			supervise.Loop("twice", nothing),
			supervise.Group("g", supervise.Every("fast", 5*time.Minute, nil)),
			supervise.Loop("twice", nil),
		},
	})
	for _, want := range []string{"Config.Grace is -1s", "Config.Floor is -1m0s", `"g/fast": function is nil`, `"twice": name is used twice`, `"twice": function is nil`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestNew_SameNameInDifferentGroupsIsFine(t *testing.T) {
	build(t, supervise.Config{Services: []supervise.Service{
		supervise.Loop("s", nothing),
		supervise.Group("g", supervise.Loop("s", nothing)),
		supervise.Group("h", supervise.Loop("s", nothing), supervise.Group("empty")),
	}})
}
