package job

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// Failures are the newest failures of a job, at most MaxFailures, as a store
// keeps them. They are read only when somebody asks: a claim hands them on
// unread, and one that cannot be read costs nobody else anything (P8).
type Failures struct{ stored []byte }

// A list of failures is stored as one byte that says how, and then a frame for
// each, the oldest first. A frame is
//
//	1 byte    what its body is: a failure, or bytes that could not be read
//	uvarint   bytes of the body
//	8 bytes   the store's time, microseconds since 1970, big endian
//	the body
//
// so that a store can add to a list without understanding it: bodies may be
// those of a newer build, or encrypted.
const (
	failuresFormat = 1
	frameFailure   = 1
	frameDamaged   = 2
	maxDamaged     = 16 << 10 // bytes kept of what could not be read
)

// StoredFailures takes over what AppendFailure wrote; nil for none. It looks at
// nothing, so it cannot fail.
func StoredFailures(stored []byte) Failures { return Failures{stored} }

// AppendFailure adds one failure, as [Failure.Body] or [End] gives it, to a
// stored list and keeps the newest MaxFailures. It never fails: what it cannot
// read of the list stays in it as one failure that says so.
func AppendFailure(stored []byte, at time.Time, body []byte) []byte {
	frames, damaged := cutFrames(stored)
	room := MaxFailures - 1
	if damaged != nil {
		room--
	}
	frames = frames[max(len(frames)-room, 0):]
	size := 32 + len(body) + min(len(damaged), maxDamaged)
	for _, f := range frames {
		size += len(f.whole)
	}
	list := append(make([]byte, 0, size), failuresFormat)
	for _, f := range frames {
		list = append(list, f.whole...)
	}
	if damaged != nil {
		list = appendFrame(list, frameDamaged, time.UnixMicro(0), damaged[:min(len(damaged), maxDamaged)])
	}
	return appendFrame(list, frameFailure, at, body)
}

func appendFrame(list []byte, what byte, at time.Time, body []byte) []byte {
	list = append(list, what)
	list = binary.AppendUvarint(list, uint64(len(body)))
	list = binary.BigEndian.AppendUint64(list, uint64(at.UnixMicro()))
	return append(list, body...)
}

// frame is one frame of a list: whole, and its parts.
type frame struct {
	whole []byte
	what  byte
	at    time.Time
	body  []byte
}

// cutFrames splits a list. What is behind the last whole frame, or all of it
// where the list is none, is damaged.
func cutFrames(stored []byte) (frames []frame, damaged []byte) {
	if len(stored) == 0 {
		return nil, nil
	}
	if stored[0] != failuresFormat {
		return nil, stored
	}
	for rest := stored[1:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		head := 1 + n + 8
		if n <= 0 || head > len(rest) || size > uint64(len(rest)-head) {
			return frames, rest
		}
		end := head + int(size)
		frames = append(frames, frame{
			whole: rest[:end],
			what:  rest[0],
			at:    frameTime(binary.BigEndian.Uint64(rest[1+n:])),
			body:  rest[head:end],
		})
		rest = rest[end:]
	}
	return frames, nil
}

// frameTime is zero for years that JSON has no text for: nobody wrote them.
func frameTime(micros uint64) time.Time {
	at := time.UnixMicro(int64(micros)).UTC()
	if at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}
	}
	return at
}

// List reads the failures, the newest last. One that cannot be read is in it as
// a failure that says so.
func (f Failures) List() []Failure {
	if len(f.stored) == 0 {
		return nil
	}
	frames, damaged := cutFrames(f.stored)
	var list []Failure
	for _, fr := range frames {
		list = append(list, fr.read())
	}
	if damaged != nil {
		list = append(list, damagedPart(damaged))
	}
	return list
}

// Last is the newest failure; false when there is none.
func (f Failures) Last() (Failure, bool) {
	frames, damaged := cutFrames(f.stored)
	switch {
	case damaged != nil:
		return damagedPart(damaged), true
	case len(frames) > 0:
		return frames[len(frames)-1].read(), true
	}
	return Failure{}, false
}

func (fr frame) read() Failure {
	switch fr.what {
	case frameFailure:
		return readFailure(fr.at, fr.body)
	case frameDamaged:
		return damagedPart(fr.body)
	}
	return unreadable(fr.at, fmt.Sprintf("a failure of kind %d, which this build does not know", fr.what))
}

func damagedPart(b []byte) Failure {
	return unreadable(time.Time{}, fmt.Sprintf("%d bytes that are no failures of this build, starting with %q", len(b), b[:min(len(b), 16)]))
}

// None reports whether the job has not failed yet.
func (f Failures) None() bool { return len(f.stored) == 0 }

// Stored is what a store keeps; nil for none.
func (f Failures) Stored() []byte { return f.stored }

// Equal reports whether both were stored alike.
func (f Failures) Equal(other Failures) bool { return bytes.Equal(f.stored, other.stored) }

func (f Failures) String() string { return fmt.Sprint(f.List()) }

// MarshalJSON writes the list.
func (f Failures) MarshalJSON() ([]byte, error) {
	if f.None() {
		return []byte("[]"), nil
	}
	return json.Marshal(f.List())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Failures) UnmarshalJSON(text []byte) error {
	var list []Failure
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	f.stored = nil
	for _, one := range list {
		f.stored = AppendFailure(f.stored, one.Time, one.Body())
	}
	return nil
}

// MarshalBinary is Stored, for gob and the like.
func (f Failures) MarshalBinary() ([]byte, error) { return f.stored, nil }

// UnmarshalBinary reads what MarshalBinary wrote.
func (f *Failures) UnmarshalBinary(stored []byte) error {
	f.stored = bytes.Clone(stored)
	return nil
}
