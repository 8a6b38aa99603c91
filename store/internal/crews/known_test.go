package crews

import (
	"testing"

	"github.com/pawlwork/pawl/store"
)

// Only an answer that cannot change within its version is remembered.
func TestJ18_WhatMayChangeWithinAVersionIsNotRemembered(t *testing.T) {
	beat := store.Beat{Worker: 7, Splits: true, Version: 5}
	settled := store.BeatReply{Version: 5, Settled: true, Crews: map[string]store.Crew{"x": {Total: 4, Workers: []int{4, 4}}}}
	var k Known
	known := func() bool {
		_, ok := k.Of(7, 5)
		return ok
	}
	if k.Note(&beat, &settled); !known() {
		t.Fatal("a settled version is not remembered")
	}
	if _, ok := k.Of(7, 6); ok {
		t.Error("one version passes for another")
	}
	for what, edit := range map[string]func(*store.Beat, *store.BeatReply){
		"not settled":          func(_ *store.Beat, r *store.BeatReply) { r.Settled = false },
		"another version":      func(_ *store.Beat, r *store.BeatReply) { r.Version = 6 },
		"it was not stored":    func(b *store.Beat, _ *store.BeatReply) { b.Version = 4 },
		"nothing is split":     func(b *store.Beat, _ *store.BeatReply) { b.Splits = false },
		"it does not share":    func(_ *store.Beat, r *store.BeatReply) { r.Crews = map[string]store.Crew{"x": {Total: 4, Index: -1}} },
		"the lost hold a part": func(_ *store.Beat, r *store.BeatReply) { r.Crews = map[string]store.Crew{"x": {Total: 4, Held: 1}} },
	} {
		k.Note(&beat, &settled)
		b, r := beat, settled
		edit(&b, &r)
		if k.Note(&b, &r); known() {
			t.Errorf("%s: it is remembered", what)
		}
	}
	k.Note(&beat, &settled)
	if k.Forget(7); known() {
		t.Error("it is remembered after it was forgotten")
	}
}
