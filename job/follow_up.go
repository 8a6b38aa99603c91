package job

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// MaxFollowUps bounds the jobs that one run hands to its end.
const MaxFollowUps = 1_000

// FollowUps are jobs that a run hands to its own end: they are accepted in the
// commit that makes the job done, or not at all (J33).
type FollowUps struct{ Drafts []Draft }

// Weight is how many bytes they carry.
func (f *FollowUps) Weight() int {
	if f == nil {
		return 0
	}
	bytes := 0
	for i := range f.Drafts {
		bytes += len(f.Drafts[i].Args) + len(f.Drafts[i].HeaderBytes)
	}
	return bytes
}

// Some reports whether there are any.
func (f *FollowUps) Some() bool { return f != nil && len(f.Drafts) > 0 }

// FollowUpID is the id of the nth job that a run hands to its end. It is the same
// whenever it is asked for, so that a repeat of the end brings nothing twice; like
// every id it begins with a time, that of the run.
func FollowUpID(of ID, run int64, started time.Time, n int) ID {
	var text [32]byte
	copy(text[:], of[:])
	binary.BigEndian.PutUint64(text[16:], uint64(run))
	binary.BigEndian.PutUint64(text[24:], uint64(n))
	return timedID(sha256.Sum256(text[:]), started)
}

// timedID makes an id of a hash and a time.
func timedID(sum [sha256.Size]byte, at time.Time) ID {
	id := ID(sum[:16])
	ms := uint64(at.UnixMilli())
	id[0], id[1], id[2], id[3], id[4], id[5] = byte(ms>>40), byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms)
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return id
}
