package stream

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/pawlwork/pawl/job"
)

// Position is a place in the order of all events of a namespace, or, on a broker, of one
// of its streams: behind one event and before the next. It is opaque; its text form can be
// kept anywhere. The zero Position is before everything.
//
// An epoch is one life of the log: a log that was restored from a backup, or that lost its
// last moments in a failover, goes on in another. Positions of two epochs have no order.
type Position struct {
	epoch uint32
	seq   int64
}

// At makes a position. It is for backends: what a number means is theirs.
func At(epoch uint32, seq int64) Position { return Position{epoch, seq} }

// Epoch and Seq are for backends.
func (p Position) Epoch() uint32 { return p.epoch }

// Seq is the number of the event that it is behind.
func (p Position) Seq() int64 { return p.seq }

// Equal reports whether two are the same place.
func (p Position) Equal(q Position) bool { return p == q }

// IsZero reports whether it is before everything.
func (p Position) IsZero() bool { return p == Position{} }

// Compare tells which of two is first; ok is false where they have no order, because the
// log was restored between them. Everything is behind the zero Position.
func (p Position) Compare(q Position) (order int, ok bool) {
	switch {
	case p.IsZero() || q.IsZero() || p.epoch == q.epoch:
		return cmp.Compare(p.seq, q.seq), true
	}
	return 0, false
}

// positionVersion begins every text, so that another form can be told from this one.
const positionVersion = 'p'

// String is the text form of a position; "" of the zero Position.
func (p Position) String() string {
	if p.IsZero() {
		return ""
	}
	b := binary.AppendUvarint(nil, uint64(p.epoch))
	b = binary.AppendUvarint(b, uint64(p.seq))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return string(positionVersion) + base64.RawURLEncoding.EncodeToString(b)
}

// ParsePosition reads a text form. What was cut off or changed is refused.
func ParsePosition(s string) (Position, error) {
	if s == "" {
		return Position{}, nil
	}
	bad := func() (Position, error) {
		return Position{}, job.Invalid("position", s, "must be one that an event or a batch had, unchanged")
	}
	if s[0] != positionVersion || len(s) > 32 {
		return bad()
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s[1:])
	if err != nil || len(b) < 6 {
		return bad()
	}
	b = b[:len(b)-4]
	epoch, n := binary.Uvarint(b)
	if n <= 0 || epoch > 1<<32-1 {
		return bad()
	}
	seq, m := binary.Uvarint(b[n:])
	if m <= 0 || n+m != len(b) || seq > 1<<63-1 {
		return bad()
	}
	p := Position{uint32(epoch), int64(seq)}
	if p.String() != s { // the sum is another, or numbers have needless bytes
		return bad()
	}
	return p, nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Position) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePosition(string(text))
	return err
}

// MarshalBinary implements encoding.BinaryMarshaler, by which gob keeps positions.
func (p Position) MarshalBinary() ([]byte, error) { return p.MarshalText() }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (p *Position) UnmarshalBinary(b []byte) error { return p.UnmarshalText(b) }

// Debug shows the numbers, for logs.
func (p Position) Debug() string { return fmt.Sprintf("%d/%d", p.epoch, p.seq) }
