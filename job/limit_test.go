package job_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
)

func TestJ17_LimitSettingsAreJSON(t *testing.T) {
	s := job.LimitSettings{
		Queue: "imports", Kind: "render.*", PerKey: true, Concurrent: 1, Ordered: true,
		Weights: map[string]int{"acme": 3}, Burst: 100, PerSecond: 1.4,
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"burst":100,"concurrent":1,"kind":"render.*","ordered":true,"per_key":true,"per_second":1.4,"queue":"imports","weights":{"acme":3}}`
	if string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	var back job.LimitSettings
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("got %+v, %v, want %+v", back, err, s)
	}
	if err := json.Unmarshal([]byte(`{"weights":{"other":2},"concurrent":"two","colour":"red"}`), &back); err == nil || !strings.Contains(err.Error(), "concurrent") {
		t.Errorf("the error is %v, want concurrent in it", err)
	}
	if back.Concurrent != 1 || !reflect.DeepEqual(back.Weights, map[string]int{"other": 2}) {
		t.Errorf("got %+v, want the weights replaced and nothing else", back)
	}
	if text, err := json.Marshal(job.LimitSettings{}); err != nil || string(text) != "{}" {
		t.Errorf("what is not set is %s, %v", text, err)
	}
}

func TestJ17_LimitSettingsHaveBounds(t *testing.T) {
	for _, good := range []job.LimitSettings{
		{PerSecond: 1.4},
		{PerSecond: 1.4, Burst: 100},
		{PerSecond: job.NoLimit},
		{Kind: "render.*", Concurrent: 8},
		{Queue: "imports", PerKey: true, Concurrent: 1, Ordered: true, Weights: map[string]int{"acme": 3}},
		{Queue: "imports", PerKey: true, PerSecond: 2},
	} {
		if err := good.Check("limit a"); err != nil {
			t.Errorf("%+v is refused: %v", good, err)
		}
	}
	for want, bad := range map[string]job.LimitSettings{
		"PerSecond 0: must be set":                  {Queue: "a"},
		"PerSecond -2":                              {PerSecond: -2},
		"PerSecond 1e+07":                           {PerSecond: 1e7},
		"PerSecond 1e-07":                           {PerSecond: 1e-7},
		"Burst -1":                                  {PerSecond: 1, Burst: -1},
		"Burst 5: needs PerSecond":                  {Queue: "a", Concurrent: 1, Burst: 5},
		"Concurrent -2":                             {Queue: "a", Concurrent: -2},
		"Concurrent 3: needs a Queue or a Kind":     {Concurrent: 3},
		"PerKey true: needs a Queue or a Kind":      {PerSecond: 1, PerKey: true},
		"Ordered true: needs PerKey":                {Queue: "a", Concurrent: 1, Ordered: true},
		"Ordered true: needs PerKey, and Concur":    {Queue: "a", PerKey: true, Concurrent: 2, Ordered: true},
		`Weights "of 1 keys": need PerKey`:          {Queue: "a", Concurrent: 2, Weights: map[string]int{"a": 1}},
		`Weights["a"] 0: must be 1..1000`:           {Queue: "a", PerKey: true, Concurrent: 2, Weights: map[string]int{"a": 0}},
		`Queue "a b": must not contain`:             {Queue: "a b", Concurrent: 2},
		`Kind "a[*": must be a kind, a prefix endi`: {Kind: "a[*", Concurrent: 2},
	} {
		err := bad.Check("limit a")
		if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "limit a."+want) {
			t.Errorf("%+v: got %v, want %s", bad, err, want)
		}
	}
}

func TestJ17_WhatALimitIsAbout(t *testing.T) {
	render := job.LimitSettings{Queue: "gpu", Kind: "render.*"}
	if !render.Covers("gpu", "render.a") || render.Covers("cpu", "render.a") || render.Covers("gpu", "mail") {
		t.Error("a limit of a queue and a kind is about jobs of both")
	}
	if none := (job.LimitSettings{PerSecond: 1}); none.Covers("gpu", "render.a") || none.OfJobs() {
		t.Error("a limit without queue and kind is about jobs")
	}
	for _, c := range []struct {
		s    job.LimitSettings
		want job.Rate
	}{
		{job.LimitSettings{PerSecond: 1.4}, job.Rate{PerSecond: 1.4, Burst: 2}},
		{job.LimitSettings{PerSecond: 0.01}, job.Rate{PerSecond: 0.01, Burst: 1}},
		{job.LimitSettings{PerSecond: 5, Burst: 2}, job.Rate{PerSecond: 5, Burst: 2}},
		{job.LimitSettings{PerSecond: job.NoLimit, Burst: 2}, job.Rate{}},
	} {
		if got := c.s.Rate(); got != c.want {
			t.Errorf("%+v: the rate is %+v, want %+v", c.s, got, c.want)
		}
	}
	if s := (job.LimitSettings{Ordered: true, PerKey: true, Concurrent: 2}); s.InOrder() {
		t.Error("two at once are in order")
	}
}
