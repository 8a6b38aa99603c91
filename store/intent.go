package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl/job"
)

// Intent is something that a user's transaction wants done to rows which others
// need, too. The transaction only inserts it, so it holds nobody up however long
// it stays open; what it wants is done once, right after the commit, in a
// transaction of the store's own that removes it as well.
type Intent struct {
	ID   job.ID
	Kind IntentKind
	// Subject is what it is about. Those of one kind and subject are applied in
	// order: of one transaction as they were given, of several as they are found.
	Subject string
	Payload []byte
}

// IntentKind says what an intent wants. The numbers are stored: never renumber. A
// build leaves kinds alone that it does not know. Those from 30,000 on are for tests.
type IntentKind int16

// IntendingTx is a Tx that can leave intents.
type IntendingTx interface {
	Tx
	// Intend leaves intents with the transaction. A rollback leaves none.
	Intend(ctx context.Context, list []Intent) error
}

// Intents is a store that applies what transactions have left. It does so by
// itself as soon as it learns of a commit; a sweep finds what it missed.
type Intents interface {
	// ApplyIntents applies up to limit intents of the kinds this build knows. It is
	// safe in every process at once: two that meet share them. One that cannot be
	// applied is put off, with those of its subject behind it, and holds up no other.
	ApplyIntents(ctx context.Context, limit int) (IntentsReply, error)
	// WaitingIntents lists up to limit intents that have not been applied, of every
	// kind, the oldest first.
	WaitingIntents(ctx context.Context, limit int) ([]IntentInfo, error)
}

// IntentsReply is what ApplyIntents did. After a lost answer it may have done more.
type IntentsReply struct {
	Applied int
	PutOff  []IntentInfo // those that failed, now
	More    bool         // it came to a bound, or somebody else held some
}

// IntentInfo is an intent that has not been applied.
type IntentInfo struct {
	Intent
	Created  time.Time // when its transaction left it, which may have committed later
	Failures int
	Until    time.Time // it is put off, by its failures or by those of one before it; zero: it is not
	Error    string    // of the last failure
	Known    bool      // this build applies its kind
}

// Why says what an intent waits for (P5).
func (i *IntentInfo) Why() string {
	switch {
	case !i.Known:
		return fmt.Sprintf("no part of this build applies kind %d", i.Kind)
	case i.Failures > 0:
		times := "once"
		if i.Failures > 1 {
			times = fmt.Sprintf("%d times", i.Failures)
		}
		return fmt.Sprintf("has failed %s, is tried again at %s: %s", times, i.Until.Format(time.RFC3339), i.Error)
	case !i.Until.IsZero():
		return fmt.Sprintf("is behind one of subject %q that failed and is tried again at %s", i.Subject, i.Until.Format(time.RFC3339))
	}
	return "is about to be applied"
}

// Bounds of intents.
const (
	MaxIntentSubject = 512      // bytes
	MaxIntentPayload = 64 << 10 // bytes
	// IntentBytes is how much one call of Intend carries, and how much one
	// transaction applies.
	IntentBytes = 4 << 20
	// IntentTrouble is the number of failures from which on an intent is reported.
	IntentTrouble = 3
)

const (
	firstIntentPause = 100 * time.Millisecond
	lastIntentPause  = 5 * time.Minute
)

// IntentPause is how long an intent is put off after so many failures: longer each
// time, so that a bad one costs ever less.
func IntentPause(failures int) time.Duration {
	pause := firstIntentPause
	for range failures - 1 {
		if pause *= 2; pause >= lastIntentPause {
			return lastIntentPause
		}
	}
	return pause
}

// CheckIntents refuses intents that no store can keep.
func CheckIntents(list []Intent) error {
	bytes := 0
	for i := range list {
		in := &list[i]
		bytes += in.Weight()
		switch {
		case in.ID == job.ID{}:
			return job.Invalid("intent id", in.ID, "must be set")
		case in.Kind < 1:
			return job.Invalid("intent kind", in.Kind, "must be 1 or more")
		case len(in.Subject) > MaxIntentSubject:
			return job.Invalid("intent subject", fmt.Sprintf("%d bytes", len(in.Subject)), fmt.Sprintf("must be at most %d", MaxIntentSubject))
		case !utf8.ValidString(in.Subject) || strings.ContainsRune(in.Subject, 0):
			return job.Invalid("intent subject", in.Subject, "must be UTF-8 without zero bytes")
		case len(in.Payload) > MaxIntentPayload:
			return job.Invalid("intent payload", fmt.Sprintf("%d bytes", len(in.Payload)), fmt.Sprintf("must be at most %d", MaxIntentPayload))
		}
	}
	if bytes > IntentBytes {
		return job.Invalid("intents", fmt.Sprintf("%d bytes", bytes), fmt.Sprintf("must be at most %d in one call", IntentBytes))
	}
	return nil
}

// Weight is what an intent adds to a bound of bytes.
func (i *Intent) Weight() int { return len(i.Subject) + len(i.Payload) }

// IntentPlace is where an intent stands among those of its subject.
type IntentPlace struct {
	ID      job.ID
	Kind    IntentKind
	Subject string
	Until   time.Time // zero: it is not put off
}

// IntentsInOrder tells which of the intents that a transaction holds it may apply:
// of each subject the first ones, without a gap. Held is in order. First has, for
// each of their subjects, its first intents in order: one more than are held, if
// there are so many. Behind are the others, with the time until which the one is
// put off that they wait for; zero when somebody else is at it.
func IntentsInOrder(held []Intent, first []IntentPlace) (free []Intent, behind map[job.ID]time.Time) {
	type subject struct {
		kind IntentKind
		name string
	}
	mine := make(map[job.ID]bool, len(held))
	for i := range held {
		mine[held[i].ID] = true
	}
	may := make(map[job.ID]bool, len(held))
	gaps := map[subject]time.Time{}
	for _, p := range first {
		s := subject{p.Kind, p.Subject}
		_, gap := gaps[s]
		switch {
		case gap:
		case mine[p.ID]:
			may[p.ID] = true
		default:
			gaps[s] = p.Until
		}
	}
	for _, in := range held {
		if may[in.ID] {
			free = append(free, in)
			continue
		}
		if behind == nil {
			behind = map[job.ID]time.Time{}
		}
		behind[in.ID] = gaps[subject{in.Kind, in.Subject}]
	}
	return free, behind
}

// IntentsByKind divides intents by their kind, in the order of kinds, which is that
// of their locks.
func IntentsByKind(kinds []IntentKind, list []Intent) [][]Intent {
	parts := make([][]Intent, len(kinds))
	for _, in := range list {
		if i := slices.Index(kinds, in.Kind); i >= 0 {
			parts[i] = append(parts[i], in)
		}
	}
	return parts
}
