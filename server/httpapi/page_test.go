package httpapi

import (
	"slices"
	"testing"
)

func TestU2_APageBeginsBehindItsPlace(t *testing.T) {
	name := func(s *string) string { return *s }
	all := []string{"d", "b", "a", "c", "e"}
	page, next, err := pageOf(&Paging{Limit: 2}, all, name)
	if err != nil || !slices.Equal(page, []string{"a", "b"}) || next == "" {
		t.Fatalf("%v, %q, %v", page, next, err)
	}
	// b has gone, and aa came before its place
	page, next, err = pageOf(&Paging{Limit: 2, After: next}, []string{"a", "aa", "c", "d", "e"}, name)
	if err != nil || !slices.Equal(page, []string{"c", "d"}) || next == "" {
		t.Fatalf("%v, %q, %v", page, next, err)
	}
	page, next, err = pageOf(&Paging{Limit: 2, After: next}, all, name)
	if err != nil || !slices.Equal(page, []string{"e"}) || next != "" {
		t.Fatalf("%v, %q, %v", page, next, err)
	}
	if page, next, err = pageOf(&Paging{Limit: 5}, all, name); err != nil || len(page) != 5 || next != "" {
		t.Errorf("a full last page: %v, %q, %v", page, next, err)
	}
	if !slices.Equal(all, []string{"d", "b", "a", "c", "e"}) {
		t.Errorf("the list was changed: %v", all)
	}
}
