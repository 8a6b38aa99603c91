package table

import (
	"slices"
	"testing"
)

func names(list []Table) (names []string) {
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}

var some = []Table{
	{Name: "namespace", Key: []string{"id"}, Shared: true},
	{Name: "worker", Key: []string{"namespace", "id"}, Expiry: Expiry{Column: "lost", Own: "when it holds nothing"}},
	{Name: "alone", Key: []string{"namespace"}, Parent: Parent{"job", []string{"job"}}},
	{Name: "job", Key: []string{"namespace", "id"}},
	{Name: "archive", Key: []string{"namespace", "id"}},
	{Name: "log", Key: []string{"namespace", "job", "line"}, Parent: Parent{"job", []string{"job", "archive"}}},
	{Name: "tombstone", Key: []string{"namespace", "id"}, Expiry: Expiry{Column: "expires"}},
}

func TestP6_ChildrenComeBeforeTheirParents(t *testing.T) {
	got := names(InNamespace(some))
	if want := []string{"tombstone", "log", "archive", "alone", "job", "worker"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	if names(some)[0] != "namespace" {
		t.Error("the list itself was changed")
	}
}

// Two tables that name each other are both listed all the same.
func TestP6_CirclesEnd(t *testing.T) {
	circle := []Table{
		{Name: "a", Parent: Parent{"b", []string{"b"}}},
		{Name: "b", Parent: Parent{"a", []string{"a"}}},
		{Name: "c", Parent: Parent{"up", []string{"c"}}},
	}
	if got := names(InNamespace(circle)); len(got) != 3 {
		t.Errorf("%v, want all three", got)
	}
}

func TestJ15_WhatIsSimplyDeleted(t *testing.T) {
	if got := names(Expiring(some)); !slices.Equal(got, []string{"tombstone"}) {
		t.Errorf("%v, want those that expire and have no statement of their own", got)
	}
}
