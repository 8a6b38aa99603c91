package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// A filter that no job can match is a mistake, not an empty list.
func TestJ35_AFilterThatCannotMatchIsRefused(t *testing.T) {
	e := newEngine()
	defer e.Close()
	for field, f := range map[string]pawl.Filter{
		"Filter.Queue":     {Queue: "mail.*"},
		"Filter.Kind":      {Kind: "a\x00"},
		"Filter.Tag":       {Tag: "a b"},
		"Filter.Key":       {Key: "\xff"},
		"Filter.States":    {States: []pawl.State{99}},
		"Filter.Worker":    {Worker: -1},
		"Filter.DueBefore": {DueBefore: time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, listed := e.List(t.Context(), f, pawl.Page{})
		_, counted := e.Count(t.Context(), f, 0)
		_, cancelled := e.CancelAll(t.Context(), f)
		for _, err := range []error{listed, counted, cancelled} {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %v, want that it is named", field, err)
			}
		}
	}
}

func TestJ35_KindsByTheirBeginning(t *testing.T) {
	e := newEngine()
	defer e.Close()
	for _, kind := range []string{"mail.send", "mail.sort", "mailing", "other"} {
		if _, err := e.Enqueue(t.Context(), pawl.RawArgs(kind, []byte("{}"))); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]int{"mail.*": 2, "mail*": 3, "*": 4, "mailing": 1, "mail": 0} {
		if n, err := e.Count(t.Context(), pawl.Filter{Kind: filter}, 0); err != nil || n.Jobs != want {
			t.Errorf("%s: %d jobs, %v, want %d", filter, n.Jobs, err, want)
		}
	}
}

// Who did something is always in the audit log, and what is said of it has a bound.
func TestJ30_AnOperatorHasANameAndABound(t *testing.T) {
	e := newEngine()
	defer e.Close()
	ctx := pawl.As(context.Background(), "", strings.Repeat("x", 1<<20)+"\x00\xff")
	if err := e.Queue("mail").Pause(ctx); err != nil {
		t.Fatal(err)
	}
	list, err := e.Audit(t.Context(), pawl.AuditFilter{}, pawl.AuditPage{})
	if err != nil || len(list.Entries) != 1 {
		t.Fatalf("%+v, %v, want one entry", list, err)
	}
	if got := list.Entries[0]; got.By != "code" || len(got.Note) > 5000 {
		t.Errorf("by %q with a note of %d bytes", got.By, len(got.Note))
	}
}
