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
// With an error h is as it was. Nothing is allocated where h has the buckets already:
// a sum over a day of many queues decodes a hundred thousand of them.
func (h *Histogram) Decode(b []byte) ([]byte, error) {
	rest, first, last, err := scan(b)
	if err != nil {
		return nil, err
	}
	full, b, _ := uvarint(b)
	if full > 0 {
		h.cover(first, last)
	}
	at := 0
	for range full {
		var gap, n uint64
		gap, b, _ = uvarint(b)
		n, b, _ = uvarint(b)
		at += int(gap)
		h.counts[at-h.low] = plus(h.counts[at-h.low], n)
		h.count = plus(h.count, n)
	}
	sum, _, _ := uvarint(b)
	h.sum = plus(h.sum, sum)
	return rest, nil
}

// Skip returns what is behind the histogram at the beginning of b, which Decode would add.
func Skip(b []byte) ([]byte, error) {
	rest, _, _, err := scan(b)
	return rest, err
}

// scan reads a histogram without keeping it: what is behind it, and its first and last bucket.
func scan(b []byte) (rest []byte, first, last int, err error) {
	full, b, ok := uvarint(b)
	if !ok || full > buckets {
		return nil, 0, 0, ErrUnreadable
	}
	at := uint64(0)
	for i := range full {
		var gap, n uint64
		if gap, b, ok = uvarint(b); !ok || gap >= buckets || gap == 0 && i > 0 {
			return nil, 0, 0, ErrUnreadable
		}
		if n, b, ok = uvarint(b); !ok || n == 0 {
			return nil, 0, 0, ErrUnreadable
		}
		if at += gap; at >= buckets {
			return nil, 0, 0, ErrUnreadable
		}
		if i == 0 {
			first = int(at)
		}
	}
	sum, b, ok := uvarint(b)
	if !ok || full == 0 && sum > 0 {
		return nil, 0, 0, ErrUnreadable
	}
	return b, first, int(at), nil
}

func uvarint(b []byte) (uint64, []byte, bool) {
	if len(b) > 0 && b[0] < 0x80 { // most are short
		return uint64(b[0]), b[1:], true
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
