package metric

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Bounds of what is kept of failures that are alike.
const (
	maxMessage = 512 // bytes
	maxNamed   = 8   // versions, and keys
	maxName    = 128 // bytes of one of them
)

// Failures is what is known of failures that are alike: of one kind, with one
// fingerprint.
type Failures struct {
	Failed uint64 // attempts that failed, also those after which the job was dead
	Dead   uint64 // jobs that died of it
	// First and Last are the failures at both ends.
	First, Last FailedJob
	Message     string // of the last
	// Versions and Keys name builds that ran such jobs and keys that such jobs had: the
	// first few of all in their order, so that it does not matter who counted them.
	Versions, Keys         []string
	MoreVersions, MoreKeys bool // there were others
}

// FailedJob is a job that failed, and when.
type FailedJob struct {
	Job  job.ID
	Time time.Time
}

func (f FailedJob) compare(other FailedJob) int {
	return cmp.Or(f.Time.Compare(other.Time), bytes.Compare(f.Job[:], other.Job[:]))
}

// Sample is one failure, as it is counted.
type Sample struct {
	FailedJob
	Dead                  bool // the job is dead
	Message, Version, Key string
}

// Add counts a failure.
func (f *Failures) Add(one Sample) {
	at := FailedJob{one.Job, one.Time.UTC().Truncate(time.Microsecond)}
	add := Failures{Failed: 1, First: at, Last: at, Message: clip(one.Message, maxMessage), Versions: named(one.Version), Keys: named(one.Key)}
	if one.Dead {
		add.Dead = 1
	}
	f.Merge(&add)
}

func named(s string) []string {
	if s == "" {
		return nil
	}
	return []string{clip(s, maxName)}
}

// Merge adds another.
func (f *Failures) Merge(other *Failures) {
	if other.Failed == 0 {
		return
	}
	if f.Failed == 0 || other.First.compare(f.First) < 0 {
		f.First = other.First
	}
	if c := other.Last.compare(f.Last); f.Failed == 0 || c > 0 || c == 0 && other.Message > f.Message {
		f.Last, f.Message = other.Last, other.Message
	}
	f.Failed, f.Dead = plus(f.Failed, other.Failed), plus(f.Dead, other.Dead)
	var more bool
	f.Versions, more = firstOf(f.Versions, other.Versions)
	f.MoreVersions = f.MoreVersions || other.MoreVersions || more
	f.Keys, more = firstOf(f.Keys, other.Keys)
	f.MoreKeys = f.MoreKeys || other.MoreKeys || more
}

// firstOf is the first few of both.
func firstOf(a, b []string) ([]string, bool) {
	if len(b) == 0 {
		return a, false
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxNamed {
		return all[:maxNamed:maxNamed], true
	}
	return all, false
}

// Append writes the value.
func (f *Failures) Append(b []byte) []byte {
	b = append(b, format)
	b = binary.AppendUvarint(b, f.Failed)
	b = binary.AppendUvarint(b, f.Dead)
	for _, at := range []FailedJob{f.First, f.Last} {
		b = appendTime(b, at.Time)
		b = append(b, at.Job[:]...)
	}
	b = appendText(b, f.Message)
	for _, list := range []struct {
		names []string
		more  bool
	}{{f.Versions, f.MoreVersions}, {f.Keys, f.MoreKeys}} {
		more := byte(0)
		if list.more {
			more = 1
		}
		b = append(b, more, byte(len(list.names)))
		for _, s := range list.names {
			b = appendText(b, s)
		}
	}
	return b
}

// Decode adds what Append has written.
func (f *Failures) Decode(data []byte) error {
	r := read(data)
	add := Failures{Failed: r.number(), Dead: r.number()}
	for _, at := range []*FailedJob{&add.First, &add.Last} {
		at.Time, at.Job = r.time(), r.id()
	}
	add.Message = r.text()
	for _, list := range []struct {
		names *[]string
		more  *bool
	}{{&add.Versions, &add.MoreVersions}, {&add.Keys, &add.MoreKeys}} {
		more, n := r.number(), r.number()
		if more > 1 || n > maxNamed {
			return ErrUnreadable
		}
		*list.more = more == 1
		for range n {
			*list.names = append(*list.names, r.text())
		}
	}
	if err := r.done(); err != nil {
		return err
	}
	f.Merge(&add)
	return nil
}
