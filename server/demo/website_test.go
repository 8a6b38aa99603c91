package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
)

// What comes in is steady, and what nobody works on cannot pile up: it is unique, and there are few
// different ones of it.
func TestU7_WhatTheDemoEnqueuesIsBounded(t *testing.T) {
	const hours = 2
	w := &website{orders: 20}
	all, unlike := map[string]int{}, map[string]map[string]bool{}
	for n := range int64(hours * 3600 * 4) {
		w.next(n, func(args pawl.Args, _ ...pawl.EnqueueOption) {
			kind := args.Kind()
			if all[kind]++; unlike[kind] == nil {
				unlike[kind] = map[string]bool{}
			}
			unlike[kind][fmt.Sprint(args)] = true
			if _, ok := args.(pawl.ArgsWithDefaults); !ok {
				t.Fatalf("%s names no queue", kind)
			}
		})
	}
	if got := all["order.charge"]; got != hours*3600*20 {
		t.Errorf("%d orders in %d hours", got, hours)
	}
	for kind, most := range map[string]int{
		"legacy.push": 200, "feed.import": 51, "geo.lookup": 60, "mail.reminder": 120, "tenant.sync": 16 + 3*10, "export.csv": 3,
	} {
		if n := len(unlike[kind]); n == 0 || n > most {
			t.Errorf("%s: %d different ones, want 1 to %d", kind, n, most)
		}
	}
	if n := all["feed.import"] - hours*1800; n != hours*20 {
		t.Errorf("%d poisoned feeds in %d hours", n, hours)
	}
}

// What is to be tried is a list of lines, and says what shipping is good for.
func TestU7_WhatToTryFitsALine(t *testing.T) {
	ships := 0
	for _, try := range trials {
		if text := strings.NewReplacer("*", "", "`", "").Replace(try.Title); len(text) > 38 || len(try.Hint) > 110 {
			t.Errorf("%q or %q is long", text, try.Hint)
		}
		if strings.Contains(try.Ships, "VAT id") {
			ships++
		}
	}
	if ships != 1 {
		t.Errorf("%d say what shipping is good for", ships)
	}
}

// The demo may run for days.
func TestU7_TheDemoKeepsLittle(t *testing.T) {
	for name, q := range workersConfig(versionFirst).Queues {
		if q.KeepDone != keepDone || q.KeepDead != keepDead || q.KeepCancelled != keepDead {
			t.Errorf("%s keeps %v, %v and %v", name, q.KeepDone, q.KeepDead, q.KeepCancelled)
		}
	}
}

// One order in a hundred has no VAT id, so that its invoice dies.
func TestU7_AFixedShareOfOrdersHasNoVATID(t *testing.T) {
	invoices, without := 0, 0
	for n := range int64(1000) {
		if o := newOrder(n); o.invoiced() {
			if invoices++; o.VATID == "" {
				without++
			}
		}
	}
	if invoices != 100 || without != 10 {
		t.Errorf("%d of %d invoices", without, invoices)
	}
}
