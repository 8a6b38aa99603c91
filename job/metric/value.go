package metric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Class says what a value is of. The numbers are stored: never renumber.
type Class int16

// The classes, and what name and kind of a value are.
const (
	OfJobs     Class = 1 // a queue and a kind
	OfFailures Class = 2 // a fingerprint and a kind
	OfWorkers  Class = 3 // the label of a worker, and no kind
	OfAll      Class = 4 // neither: all jobs, so that a sum over many queues reads few rows
)

// Other is the name and the kind under which is counted what is beyond the bound of
// names: the counts stay whole. No queue or kind can be called so.
const Other = "(all other)"

// Value is what can be added up.
type Value interface {
	// Decode adds what Append has written. With an error nothing was added.
	Decode(data []byte) error
	// Append writes the value. Equal values have equal bytes.
	Append(b []byte) []byte
}

// New is an empty value; nil for a class that this build does not know.
func New(c Class) Value {
	switch c {
	case OfJobs, OfAll:
		return new(Jobs)
	case OfFailures:
		return new(Failures)
	case OfWorkers:
		return new(Load)
	}
	return nil
}

// ErrUnreadable is the answer to bytes that are damaged, or of a newer build.
var ErrUnreadable = errors.New("metric: unreadable")

// MaxData bounds the bytes of one value: what its parts can come to.
const MaxData = 32 << 10

const format = 1 // the first byte of every value

// reader reads fields; the first fault sticks.
type reader struct {
	b      []byte
	failed bool
}

func read(data []byte) *reader {
	if len(data) == 0 || data[0] != format || len(data) > MaxData {
		return &reader{failed: true}
	}
	return &reader{b: data[1:]}
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.failed || n <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if r.failed || n > uint64(len(r.b)) {
		r.failed = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string { return string(r.bytes(r.number())) }

func (r *reader) id() (id job.ID) {
	copy(id[:], r.bytes(uint64(len(id))))
	return id
}

// time reads microseconds since 1970; 0 is none.
func (r *reader) time() time.Time {
	v := int64(r.number())
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

func (r *reader) done() error {
	if r.failed || len(r.b) > 0 {
		return ErrUnreadable
	}
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendUvarint(b, 0)
	}
	return binary.AppendUvarint(b, uint64(t.UnixMicro()))
}

// plus is addition that stops at the highest number.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// clip bounds a text, at a whole character.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

func (c Class) String() string {
	switch c {
	case OfJobs:
		return "jobs"
	case OfFailures:
		return "failures"
	case OfWorkers:
		return "workers"
	case OfAll:
		return "all"
	}
	return fmt.Sprintf("class(%d)", int16(c))
}
