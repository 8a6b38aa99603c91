package stream

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
)

// VersionKey names what has versions: a key of a topic that is declared versioned.
type VersionKey struct{ Topic, Key string }

// VersionKeys are those of some drafts, each once, in the order in which all calls lock them.
// of says which drafts are meant.
func VersionKeys(drafts []Publication, of func(i int) bool) (keys []VersionKey) {
	for i := range drafts {
		if of(i) {
			keys = append(keys, VersionKey{drafts[i].Topic, drafts[i].Key})
		}
	}
	slices.SortFunc(keys, func(a, b VersionKey) int { return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Key, b.Key)) })
	return slices.Compact(keys)
}

// CheckExpects refuses drafts that expect a version where there are none.
func CheckExpects(drafts []Publication, versioned func(topic string) bool) error {
	for i := range drafts {
		if d := &drafts[i]; !d.Expect.IsAny() && !versioned(d.Topic) {
			return job.Invalid("expected version", d.Expect, fmt.Sprintf("can be had on topics that are declared versioned, and %s is not", d.Topic))
		}
	}
	return nil
}

// Versions gives drafts of a call their versions, in order, by place in the call; last are
// those of the last events of their keys, and afterwards those of these. One that expects
// another version is ErrVersion: then none of the call is appended.
func Versions(drafts []Publication, of func(i int) bool, last map[VersionKey]int64) ([]int64, error) {
	list := make([]int64, len(drafts))
	for i := range drafts {
		if !of(i) {
			continue
		}
		d := &drafts[i]
		key := VersionKey{d.Topic, d.Key}
		if !d.Expect.Allows(last[key]) {
			return nil, fmt.Errorf("%w: key %q of %s has version %d, expected was %v", ErrVersion, d.Key, d.Topic, last[key], d.Expect)
		}
		last[key]++
		list[i] = last[key]
	}
	return list, nil
}
