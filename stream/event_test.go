package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func good() Publication { return Publication{Event: Event{ID: "e1", Topic: "orders.placed"}} }

// Each fault is named with its field, and all at once.
func TestE1_WhatIsRefused(t *testing.T) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	many := map[string]string{}
	for i := range MaxHeaders + 1 {
		many[fmt.Sprint("h", i)] = ""
	}
	cases := map[string]struct {
		change func(*Publication)
		field  string
	}{
		"no topic":           {func(d *Publication) { d.Topic = "" }, "topic"},
		"pattern":            {func(d *Publication) { d.Topic = "a.*" }, "topic"},
		"no id":              {func(d *Publication) { d.ID = "" }, "id"},
		"long id":            {func(d *Publication) { d.ID = strings.Repeat("x", 256) }, "id"},
		"data":               {func(d *Publication) { d.Data = make([]byte, DefaultData+1) }, "data"},
		"long key":           {func(d *Publication) { d.Key = strings.Repeat("x", 256) }, "key"},
		"control characters": {func(d *Publication) { d.Type = "a\nb" }, "type"},
		"no UTF-8":           {func(d *Publication) { d.Source = "\xff" }, "source"},
		"schema":             {func(d *Publication) { d.Schema = -1 }, "schema"},
		"header name":        {func(d *Publication) { d.Headers = map[string]string{"": "x"} }, "header name"},
		"header value":       {func(d *Publication) { d.Headers = map[string]string{"a": "\xff"} }, "header a"},
		"many headers":       {func(d *Publication) { d.Headers = many }, "headers"},
		"large headers":      {func(d *Publication) { d.Headers = map[string]string{"a": strings.Repeat("x", MaxHeaderAll)} }, "headers"},
		"far time":           {func(d *Publication) { d.Time = noon.AddDate(9000, 0, 0) }, "time"},
		"delay":              {func(d *Publication) { d.In = -1 }, "delay"},
		"time to live":       {func(d *Publication) { d.TTL = -1 }, "time to live"},
		"expires too early":  {func(d *Publication) { d.At, d.Expires = noon, noon }, "expiry"},
		"version 0":          {func(d *Publication) { d.Expect = Version(0) }, "expected version"},
		"version later":      {func(d *Publication) { d.Expect, d.In = Version(1), time.Hour }, "expected version"},
	}
	for name, c := range cases {
		d := good()
		c.change(&d)
		if err := d.Check(Bounds{}); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := Publication{Event: Event{Key: "\x00", Schema: -2}}
	err := all.Check(Bounds{})
	for _, field := range []string{"topic", "id", "key", "schema"} {
		if !strings.Contains(fmt.Sprint(err), field) {
			t.Errorf("%v does not name the %s", err, field)
		}
	}
	fine := good()
	fine.Key, fine.Data, fine.Headers = "", make([]byte, DefaultData), map[string]string{"a": "line\nline"}
	if err := fine.Check(Bounds{}); err != nil {
		t.Error(err)
	}
	small := good()
	small.Data = make([]byte, 11)
	if err := small.Check(Bounds{Data: 10}); err == nil {
		t.Error("11 bytes of at most 10 are accepted")
	}
}

func TestE3_ExpectedVersions(t *testing.T) {
	for _, c := range []struct {
		expect Expect
		last   int64
		ok     bool
	}{
		{AnyVersion(), 0, true}, {AnyVersion(), 7, true}, {Expect{}, 7, true},
		{NoStream(), 0, true}, {NoStream(), 1, false},
		{Version(1), 1, true}, {Version(1), 0, false}, {Version(1), 2, false},
	} {
		if got := c.expect.Allows(c.last); got != c.ok {
			t.Errorf("%v after %d: %v", c.expect, c.last, got)
		}
	}
}

func TestE5_Filters(t *testing.T) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	e := Event{ID: "1", Topic: "orders.placed", Key: "eu-7", Type: "order", Source: "shop", Time: noon}
	for _, c := range []struct {
		f    Filter
		want bool
	}{
		{Filter{}, true}, {Filter{Topic: "orders.*"}, true}, {Filter{Topic: "mails.*"}, false},
		{Filter{Key: "eu-7"}, true}, {Filter{Key: "eu"}, false}, {Filter{KeyPrefix: "eu-"}, true}, {Filter{KeyPrefix: "us"}, false},
		{Filter{Type: "order"}, true}, {Filter{Type: "Order"}, false}, {Filter{Source: "shop"}, true}, {Filter{Source: "x"}, false},
		{Filter{After: noon}, true}, {Filter{After: noon.Add(1)}, false}, {Filter{Before: noon}, false}, {Filter{Before: noon.Add(1)}, true},
	} {
		m, err := c.f.Matcher()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Match(&e); got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
	for field, f := range map[string]Filter{
		"Filter.Topic": {Topic: "a..b"}, "Filter.Key": {Key: "\x01"}, "Filter.KeyPrefix": {Key: "a", KeyPrefix: "b"},
		"Filter.Before": {After: noon, Before: noon}, "Filter.Type": {Type: strings.Repeat("x", 256)},
	} {
		if _, err := f.Matcher(); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
