package stream_test

import (
	"testing"

	"github.com/pawlwork/pawl/stream"
)

// The key goes before the id, and what repeats something stands for what it repeats.
func TestE2_WhatWasSeenBefore(t *testing.T) {
	draft := func(topic, id, key string, given bool) stream.Publication {
		return stream.Publication{Event: stream.Event{Topic: topic, ID: id}, Given: given, Idempotency: key}
	}
	drafts := []stream.Publication{
		draft("a", "made", "", false),
		draft("a", "made", "", false), // an id that was made is no name
		draft("a", "x", "", true),
		draft("a", "x", "", true),      // repeats the third
		draft("b", "x", "", true),      // another topic
		draft("a", "y", "k", true),     // the log knows k
		draft("a", "y", "", true),      // y is the same as k since
		draft("a", "old", "new", true), // the log knows the id
		draft("a", "z", "x", true),     // a key is no id
	}
	found := map[stream.SeenName]stream.SeenEvent{
		{Topic: "a", Key: true, Text: "k"}: {ID: "first", Seq: 3},
		{Topic: "a", Text: "old"}:          {ID: "old", Seq: 4},
	}
	sifted := stream.Sift(drafts, found)
	fresh := make([]stream.SeenEvent, len(drafts))
	for i, s := range sifted {
		if s.Fresh {
			fresh[i].Seq = int64(100 + i)
		}
	}
	want := []stream.SeenEvent{{ID: "made", Seq: 100}, {ID: "made", Seq: 101}, {ID: "x", Seq: 102}, {ID: "x", Seq: 102}, {ID: "x", Seq: 104}, {ID: "first", Seq: 3}, {ID: "first", Seq: 3}, {ID: "old", Seq: 4}, {ID: "z", Seq: 108}}
	for i, got := range stream.Resolve(drafts, sifted, fresh) {
		if got != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got, want[i])
		}
	}
}
