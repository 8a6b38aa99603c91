package histogram

import (
	"encoding/binary"
	"errors"
)

// ErrUnreadable is the answer to bytes that are no histogram.
var ErrUnreadable = errors.New("histogram: unreadable")

// Append adds the histogram to b: the number of buckets that are not empty, then of
// each how far it is behind the one before and its count, then the sum. Equal
// histograms have equal bytes.
func (h *Histogram) Append(b []byte) []byte {
	full := 0
	for _, n := range h.counts {
		if n > 0 {
			full++
		}
	}
	b = binary.AppendUvarint(b, uint64(full))
	last := 0
	for i, n := range h.counts {
		if n > 0 {
			b = binary.AppendUvarint(b, uint64(h.low+i-last))
			b = binary.AppendUvarint(b, n)
			last = h.low + i
		}
	}
	return binary.AppendUvarint(b, h.sum)
}

// Decode adds the histogram at the beginning of b to h, and returns what is behind it.
// With an error h is as it was.
func (h *Histogram) Decode(b []byte) ([]byte, error) {
	var read Histogram
	full, b, ok := uvarint(b)
	if !ok || full > buckets {
		return nil, ErrUnreadable
	}
	at := uint64(0)
	for i := range full {
		var gap, n uint64
		if gap, b, ok = uvarint(b); !ok || gap >= buckets || gap == 0 && i > 0 {
			return nil, ErrUnreadable
		}
		if n, b, ok = uvarint(b); !ok || n == 0 {
			return nil, ErrUnreadable
		}
		if at += gap; at >= buckets {
			return nil, ErrUnreadable
		}
		read.add(int(at), n)
		read.count = plus(read.count, n)
	}
	if read.sum, b, ok = uvarint(b); !ok || full == 0 && read.sum > 0 {
		return nil, ErrUnreadable
	}
	h.Merge(&read)
	return b, nil
}

func uvarint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
