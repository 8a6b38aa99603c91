package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Headers of a dead letter. Together with its data, key, type, source, content type and
// schema, which are those of the event, they say everything about it.
const (
	DeadTopic    = "pawl-dead-topic"
	DeadGroup    = "pawl-dead-group"
	DeadID       = "pawl-dead-id"
	DeadReason   = "pawl-dead-reason"
	DeadFailures = "pawl-dead-failures"
	DeadLosses   = "pawl-dead-losses"
	DeadPosition = "pawl-dead-position"
	DeadTime     = "pawl-dead-time" // of the event
)

// Parked is a dead letter of a group that has no topic for them: it stays with the group.
type Parked struct {
	Delivery
	Group, Reason string
	At            time.Time // when it was given up
}

// maxReason bounds a reason in a header.
const maxReason = 4 << 10

// Letter is the dead letter of a delivery: the event as it was, on another topic, with what
// became of it in its headers. Its own id is made of the event's and the group's, so that one
// that is sent twice is there once.
func (d *Delivery) Letter(topic, group, reason string, now time.Time) Publication {
	e := *d.Event
	h := maps.Clone(e.Headers)
	if h == nil {
		h = map[string]string{}
	}
	h[DeadTopic], h[DeadGroup], h[DeadID], h[DeadReason] = e.Topic, group, e.ID, CutReason(reason)
	h[DeadFailures], h[DeadLosses] = strconv.Itoa(d.Failures), strconv.Itoa(d.Losses)
	h[DeadPosition], h[DeadTime] = e.Position.String(), e.Time.UTC().Format(time.RFC3339Nano)
	e.Headers, e.Causation = h, e.ID
	e.Topic, e.Time, e.Expires, e.Position, e.Appended, e.Version = topic, now, time.Time{}, Position{}, time.Time{}, 0
	e.ID = letterID(group, d.Event.ID, d.Event.Position)
	return Publication{Event: e}
}

// CutReason is a reason as it is stored: bounded, and text.
func CutReason(reason string) string {
	if len(reason) > maxReason {
		reason = reason[:maxReason] // toText mends a letter that was cut
	}
	return toText(reason)
}

func letterID(group, id string, at Position) string {
	sum := sha256.Sum256([]byte(group + "\x00" + id + "\x00" + at.String()))
	return "dead-" + hex.EncodeToString(sum[:16])
}

// toText makes valid UTF-8 without NUL of anything.
func toText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
