package job

import (
	"crypto/sha256"
	"encoding/binary"
)

// UniqueHash is the key under which a store keeps a job unique. Parts are
// length-prefixed, so that no two lists of parts share a hash by gluing.
func UniqueHash(parts ...string) []byte {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
