package metric

import (
	"encoding/binary"
	"time"

	"github.com/pawlwork/pawl/job/histogram"
)

// Load is what a worker's process took, and how its store answered it.
type Load struct {
	Span       time.Duration // how much time it is of
	CPU        time.Duration // spent by the process, on all processors together
	Memory     uint64        // bytes that Go held from the system, at most
	Goroutines uint64        // at most
	// Calls are those of the store that every worker makes: beats, claims and ends.
	Calls histogram.Histogram
}

// Merge adds another.
func (l *Load) Merge(other *Load) {
	l.Span, l.CPU = l.Span+other.Span, l.CPU+other.CPU
	l.Memory, l.Goroutines = max(l.Memory, other.Memory), max(l.Goroutines, other.Goroutines)
	l.Calls.Merge(&other.Calls)
}

// Append writes the value.
func (l *Load) Append(b []byte) []byte {
	b = append(b, format)
	for _, v := range []uint64{uint64(l.Span.Microseconds()), uint64(l.CPU.Microseconds()), l.Memory, l.Goroutines} {
		b = binary.AppendUvarint(b, v)
	}
	return l.Calls.Append(b)
}

// maxMicros is the longest time that can be read.
const maxMicros = uint64(1) << 52

// Decode adds what Append has written.
func (l *Load) Decode(data []byte) error {
	r := read(data)
	span, cpu := r.number(), r.number()
	add := Load{Memory: r.number(), Goroutines: r.number()}
	r.histogram(&add.Calls)
	if err := r.done(); err != nil {
		return err
	}
	if span > maxMicros || cpu > maxMicros {
		return ErrUnreadable
	}
	add.Span, add.CPU = time.Duration(span)*time.Microsecond, time.Duration(cpu)*time.Microsecond
	l.Merge(&add)
	return nil
}
